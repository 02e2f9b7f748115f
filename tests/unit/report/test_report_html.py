"""Charts and pages: what is text stays text, and nothing loads or runs anything."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.errors import InternalError
from dpsyn_sql.report.html import templates
from dpsyn_sql.report.html.templates import Bar, Cell, named, pixels, template

HTML = Path(templates.__file__).parent
CHARTS, PARTS = template(HTML / "charts.html"), template(HTML / "parts.html")
TAGS = """a article bdi body caption code dd desc details div dl dt em figcaption figure footer g h1 h2 h3 head header
    html li line main meta nav ol p rect section small span strong style summary svg table tbody td text th thead title
    tr ul"""
ATTRIBUTES = """aria-hidden aria-label aria-labelledby charset class colspan content fill-opacity height href http-equiv id
    lang name open role rx scope tabindex text-anchor transform viewbox width x x1 x2 y y1 y2"""
# None loads anything or runs a script.


class Reader(HTMLParser):
    """Every element, attribute and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts, self.open = set(), [], [], []
        self.unbalanced = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        self.unbalanced |= not self.open or self.open.pop() != tag

    def handle_data(self, data):
        self.texts.append(data)

    def handle_comment(self, data):
        raise AssertionError("a comment")

    def handle_pi(self, data):
        raise AssertionError("a processing instruction")


def check_harmless(text):
    """No element or attribute outside of the lists, no address, no character that moves text."""
    found = Reader(text)
    assert found.tags <= set(TAGS.split())
    assert {name for name, _ in found.attributes} <= set(ATTRIBUTES.split())
    for name, value in found.attributes:
        assert not name.startswith("on")
        if name == "href":
            assert value.startswith("#")
    assert not found.unbalanced
    assert not found.open
    assert "‮" not in text and "\x00" not in text
    return found


@given(st.text(), st.text())
def test_any_text_stays_text(first, second):
    found = check_harmless(PARTS.table(first, [second], [[first, second]]))
    assert found.tags == {"div", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert "a<b" in Reader(PARTS.table("a<b", [])).texts


@pytest.mark.parametrize(
    "path", [*HTML.parents[1].rglob("*.html"), *HTML.parents[2].rglob("evaluation/*.html")]
)
def test_no_template_says_that_a_value_is_markup(path):
    text = path.read_text()
    assert not re.search(r"\|\s*safe|autoescape|Markup|href=.\{\{", text)


def test_coordinates_are_finite():
    with pytest.raises(InternalError, match="finite"):
        pixels(float("nan"))


@given(
    st.lists(st.tuples(st.text(max_size=30), st.floats(0, 1e12), st.floats(0, 1e12)), min_size=0, max_size=8)
)
def test_charts_of_any_labels_and_sizes(items):
    made = [Bar(label, value, max(0.0, value - half), value + half, "x") for label, value, half in items]
    check_harmless(CHARTS.bars("t", "d", made) + CHARTS.upright("t", "d", made))


def test_a_chart_says_in_words_what_it_shows():
    cells = [[], [Cell(0.5, "measured", "first and second: strength 0.50")]]
    made = CHARTS.heat_map("Pairs", "One square", ["first", "second"], cells)
    assert "<title>Pairs</title><desc>One square</desc>" in made
    assert 'role="img"' in made and "strength 0.50" in made


def test_bars_are_as_long_as_their_values():
    made = CHARTS.bars(
        "t", "d", [Bar("a", 1.0, 1.0, 1.0, ""), Bar("b", 0.5, 0.5, 0.5, ""), Bar("c", 0, 0, 0, "")]
    )
    widths = [float(value) for name, value in Reader(made).attributes if name == "width" and value != "340"]
    assert widths[0] == pytest.approx(2 * widths[1])
    assert widths[2] == 0


def test_a_page_may_load_nothing_and_has_its_parts_in_reach_of_the_keyboard():
    table = PARTS.table("c", ["n", "v"], [("a", "1")], numbers=1)
    text = PARTS.page("T", [("one", "One", table)], opening="o", banner="B: x")
    found = check_harmless(text)
    assert ("href", "#content") in found.attributes and ("id", "content") in found.attributes
    assert ("href", "#one") in found.attributes and ("id", "one") in found.attributes
    assert any(value and "default-src 'none'" in value for _, value in found.attributes)
    assert text.index("B: x") < text.index("<h1>")
    assert "url(" not in text and "@import" not in text
    assert {"caption", "th"} <= found.tags


def test_a_long_name_is_cut_and_a_name_is_kept_apart():
    assert named("x" * 100, 10) == "<bdi>xxxxxxxxx…</bdi>"

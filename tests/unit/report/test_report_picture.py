"""Pictures of points: where rows lie, against sums over drawn values; files; what cannot be drawn."""

import sys

import numpy as np
import pytest

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.points import Points
from dpsyn_sql.attributes.trees import HierarchyColumn, Leaves
from dpsyn_sql.errors import InputError
from dpsyn_sql.methods.models.margins import ProductModel
from dpsyn_sql.report.picture import picture, spread_over, write_picture


def point(name, columns, depth, types=None):
    types = types or ["DOUBLE"] * len(columns)
    made = tuple(HierarchyColumn(column, kind) for column, kind in zip(columns, types, strict=True))
    whole = all(kind != "DOUBLE" for kind in types)
    ends = (0, 2**depth - 1) if whole else (0.0, 8.0)
    return Points(name, made, (ends[0],) * len(columns), (ends[1],) * len(columns), depth)


def grown(hierarchy, chance, levels):
    """The leaves of a random tree, in the order of keys: (levels, nodes)."""
    found, nodes = [], hierarchy.root()
    for level in range(levels + 1):
        split = chance.random(len(nodes)) < 0.7 if level < levels else np.zeros(len(nodes), dtype=bool)
        found += [(level, int(node)) for node in nodes[~split]]
        nodes = hierarchy.children(nodes[split], level)[0]
    keyed = sorted(found, key=lambda leaf: hierarchy.lowest(np.array([leaf[1]]), leaf[0])[0])
    return tuple(level for level, _ in keyed), tuple(node for _, node in keyed)


def model_of(hierarchy, levels, nodes, *, codes=3, seed=0, zero=False):
    chance = np.random.default_rng(seed)
    codes = min(codes, len(nodes))
    of_leaf = tuple(int(place * codes / len(nodes)) for place in range(len(nodes)))
    rows = tuple([0.0] * len(nodes) if zero else chance.integers(0, 50, len(nodes)).astype(float).tolist())
    leaves = Leaves((hierarchy,), (levels,), (nodes,), rows, of_leaf)
    attribute = Attribute(
        "p", "VARCHAR", "categorical", labels=tuple(f"c{code}" for code in range(codes)), other=True,
        nullable=True, leaves=leaves,
    )  # fmt: skip
    by_code = chance.integers(1, 90, attribute.size).astype(np.float64)
    return ProductModel.of_rows(Domain((attribute,)), float(by_code.sum()), by_code, False), leaves


def expected_rows(model, leaves):
    """Rows of each leaf, one by one."""
    codes, rows, by_code = leaves.codes, leaves.rows, model.rows
    found = []
    for place, code in enumerate(codes):
        same = [other for other in range(len(codes)) if codes[other] == code]
        total = sum(rows[other] for other in same)
        share = rows[place] / total if total else 1 / len(same)
        found.append(by_code[code] * share)
    return np.array(found)


@pytest.mark.parametrize("zero", [False, True])
def test_leaves_have_the_rows_that_are_written_into_them(zero):
    hierarchy = point("p", ["x", "y"], 4)
    levels, nodes = grown(hierarchy, np.random.default_rng(1), 4)
    model, leaves = model_of(hierarchy, levels, nodes, zero=zero)
    found = spread_over(model, ["p"])
    assert found.exact and found.positions == (0, 1)
    np.testing.assert_allclose(found.rows, expected_rows(model, leaves))
    assert (found.outside, found.missing) == pytest.approx((model.rows[-2], model.rows[-1]))
    area = np.prod(found.highs - found.lows, axis=1).sum()
    assert area == pytest.approx(64, rel=1e-9)


@pytest.mark.parametrize("columns", [("a",), ("c", "b"), ("a", "c")])
def test_a_grid_over_some_columns_sums_over_the_others(columns):
    """Against whole numbers listed one by one: every value of a leaf has an even share of its rows."""
    hierarchy = point("p", ["a", "b", "c"], 3, ["INTEGER"] * 3)
    levels, nodes = grown(hierarchy, np.random.default_rng(2), 3)
    model, leaves = model_of(hierarchy, levels, nodes)
    table = np.zeros((8,) * len(columns))
    for level, node, rows in zip(levels, nodes, expected_rows(model, leaves), strict=True):
        ends = [(int(low[0]), int(high[0]) + 1) for low, high in hierarchy.boxes(np.array([node]), level)]
        at = tuple(slice(*ends["abc".index(column)]) for column in columns)
        table[at] += rows / np.prod([end.stop - end.start for end in at])
    found = spread_over(model, columns)
    drawn = np.zeros_like(table)
    for low, high, rows in zip(found.lows, found.highs, found.rows, strict=True):
        at = tuple(slice(int(start), int(end)) for start, end in zip(low, high, strict=True))
        drawn[at] += rows / np.prod([end.stop - end.start for end in at])
    assert not found.exact
    np.testing.assert_allclose(drawn, table, atol=1e-6)


@pytest.mark.parametrize(
    ("columns", "types", "names"),
    [
        (["lat", "lon"], None, "p"),
        (["lat", "lon"], None, ["lon", "lat"]),
        (["x"], ["DATE"], ["x"]),
        (["x", "at"], ["INTEGER", "TIMESTAMP"], ["p"]),
        (["x", "y", "z"], None, ["z", "y"]),
    ],
)
def test_a_picture_of_any_columns_is_written(tmp_path, columns, types, names):
    pytest.importorskip("matplotlib")
    write_picture(drawn(columns, types, names), tmp_path / "map.svg")
    assert (tmp_path / "map.svg").read_bytes().startswith(b"<?xml")


def drawn(columns, types, names):
    hierarchy = point("p", columns, 3, types)
    model, _ = model_of(hierarchy, *grown(hierarchy, np.random.default_rng(3), 3))
    return picture(model, names, "title")


def test_pictures_are_written_as_their_ending_says(tmp_path):
    pytest.importorskip("matplotlib")
    figure = drawn(["lat", "lon"], None, "p")
    for ending, first in ((".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")):
        write_picture(figure, tmp_path / f"map{ending}")
        assert (tmp_path / f"map{ending}").read_bytes().startswith(first)
    with pytest.raises(InputError, match="no ending of a picture"):
        write_picture(figure, tmp_path / "map.txt")
    with pytest.raises(InputError, match="cannot be written"):
        write_picture(figure, tmp_path / "none" / "map.svg")


def test_north_is_up():
    pytest.importorskip("matplotlib")
    hierarchy = point("p", ["lat", "lon"], 3)
    model, _ = model_of(hierarchy, *grown(hierarchy, np.random.default_rng(3), 3))
    for names in (["p"], ["lat", "lon"], ["lon", "lat"]):
        axes = picture(model, names, "").axes[0]
        assert axes.get_ylabel() == "lat" and axes.get_xlabel().startswith("lon")


@pytest.mark.parametrize("names", [["p"], ["x", "x"], ["x", "none"], [], ["x", "y", "z"]])
def test_what_cannot_be_drawn_is_named(names):
    hierarchy = point("p", ["x", "y", "z"], 3)
    model, _ = model_of(hierarchy, *grown(hierarchy, np.random.default_rng(3), 3))
    with pytest.raises(InputError, match="this release has 'p', 'x', 'y', 'z'"):
        spread_over(model, names)


def test_without_the_package_the_extra_is_named(monkeypatch):
    hierarchy = point("p", ["x", "y"], 3)
    model, _ = model_of(hierarchy, *grown(hierarchy, np.random.default_rng(3), 3))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"pip install 'dpsyn_sql\[plot\]'"):
        picture(model, "p", "title")

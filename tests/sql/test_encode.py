"""Encoding is a total function of one row: executed and compared with a brute force in Python."""

import math
from bisect import bisect_right
from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.shapes import decode_statement, domain_of

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.types import parse_type
from dpsyn_sql.errors import InternalError
from dpsyn_sql.private.rows.codes import encode_query
from dpsyn_sql.source.relation import Column, Relation
from dpsyn_sql.sqltext.fragments import Fragment, code_type, ident

QUICK = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
INTEGERS = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
    "HUGEINT": (-(2**127), 2**127 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "UINTEGER": (0, 2**32 - 1),
    "UBIGINT": (0, 2**64 - 1),
    "UHUGEINT": (0, 2**128 - 1),
}


def one(sql_type, entry, **column):
    """The attribute of one declared column."""
    relation = Relation("t", "table", "t", (Column("v", sql_type, **column),))
    return domain_of({"columns": {"v": entry}}, relation).attributes[0]


def put(con, sql_type, texts):
    con.execute(f"CREATE OR REPLACE TEMP TABLE src (row BIGINT, v {sql_type})")
    con.execute(
        f"INSERT INTO src SELECT i, CAST(x AS {sql_type}) FROM (SELECT unnest(?::VARCHAR[]) AS x, "
        "unnest(range(?)) AS i)",
        [texts, len(texts)],
    )


def encoded(con, attribute, source="src", csv=False):
    """Codes in the order of the source's column row, by the statement and by the expression alike."""
    [(rows,)] = con.execute(f"SELECT count(*) FROM {source}").fetchall()
    number = Attribute("row", "BIGINT", "numeric", edges=tuple(range(rows + 1)))
    con.execute("DROP TABLE IF EXISTS temp.coded")
    domain = Domain((attribute, number))
    con.execute(
        f"CREATE TEMP TABLE coded AS {encode_query(Fragment(source), domain, [(0,), (1,)], '.' if csv else '')}"
    )
    numbered = con.execute("SELECT p1, p0 FROM coded ORDER BY p1").fetchall()
    assert [row for row, _ in numbered] == list(range(rows))
    codes = [code for _, code in numbered]
    single = attribute.code("v", "." if csv else "")
    named = f"SELECT row, {', '.join(single.named)} FROM {source}"
    alone = con.execute(f"SELECT {single.code} FROM ({named}) ORDER BY row").fetchall()
    assert codes == [code for (code,) in alone] and not single.joins
    return codes


def expected(attribute, value):
    """Code of a value by the contract of Attribute."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return attribute.fallback_code if attribute.null_code is None else attribute.null_code
    if attribute.kind == "categorical":
        labels = list(attribute.labels)
        for label in (value, *(f"{value[:length]}*" for length in attribute.prefixes)):
            whole = label == value or len(label) - 1 in attribute.prefixes
            if label in labels and whole:
                return labels.index(label)
        return attribute.fallback_code
    return min(max(bisect_right(attribute.edges[:-1], value) - 1, 0), attribute.regular - 1)


def again(con, attribute):
    """Codes of the values that the codes 0..regular-1 decode to, several draws each."""
    codes = [code for code in range(attribute.regular) for _ in range(5)]
    con.execute('CREATE OR REPLACE TEMP TABLE staged ("row" BIGINT, a0 UINTEGER)')
    con.execute("INSERT INTO staged SELECT unnest(range(?)), unnest(?::UINTEGER[])", [len(codes), codes])
    query = decode_statement(Domain((attribute,)), Fragment("staged"), 7)
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE drawn AS SELECT *, row_number() OVER () - 1 AS row FROM ({query})"
    )
    [(name,)] = con.execute("SELECT DISTINCT typeof(v) FROM drawn").fetchall()
    assert name == attribute.sql_type
    return encoded(con, attribute, "drawn"), codes


def check(con, attribute, texts, values):
    put(con, attribute.sql_type, texts)
    assert encoded(con, attribute) == [expected(attribute, value) for value in values]
    redone, codes = again(con, attribute)
    assert redone == codes


@st.composite
def integer_case(draw):
    sql_type = draw(st.sampled_from(sorted(INTEGERS)))
    low, high = INTEGERS[sql_type]
    whole = st.integers(low, high)
    edge = st.one_of(whole, st.sampled_from([low, high, low + 1, high - 1]), st.integers(max(low, -5), 120))
    cuts = sorted(draw(st.sets(edge, min_size=2, max_size=9)))
    entry = {"type": "numeric", "nullable": draw(st.booleans())}
    if draw(st.booleans()):
        entry["edges"] = cuts
    else:
        entry |= {"lower": cuts[0], "upper": cuts[-1]}
        if draw(st.booleans()):
            entry["bins"] = draw(st.integers(1, 200))
    near = st.sampled_from([c + d for c in cuts for d in (-1, 0, 1) if low <= c + d <= high])
    values = draw(st.lists(st.one_of(st.none(), edge, near), min_size=1, max_size=12))
    return sql_type, entry, values


@pytest.mark.slow
@QUICK
@given(case=integer_case())
def test_integers_at_every_limit(con, case):
    sql_type, entry, values = case
    check(con, one(sql_type, entry), [None if v is None else str(v) for v in values], values)


@pytest.mark.parametrize("sql_type", sorted(INTEGERS))
def test_the_whole_range_of_an_integer_type(con, sql_type):
    low, high = INTEGERS[sql_type]
    values = [None, low, low + 1, 0, 1, high - 1, high]
    for bins in (1, 7):
        attribute = one(sql_type, {"type": "numeric", "lower": low, "upper": high, "bins": bins})
        check(con, attribute, [None if v is None else str(v) for v in values], values)


@st.composite
def decimal_case(draw):
    precision = draw(st.sampled_from([1, 4, 9, 18, 19, 38]))
    scale = draw(st.integers(0, precision))
    limit = 10**precision - 1
    ticks = st.one_of(st.integers(-limit, limit), st.sampled_from([-limit, limit]), st.integers(-9, 9))
    exact = ticks.map(lambda tick: Decimal((int(tick < 0), tuple(map(int, str(abs(tick)))), -scale)))
    cuts = sorted(draw(st.sets(exact, min_size=2, max_size=6)))
    values = draw(st.lists(st.one_of(st.none(), exact, st.sampled_from(cuts)), min_size=1, max_size=9))
    entry = {"type": "numeric", "edges": cuts}
    if draw(st.booleans()):
        entry = {
            "type": "numeric",
            "lower": str(cuts[0]),
            "upper": str(cuts[-1]),
            "bins": draw(st.integers(1, 50)),
        }
    return f"DECIMAL({precision},{scale})", entry, values


@pytest.mark.slow
@QUICK
@given(case=decimal_case())
def test_decimals_of_every_scale(con, case):
    sql_type, entry, values = case
    check(con, one(sql_type, entry), [None if v is None else format(v, "f") for v in values], values)


@st.composite
def float_case(draw):
    sql_type = draw(st.sampled_from(["FLOAT", "DOUBLE"]))
    width = 32 if sql_type == "FLOAT" else 64
    finite = st.floats(allow_nan=False, allow_infinity=False, width=width)
    nice = st.one_of(finite, st.sampled_from([0.0, -0.0, 1.0, 2.5, 0.5]))
    cuts = sorted(draw(st.sets(nice, min_size=2, max_size=7)))
    special = st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0, *cuts])
    values = draw(st.lists(st.one_of(st.none(), nice, special), min_size=1, max_size=12))
    return sql_type, {"type": "numeric", "edges": cuts, "nullable": draw(st.booleans())}, values


@QUICK
@given(case=float_case())
def test_floats_with_nan_and_infinities(con, case):
    sql_type, entry, values = case
    check(con, one(sql_type, entry), [None if v is None else repr(v) for v in values], values)


def test_float_bounds_are_rounded_to_the_column_type(con):
    attribute = one("FLOAT", {"type": "numeric", "lower": 0, "upper": 0.7, "bins": 7})
    assert all(edge == float(np.float32(edge)) for edge in attribute.edges)
    check(con, attribute, ["0.1", "0.3", "0.7"], [float(np.float32(x)) for x in (0.1, 0.3, 0.7)])


DAYS = st.one_of(st.dates(), st.sampled_from([date.min, date.max, date(1970, 1, 1)]))


@QUICK
@given(cuts=st.sets(DAYS, min_size=2, max_size=6), values=st.lists(st.one_of(st.none(), DAYS), max_size=9))
def test_dates_of_all_years(con, cuts, values):
    cuts = sorted(cuts - {date.max - timedelta(days=1)})
    if len(cuts) < 2:
        return
    attribute = one("DATE", {"type": "temporal", "edges": cuts})
    if attribute.edges[-1] == date.max:
        values = [value for value in values if value != date.max]
    texts = [None if v is None else v.isoformat() for v in values]
    check(con, attribute, [*texts, "infinity", "-infinity"], [*values, date.max, date.min])


@pytest.mark.parametrize("sql_type", ["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"])
def test_timestamps_of_every_unit(con, sql_type):
    entry = {"type": "temporal", "lower": "1999-12-31", "upper": datetime(2030, 1, 1, 12, 30, 1), "bins": 7}
    moments = [datetime(1980, 1, 1), datetime(1999, 12, 31), datetime(2010, 5, 5, 1, 2, 3)]
    moments += [datetime(2030, 1, 1, 12, 30, 1), datetime(2200, 1, 1), None]
    check(con, one(sql_type, entry), [None if m is None else str(m) for m in moments], moments)


@pytest.mark.parametrize("sql_type", ["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"])
def test_timestamps_from_year_1_to_9999(con, sql_type):
    attribute = one(sql_type, {"type": "temporal", "lower": "0001-01-01", "upper": "9999-12-31", "bins": 9})
    texts = [
        "0001-01-01 00:00:00",
        "9999-12-31 23:59:59",
        "infinity",
        "-infinity",
        "0044-03-15 (BC) 00:00:00",
    ]
    values = [datetime.min, datetime.max, datetime.max, datetime.min, datetime.min]
    check(con, attribute, texts, values)


def test_zoned_timestamps_do_not_depend_on_the_session(con):
    entry = {"type": "temporal", "lower": "2020-01-01 00:00:00+02:00", "upper": "2020-12-31", "bins": 12}
    attribute = one("TIMESTAMP WITH TIME ZONE", entry)
    texts = ["2019-12-31 22:00:00+00", "2020-06-01 00:00:00+05", None, "infinity", "2020-12-31 23:59:59+00"]
    answers = []
    for zone in ("UTC", "Pacific/Auckland"):
        con.execute(f"SET TimeZone = '{zone}'")
        put(con, attribute.sql_type, texts)
        answers.append((encoded(con, attribute), again(con, attribute)))
    con.execute("RESET TimeZone")
    assert answers[0] == answers[1]
    codes, (redone, wanted) = answers[0]
    assert codes == [0, 4, 0, 11, 11]
    assert redone == wanted


TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=6)


@QUICK
@given(
    labels=st.lists(TEXT, min_size=1, max_size=12, unique=True),
    values=st.lists(st.one_of(st.none(), TEXT), max_size=9),
    other=st.booleans(),
    nullable=st.booleans(),
)
def test_text_with_quotes_and_unknown_values(con, labels, values, other, nullable):
    entry = {"type": "categorical", "categories": labels, "other": other, "nullable": nullable}
    values = [*values, *labels, "", "__other__", "it's", None]
    check(con, one("VARCHAR", entry), values, values)


@pytest.mark.parametrize("more", [0, 300])
def test_text_is_compared_by_bytes_whatever_the_collation(con, more):
    """Few labels are a map, many a join, which would double rows if two labels matched one value."""
    filler = [f"filler {i}" for i in range(more)]
    labels = ["a", "B", "é", *filler, "A " * bool(more), "FILLER 7"]
    attribute = one("VARCHAR", {"type": "categorical", "categories": labels})
    other = attribute.other_code
    values = ["a", "A", "b", "B", "é", "e\u0301", "É", "filler 7"]
    put(con, "VARCHAR", values)
    con.execute("SET default_collation = 'NOCASE'")
    try:
        assert encoded(con, attribute) == [0, other, other, 1, 2, other, other, 3 + 7 if more else other]
    finally:
        con.execute("RESET default_collation")
    con.execute("CREATE OR REPLACE TEMP TABLE src (row BIGINT, v VARCHAR COLLATE NOCASE)")
    con.execute("INSERT INTO src SELECT unnest(range(8)), unnest(?)", [values])
    assert encoded(con, attribute) == [0, other, other, 1, 2, other, other, 3 + 7 if more else other]


PREFIXED = ["250.01", "25*", "250*", "V*", "V57", "*", "é**", "e\u0301a*", "4*", "40*"]
BEGUN = ["250.01", "250.02", "250", "25", "259", "2", "V57", "V58", "V", "v57", "", "*", "**", "250*", "25*"]
BEGUN += ["25**", "éa", "éb", "é", "e\u0301ab", "e\u0301", "401", "41", "4", "4*", " 250", "𝄞50", "'25"]


@pytest.mark.parametrize("more", [0, 400])
@pytest.mark.parametrize("collation", ["", "COLLATE NOCASE", "COLLATE NOACCENT"])
@pytest.mark.parametrize(("prefixes", "other"), [([3, 2, 1], True), ([2], True), ([1], False), ([], True)])
def test_text_that_is_not_listed_has_the_code_of_its_longest_prefix(con, prefixes, other, collation, more):
    """Few labels are looked up, many are joined; characters are code points, as in Python."""
    entry = {
        "type": "categorical",
        "categories": [*PREFIXED, *(f"x{i}" for i in range(more))],
        "other": other,
    }
    entry |= {"prefixes": prefixes, "nullable": True}
    attribute = one("VARCHAR", entry)
    con.execute(f"CREATE OR REPLACE TEMP TABLE src (row BIGINT, v VARCHAR {collation})")
    values = [None, *BEGUN, "x1", "x399", "x400"]
    con.executemany("INSERT INTO src VALUES (?, ?)", list(enumerate(values)))
    assert encoded(con, attribute) == [expected(attribute, value) for value in values]
    redone, codes = again(con, attribute)
    assert redone == codes


@QUICK
@given(
    st.lists(st.text("a1*é", max_size=4), min_size=1, max_size=8, unique=True),
    st.sets(st.integers(1, 3), min_size=1),
    st.lists(st.text("a1*é\u0301", max_size=5), max_size=20),
    st.booleans(),
)
def test_prefixes_of_any_text(con, labels, lengths, values, joined):
    stems = ["a" * length + "*" for length in sorted(lengths, reverse=True)]
    listed = [*dict.fromkeys([*labels, *stems]), *(f"x{i}" for i in range(300 * joined))]
    entry = {"type": "categorical", "categories": listed, "other": True}
    attribute = one("VARCHAR", {**entry, "prefixes": sorted(lengths, reverse=True)})
    check(con, attribute, values, values)


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize(
    ("labels", "other"), [((0, 1), False), ((1, 0), False), ((5, -3), False), ((7,), True)]
)
def test_two_codes_of_integers(con, labels, other, nullable):
    """NULL and every unlisted value fall where the contract says, by one comparison or by several."""
    entry = {"type": "categorical", "categories": list(labels), "other": other, "nullable": nullable}
    values = [-4, -3, 0, 1, 2, 5, 7, None]
    check(con, one("INTEGER", entry), [None if v is None else str(v) for v in values], values)


@pytest.mark.parametrize("categories", [[True, False], [False, True], [False]])
@pytest.mark.parametrize("nullable", [True, False])
def test_two_codes_of_booleans(con, categories, nullable):
    attribute = one("BOOLEAN", {"type": "categorical", "categories": categories, "nullable": nullable})
    check(con, attribute, ["true", "false", None], [True, False, None])


@pytest.mark.parametrize("sql_type", ["TINYINT", "UTINYINT", "BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT"])
@pytest.mark.parametrize("other", [True, False])
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("labels", [(0, 1, 2, 3, 4), (4, 0, 2, 100, 7), "low end", "high end"])
def test_integer_labels_close_together(con, sql_type, other, nullable, labels):
    """Codes by subtraction or a list, values between and beyond the labels included."""
    kind = parse_type(sql_type)
    if isinstance(labels, str):
        start = kind.low if labels == "low end" else kind.high - 9
        labels = tuple(start + step for step in (0, 3, 1, 9, 5))
    values = {tick for label in labels for tick in (label - 1, label, label + 1)}
    values |= {kind.low, kind.high, kind.low + 1, kind.high - 1, 0, 101}
    values = [value for value in sorted(values) if kind.low <= value <= kind.high]
    entry = {"type": "categorical", "categories": list(labels), "other": other, "nullable": nullable}
    check(con, one(sql_type, entry), [*map(str, values), None], [*values, None])


@pytest.mark.parametrize("start", [-100, -(2**63), 2**63 - 50_000])
def test_many_integers_that_count_up_are_subtracted(con, start):
    labels = range(start, start + 50_000)
    attribute = one("BIGINT", {"type": "categorical", "categories": list(labels), "other": True})
    values = [-(2**63), start, start + 1, 0, labels[-1], 2**63 - 1]
    put(con, "BIGINT", [*map(str, values)])
    assert encoded(con, attribute) == [expected(attribute, value) for value in values]
    assert len(attribute.code("v").code) < 1_000


def test_named_enum_from_the_catalog_and_declared(con):
    labels = ("b", "it's", 'q"', "")
    con.execute("CREATE TYPE mood AS ENUM ('b', 'it''s', 'q\"', '')")
    relation = Relation(
        "t", "table", "t", (Column("v", "ENUM('b', 'it''s', 'q\"', '')", enum_labels=labels),)
    )
    catalog = domain_of(None, relation).attributes[0]
    assert catalog.labels == labels and catalog.nullable and catalog.origin == "catalog"
    values = ["b", None, "", "it's", 'q"']
    check(con, catalog, values, values)
    put(con, "mood", values)
    assert encoded(con, catalog) == [0, 4, 3, 1, 2]
    declared = domain_of(
        {"columns": {"v": {"type": "categorical", "categories": ['q"', "b"]}}}, relation
    ).attributes[0]
    assert declared.other
    assert encoded(con, declared) == [1, 2, 2, 2, 0]


def test_csv_text_is_read_as_the_declared_type(con):
    columns = tuple(Column(name, "VARCHAR") for name in ("n", "d", "f", "c", "k"))
    domain = domain_of(
        {
            "columns": {
                "n": {"type": "numeric", "lower": 0, "upper": 9, "nullable": True},
                "d": {"type": "temporal", "lower": "2020-01-01", "upper": "2020-01-10"},
                "f": {"type": "numeric", "lower": 0.5, "upper": 2.5, "bins": 2},
                "c": {"type": "categorical", "categories": ["x", "1"]},
                "k": {"type": "categorical", "categories": [1, 2], "other": False},
            }
        },
        Relation("t", "csv", "t", columns),
    )
    types = [attribute.sql_type for attribute in domain.attributes]
    assert types == ["BIGINT", "DATE", "DOUBLE", "VARCHAR", "BIGINT"]
    con.execute(
        "CREATE OR REPLACE TEMP TABLE src AS FROM (VALUES ('3','2020-01-02','2.0','1','2'), "
        "('x','no','nan','y','z'), (NULL,NULL,NULL,NULL,NULL), "
        "('99','9999-12-31','1e999','x','1')) t(n,d,f,c,k)"
    )
    con.execute("DROP TABLE IF EXISTS temp.coded")
    packs = [(i,) for i in range(5)]
    con.execute(f"CREATE TEMP TABLE coded AS {encode_query(Fragment('src'), domain, packs, True)}")
    assert sorted(con.execute("FROM coded").fetchall(), key=lambda row: (row[0], row[2])) == [
        (3, 1, 1, 1, 1),
        (9, 9, 1, 0, 0),
        (10, 0, 0, 2, 0),
        (10, 0, 0, 2, 0),
    ]


def test_packs_are_mixed_radix_codes(con):
    names = [f"c{i}" for i in range(4)]
    sizes = (200, 3, 70, 100)
    attributes = tuple(
        Attribute(name, "INTEGER", "numeric", edges=tuple(range(size + 1)))
        for name, size in zip(names, sizes, strict=True)
    )
    rng = np.random.default_rng(5)
    codes = np.stack([rng.integers(0, size, 500) for size in sizes], axis=1)
    codes[0] = np.array(sizes) - 1
    columns = ", ".join(f"unnest(?::INTEGER[]) AS {ident(name)}" for name in names)
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE src AS SELECT {columns}", [codes[:, i].tolist() for i in range(4)]
    )
    packs = [(0,), (2, 1), (0, 1, 2, 3), (3, 0)]
    con.execute("DROP TABLE IF EXISTS temp.coded")
    con.execute(f"CREATE TEMP TABLE coded AS {encode_query(Fragment('src'), Domain(attributes), packs)}")
    got = con.execute("FROM coded").fetchnumpy()
    for position, pack in enumerate(packs):
        shape = [sizes[i] for i in pack]
        wanted = np.ravel_multi_index([codes[:, i] for i in pack], shape)
        assert got[f"p{position}"].tolist() == wanted.tolist()
        assert got[f"p{position}"].dtype.itemsize * 8 == {0: 8, 1: 8, 2: 32, 3: 16}[position]


def test_a_repeated_label_would_double_rows_and_is_refused():
    attribute = Attribute("v", "VARCHAR", "categorical", labels=("a", "a"))
    with pytest.raises(InternalError):
        encode_query(Fragment("src"), Domain((attribute,)), [(0,)])


def test_code_types_are_the_smallest():
    sizes = [1, 256, 257, 65_536, 65_537, 2**32, 2**32 + 1, 2**64]
    names = ["UTINYINT"] * 2 + ["USMALLINT"] * 2 + ["UINTEGER"] * 2 + ["UBIGINT"] * 2
    assert [code_type(size) for size in sizes] == names
    with pytest.raises(InternalError):
        code_type(2**64 + 1)

"""The privacy proof, run: whatever was answered on a table, its neighbour may answer the same.

A release on D is recorded: every statement, question, exact vector and noisy answer. The same noisy
answers are then given to a release on a neighbour D', under the same identifiers, clock, seeds and
bounding key. If the proof holds, everything but the exact vectors is equal, these differ by no more
than was declared, and the difference is paid for by the debit.
"""

import math
import pickle
import re
import secrets
import warnings
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, partial
from importlib import import_module
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.gaussian import quantile_of_logit

import dpsyn_sql
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, SelectionEvent
from dpsyn_sql.auditing.testing import RecordingLedger, RecordingNoise, ReplayedNoise
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.fit.views import Measurements, fit_margins
from dpsyn_sql.methods import METHODS, NO_TERMS, Adaptive, DPCopula, PrivBayes, Recipe
from dpsyn_sql.methods.models.margins import ProductModel
from dpsyn_sql.planning.asking import Reserve
from dpsyn_sql.planning.queries import Choice, MarginalQuery, Marginals
from dpsyn_sql.planning.row_labels import NearestLabel, free_names
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.private.measure.scores import STEPS

MEASURE = import_module("dpsyn_sql.front.measure")
CERTIFICATE = import_module("dpsyn_sql.report.certificate")
epsilon_of = cache(CERTIFICATE.epsilon_from_events)  # half of the time of a small release

BOUNDING_KEY = 7
K = 3
COLUMNS = "(who VARCHAR, n INTEGER, x DOUBLE, s VARCHAR, d DATE)"
SPEC = {
    "columns": {
        "n": {"type": "numeric", "lower": -5, "upper": 20, "bins": 4},
        "x": {"type": "numeric", "lower": 0.0, "upper": 1.0, "bins": 3, "nullable": True},
        "s": {"type": "categorical", "categories": ["a", "b"], "nullable": True},
        "d": {"type": "temporal", "lower": "2001-01-01", "upper": "2002-12-31", "bins": 2},
    }
}
UNITS = {
    "row": dict(exclude=("who",)),
    "unit": dict(unit="who", most=K, weights=False),
}


class Chooser(Recipe):
    """Measures every attribute, chooses the two pairs that are least like independent, measures them."""

    name = "chooser"

    model = ProductModel

    def run(self, door, domain, budget, terms=NO_TERMS):
        first, rest = budget.split((1, 2))
        pairs = tuple(MarginalQuery(pair) for pair in combinations(domain.names, 2))
        one_way = door.ask(Marginals([MarginalQuery((name,)) for name in domain.names]), first, "one-way")
        door.reserve(Reserve("the pairs that are chosen", rest, pairs))
        margins = one_way.read()
        model = ProductModel(domain, fit_margins(domain, Measurements(margins)))
        references = [np.rint(model.project(query.attrs)).astype(np.int64) for query in pairs]
        choosing, measuring = rest.split((1, 1))
        chosen = door.ask(Choice(pairs, references, min(2, len(pairs))), choosing).read()
        answers = [*margins, *door.ask(Marginals([pairs[i] for i in chosen]), measuring).read()]
        return ProductModel(domain, fit_margins(domain, Measurements(answers)))


class Preselecting(Adaptive):
    """Adaptive marginals that choose among few candidates as among very many."""

    name = "preselecting"
    constants = replace(Adaptive.constants, preselected=1, preselect_between=(2, 9))


class Tripling(Adaptive):
    """Adaptive marginals that ask for three-way tables at any budget, and however few there are."""

    name = "tripling"
    constants = replace(
        Adaptive.constants,
        triple_rho=0.0,
        fewest_triples=1,
        charge=0.0,
        sampling=0.0,
        full_noise=0.0,
        group_attributes=99,
    )


class Screening(Adaptive):
    """Adaptive marginals that ask about sets of columns however many rows pairs move."""

    name = "screening"
    constants = replace(
        Adaptive.constants, full_noise=0.0, tied=10.0, visible=1e9, least_set=-1e9, screen_clear=-1e9
    )


class Grouping(Tripling):
    """Adaptive marginals that ask about hidden groups however little a mixture explains."""

    name = "grouping"
    constants = replace(
        Tripling.constants,
        group_attributes=2,
        group_free=1e9,
        group_apart=9.0,
        group_chance=1e9,
        group_depends=1e9,
    )


class Labelling(Recipe):
    """One-way tables, then tables of labels that follow from the noisy answers."""

    name = "labelling"
    model = ProductModel

    def run(self, door, domain, budget, terms=NO_TERMS):
        first, rest = budget.split((1, 1))
        one_way = door.ask(Marginals([MarginalQuery((name,)) for name in domain.names]), first, "one-way")
        door.reserve(Reserve("labels", rest, (), 2, 1_000, 10_000))
        margins = one_way.read()
        labels = self.labels(domain, margins)
        queries = [MarginalQuery((name, label.name)) for name in domain.names for label in labels]
        door.ask(Marginals(queries, labels), rest).read()
        return ProductModel(domain, fit_margins(domain, Measurements(margins)))

    def labels(self, domain, margins):
        """Scores are the noisy counts."""
        counts = {table.attrs[0]: np.clip(table.values, -(10**12), 10**12).tolist() for table in margins}
        scores = tuple((name, (tuple(own), tuple(own[::-1]))) for name, own in counts.items())
        one, other = free_names(domain, 2)
        return NearestLabel(one, (0, 1), scores), NearestLabel(other, (1, 0), scores[:1])


@dataclass(frozen=True, slots=True)
class Parting(DPCopula):
    """DPCopula in parts."""

    name = "parting"
    hybrid: bool = True


@dataclass(frozen=True, slots=True)
class Informing(PrivBayes):
    """PrivBayes by mutual information."""

    name = "informing"
    score: str = "I"


@dataclass(frozen=True, slots=True)
class Departing(PrivBayes):
    """PrivBayes by the distance to independence."""

    name = "departing"
    score: str = "R"


ADDED_HERE = {
    method.name: method
    for method in (
        Chooser(),
        Preselecting(),
        Tripling(),
        Screening(),
        Grouping(),
        Labelling(),
        Parting(),
        Informing(),
        Departing(),
    )
}
EVERY = {**METHODS, **ADDED_HERE}
STATIC = sorted(name for name, method in METHODS.items() if method.static)


class Extreme:
    """Answers that no table would give, to drive every branch after the door."""

    def __init__(self, style):
        self.style, self.rng = style, np.random.default_rng(5)

    def gaussian(self, values, scale):
        sizes = {"zero": 0, "low": -(10**9), "high": 10**9}
        if self.style == "exact":
            return values
        if self.style == "mixed":
            return self.rng.choice([-(10**9), 10**9], len(values))
        return np.full(len(values), sizes[self.style])

    laplace = gaussian

    def select(self, scores, scale, kind, number):
        order = np.argsort(-scores, kind="stable") if self.style == "exact" else np.arange(len(scores))[::-1]
        return order[:number]


STYLES = ("noise", "exact", "zero", "low", "high", "mixed")


def answers_of(style):
    return ExactNoise() if style == "noise" else Extreme(style)


@dataclass
class Run:
    """All that a release did: ``public`` must be equal on neighbours, ``calls`` holds the private side."""

    public: dict
    calls: list
    events: tuple
    questions: list
    budget: object


def released(con, source, noise, **options):
    """One release with every random thing but the noise fixed, and the noise given."""
    trace, ledger, recorder = [], RecordingLedger(), RecordingNoise(noise)
    guarded = DuckDBEngine._guarded

    def traced(self, run, sql, step):
        trace.append((step, without_random_names(sql)))
        return guarded(self, run, sql, step)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for name, method in ADDED_HERE.items():
            patch.setitem(METHODS, name, method)
        patch.setattr(MEASURE, "ExactNoise", lambda: recorder)
        patch.setattr(secrets, "randbits", lambda bits: BOUNDING_KEY)  # which rows of a unit count
        patch.setattr(CERTIFICATE, "epsilon_from_events", lambda found, at: epsilon_of(tuple(found), at))
        patch.setattr(DuckDBEngine, "_guarded", traced)
        result = dpsyn_sql.release(con, source, domain=SPEC, ledger=ledger, **options)
    calls = [(call.mechanism, call.scale, call.exact.shape, call.answer.tolist()) for call in recorder.calls]
    public = {
        "statements": trace,
        "questions": ledger.questions,
        "events": ledger.events,
        "mechanisms": calls,
        "debit": (ledger.keys, ledger.budgets),
        "measurements": [(m.attrs, m.sigma, m.values.tolist()) for m in result.measurements],
        "model": pickle.dumps(result.model),
        "certificate": result.certificate(),
        "told": (repr(result), result.notes, [str(warning.message) for warning in warned]),
        "output": output_of(con, result.table),
    }
    return Run(public, recorder.calls, ledger.events, ledger.questions, ledger.budgets[0])


def without_random_names(sql):
    return re.sub(r"[0-9a-f]{32}|[0-9a-f]{16}(?=['/])", "<random>", str(sql))


def output_of(con, table):
    if con is None:
        return Path(table).read_bytes()
    described = con.execute(f"DESCRIBE {table}").fetchall()
    return described, repr(con.execute(f"FROM {table}").fetchall())


def on_table(table, noise, **options):
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t {COLUMNS}")
        if table:
            con.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", table)
        return released(con, "t", noise, **options)


def check_coupled(run, first, second, answers, rows_per_unit):
    """Record on ``first``, replay on ``second``; returns how much of the debit the difference used."""
    one = run(first, answers)
    two = run(second, ReplayedNoise(one.calls))
    for what, found in one.public.items():
        assert two.public[what] == found, f"neighbours differ in {what}"
    return paid(one, two, rows_per_unit)


def paid(one, two, k):
    """The share of the debit that the difference behind the door costs, once it is as declared."""
    assert len(one.calls) == len(two.calls) == len(one.events) == len(one.questions)
    used = [
        price(after.exact - before.exact, before, event, question, k, one.budget.kind)
        for before, after, event, question in zip(
            one.calls, two.calls, one.events, one.questions, strict=True
        )
    ]
    assert sum(used) <= sum(event.cost(one.budget.kind) for event in one.events) <= one.budget.fraction
    return float(sum(used) / one.budget.fraction)


def price(change, call, event, question, k, kind):
    """mu^2 / 2, rho or epsilon of one question's difference at the noise that was really asked for."""
    if question["ask"] == "discover":  # rows per unit: one cell of one table, whatever the bound
        tables, k = 1, 1
    else:
        tables = len(question["tables"])
    assert change.dtype == np.int64
    if isinstance(event, SelectionEvent):
        largest = int(np.abs(change).max())
        steps = STEPS[question["score"]](question["bits"]) if question["ask"] == "family" else 1
        assert call.mechanism == "select" and call.scale == event.scale
        assert len(change) == tables and largest <= steps * k <= event.sensitivity
        assert len(call.answer) == event.number == len(set(call.answer.tolist()))
        return choice_price(Fraction(2 * largest) / Fraction(call.scale), kind) * event.number
    lattice = getattr(event, "lattice", 1)  # counts are asked in steps of it
    assert lattice == (16 if kind == "gdp" and question["ask"] != "residuals" else 1)
    assert not (change % lattice).any()
    change = change // lattice
    l1, l2_squared = int(np.abs(change).sum()), int((change**2).sum())
    if question["ask"] == "residuals":  # of tables of 2 to 6 codes an attribute: the event says which
        assert isinstance(event, GaussianEvent) and event.l2_squared % k**2 == 0
    else:
        assert l1 <= tables * k and l2_squared <= tables * k**2
    if isinstance(event, GaussianEvent):
        assert call.mechanism == "gaussian" and call.scale == event.sigma * lattice
        assert l2_squared <= event.l2_squared
        smooth = Fraction(call.scale) ** 2 - (4 if kind == "gdp" else 0)  # in steps
        return Fraction(l2_squared) * lattice**2 / (2 * smooth)
    assert isinstance(event, LaplaceEvent)
    assert call.mechanism == "laplace" and call.scale == event.scale and l1 <= event.l1
    return Fraction(l1) / Fraction(call.scale)


def choice_price(epsilon, kind):
    """Of one choice whose privacy loss has a range of epsilon; docs/privacy.md, "Exact Gaussian accounting"."""
    if kind == "gdp":
        with localcontext(prec=40):
            return 2 * Fraction(quantile_of_logit(Decimal(epsilon.numerator) / epsilon.denominator / 2)) ** 2
    return epsilon if kind == "pure" else epsilon**2 / 8


NAMES = st.sampled_from(["ann", "Ann", "bob", "", None])
ROW = st.tuples(
    NAMES,
    st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1), st.integers(-6, 22)),
    st.one_of(st.none(), st.floats(), st.sampled_from([math.nan, math.inf, -math.inf, 0.5])),
    st.one_of(st.none(), st.sampled_from(["a", "b", "", "A", "zzz", "'", "__other__"])),
    st.one_of(st.none(), st.dates().map(str), st.sampled_from(["2001-05-05", "0001-01-01"])),
)
ADDED = st.lists(ROW, min_size=1, max_size=2 * K)


NEIGHBOURS = {
    "rows": st.lists(ROW, max_size=6),
    "added": ADDED,
    "alike": st.booleans(),
    "place": st.integers(0, 6),
    "removed": st.booleans(),
    "style": st.sampled_from(STYLES),
    "delta": st.sampled_from([1e-9, 0]),
}
QUICK = settings(max_examples=2, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("method", ["adaptive", "independent"])
@QUICK
@given(st.sampled_from(sorted(UNITS)), st.fixed_dictionaries(NEIGHBOURS))
def test_neighbours_answer_alike(method, unit, neighbours):
    """Under units that are drawn; the slow test goes through all of them, by every method."""
    check_neighbours(method, unit, **neighbours)


@pytest.mark.slow
@pytest.mark.required
@pytest.mark.parametrize("unit", sorted(UNITS))
@pytest.mark.parametrize("method", sorted(EVERY))
@settings(QUICK, max_examples=10)
@given(**NEIGHBOURS)
def test_many_neighbours_answer_alike(method, unit, **neighbours):
    check_neighbours(method, unit, **neighbours)


def check_neighbours(method, unit, rows, added, alike, place, removed, style, delta):
    if unit == "row":
        added = added[:1]
    else:  # one more person, who has no other rows
        added = [("eve", *row[1:]) for row in ([added[0]] * len(added) if alike else added)]
    tables = rows, [*rows[:place], *added, *rows[place:]]
    first, second = reversed(tables) if removed else tables
    counted = None if style in ("noise", "low", "zero") else 30
    run = partial(on_table, method=method, delta=delta, rows=counted, **UNITS[unit])
    share = check_coupled(run, first, second, answers_of(style), K if unit == "unit" else 1)
    if unit == "row" and method in STATIC:
        assert share > 1 - 1e-9  # each table changes, so nothing of the debit is to spare


@pytest.mark.parametrize("delta", [1e-9, 0])
@pytest.mark.parametrize("method", STATIC)
def test_a_unit_of_k_equal_rows_uses_the_whole_debit(method, delta):
    """The declared sensitivities are reached: with less noise these neighbours would cost too much."""
    rows = [("ann", 1, 0.5, "a", "2001-05-05"), ("bob", 9, None, None, None)]
    eve = [("eve", 3, 0.1, "b", "2002-05-05")] * (K + 2)
    run = partial(on_table, method=method, delta=delta, **UNITS["unit"])
    assert check_coupled(run, rows, rows + eve, ExactNoise(), K) > 1 - 1e-9


@pytest.mark.parametrize("delta", [1e-9, 0])
def test_a_score_changes_by_as_much_as_is_declared(delta):
    """Scores of an empty table against k equal rows far from every reference."""
    eve = [("eve", 3, 0.1, "b", "2002-05-05")] * K
    run = partial(on_table, method=Chooser.name, delta=delta, **UNITS["unit"])
    assert check_coupled(run, [], eve, Extreme("zero"), K) > 1 - 1e-9


@pytest.mark.parametrize("unit", sorted(UNITS))
@pytest.mark.parametrize("delta", [1e-9, 0])
@pytest.mark.parametrize("method", [Informing.name, Departing.name])
def test_scores_of_families_change_by_no_more_than_is_declared(method, delta, unit):
    rows = [
        (f"p{i}", 9 * (i % 2), i // 2 % 2 / 2, "ab"[i % 4 == 0], f"200{1 + i % 2}-05-05") for i in range(80)
    ]
    eve = [("eve", 3, 0.1, "b", "2002-05-05")] * (2 * K if unit == "unit" else 1)
    run = partial(on_table, method=method, delta=delta, rows=30, epsilon=20.0, **UNITS[unit])
    asked = [question["ask"] for question in run(rows, Extreme("exact")).questions]
    assert asked.count("family") == 3 and "select" not in asked
    check_coupled(run, rows, rows + eve, Extreme("exact"), K if unit == "unit" else 1)


TRIPLED = [
    (f"p{i}", 9 * (cell % 2), cell // 2 / 2, "ab"[i // 6 < (9, 3, 3, 4)[cell]], f"200{1 + i % 2}-05-05")
    for i in range(60)
    for cell in ((0, 0, 1, 2, 3, 3)[i % 6],)
]
"""People whose number of "b" no model of pairs explains."""


@pytest.mark.parametrize("unit", sorted(UNITS))
def test_three_way_tables_are_asked_for_and_change_by_as_much_as_is_declared(unit):
    """Both kinds of question, distance and table, are among those that the coupling suite couples."""
    eve = [("eve", 3, 0.1, "b", "2002-05-05")] * (3 * K if unit == "unit" else 1)
    run = partial(on_table, method=Tripling.name, delta=1e-9, rows=30, epsilon=100.0, **UNITS[unit])
    asked = [
        question["ask"]
        for question in run(TRIPLED, Extreme("exact")).questions
        if any(len(attrs) == 3 for attrs in question.get("tables", ()))
    ]
    assert asked[0] == "distance" and {"measure", "residuals"} & set(asked)
    check_coupled(run, TRIPLED, TRIPLED + eve, Extreme("exact"), K if unit == "unit" else 1)


@pytest.mark.parametrize("unit", sorted(UNITS))
@pytest.mark.parametrize(
    ("method", "what"),
    [
        (Screening.name, lambda question: question["ask"] == "distance" and len(question["tables"][0]) > 2),
        (Grouping.name, lambda question: "labels" in question),
        ("adaptive", lambda question: any(len(attrs) == 4 for attrs in question.get("tables", ()))),
    ],
)
def test_sets_groups_and_full_tables_change_by_as_much_as_is_declared(method, what, unit):
    eve = [("eve", 3, 0.1, "b", "2002-05-05")] * (3 * K if unit == "unit" else 1)
    run = partial(on_table, method=method, delta=1e-9, rows=30, epsilon=400.0, **UNITS[unit])
    assert any(map(what, run(TRIPLED, Extreme("exact")).questions))
    check_coupled(run, TRIPLED, TRIPLED + eve, Extreme("exact"), K if unit == "unit" else 1)


def test_residuals_of_k_equal_rows_use_all_that_is_charged():
    """One-way residuals, pairs and triples: with less noise these neighbours would cost too much."""
    eve = [("eve", 3, 0.1, "b", "2002-05-05")] * (K + 2)
    run = partial(on_table, method=Tripling.name, delta=1e-9, rows=30, epsilon=100.0, **UNITS["unit"])
    one = run(TRIPLED, Extreme("exact"))
    two = run(TRIPLED + eve, ReplayedNoise(one.calls))
    asked = {1: 0, 2: 0, 3: 0}
    for before, after, event, question in zip(one.calls, two.calls, one.events, one.questions, strict=True):
        if question["ask"] == "residuals":
            asked[len(question["tables"][0])] += 1
            assert ((after.exact - before.exact) ** 2).sum() == event.l2_squared
    assert all(asked.values())


@pytest.mark.parametrize("unit", sorted(UNITS))
def test_tables_of_parts_change_by_as_much_as_is_declared(unit):
    """A part is a cell of a marginal: rows of one unit that lie in different parts change one table by k."""
    rows = [(f"p{i}", 9 * (i % 2), i // 2 % 2 / 2, "ab"[i % 4 == 0], "2001-05-05") for i in range(400)]
    eve = [
        ("eve", 3 + 9 * (i % 2), 0.1, "ab"[i % 2], "2002-05-05") for i in range(K if unit == "unit" else 1)
    ]
    run = partial(on_table, method=Parting.name, delta=1e-9, rows=30, epsilon=100.0, **UNITS[unit])
    asked = run(rows, Extreme("exact")).questions
    assert max(len(attrs) for question in asked for attrs in question.get("tables", ())) >= 3
    check_coupled(run, rows, rows + eve, Extreme("exact"), K if unit == "unit" else 1)


@pytest.mark.parametrize("style", ["exact", "noise"])
@pytest.mark.parametrize("unit", sorted(UNITS))
def test_labels_change_tables_by_as_much_as_is_declared(unit, style):
    """Rows of the people who are there keep their labels, whoever else is there and wherever they lie."""
    eve = [("eve", 3, 0.1, "b", "2002-05-05")] * (K if unit == "unit" else 1)
    run = partial(on_table, method=Labelling.name, delta=1e-9, rows=30, epsilon=20.0, **UNITS[unit])
    one = run(TRIPLED, Extreme("exact"))
    assert [question["ask"] for question in one.questions][-2:] == ["measure", "measure"]
    assert "labels" in one.questions[-1]
    for table in ([*eve, *TRIPLED], [*TRIPLED[:30], *eve, *TRIPLED[30:]], [*TRIPLED[::-1], *eve]):
        check_coupled(run, TRIPLED, table, answers_of(style), K if unit == "unit" else 1)


FILES = [("t.csv", "o.csv"), ("t.parquet", "o.parquet"), ("a query over a file", "o.csv")]


# What a method asks and what a file is read as do not meet: every method once, and every file by one of them.
@pytest.mark.parametrize(
    ("source", "output", "method"),
    [
        *((*file, "adaptive") for file in FILES),
        *(
            pytest.param(*FILES[place % 3], method, marks=[pytest.mark.slow, pytest.mark.required])
            for place, method in enumerate(sorted(EVERY.keys() - {"adaptive"}))
        ),
    ],
)
def test_files_of_neighbours_give_the_same_bytes(tmp_path, source, output, method):
    base = [("ann", 3, 0.5, "a", "2001-05-05"), ("ann", None, math.nan, "zz", None)] * 3

    def run(rows, noise):
        with duckdb.connect() as con:
            con.execute(f"CREATE TABLE t {COLUMNS}")
            con.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
            for name in ("t.csv", "t.parquet"):
                con.execute(f"COPY t TO '{tmp_path / name}'")
        name = f"SELECT * FROM '{tmp_path / 't.parquet'}'" if " " in source else tmp_path / source
        return released(
            None, name, noise, method=method, into=tmp_path / output, replace=True, **UNITS["row"]
        )

    extra = (None, 2**31 - 1, -math.inf, "'", "9999-12-31")
    check_coupled(run, base, [extra, *base], ExactNoise(), 1)

"""The noise that reaches the reader is the noise that the ledger was charged for.

Residuals are what was released minus counts that are made here, without the package. They are
compared with the ledger's event, not with what the release says of itself.
"""

import itertools
import math

import duckdb
import numpy as np
import pytest
from scipy.stats import chi2, chisquare, norm
from support.doors import FakeCounter, ReadAtOnce

import dpsyn_sql
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, SelectionEvent
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.auditing.testing import RecordingLedger
from dpsyn_sql.methods import METHODS
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.planning.queries import Choice, MarginalQuery, Marginals, Residuals
from dpsyn_sql.private.measure.noise import ExactNoise

pytestmark = [pytest.mark.slow, pytest.mark.required]

LOWEST_P = 1e-7
SIZES = (40, 30, 20)
MANY = 500  # cells for which sums are near enough to normal
ROWS = 1500
SPEC = {
    "columns": {
        name: {"type": "numeric", "lower": 0, "upper": size - 1, "bins": size}
        for name, size in zip("abc", SIZES, strict=True)
    }
}


def weights(event, z):
    """Probabilities of the noise in whole rows, up to a factor, by the definition of the mechanism."""
    if not isinstance(event, GaussianEvent):
        return np.exp(-np.abs(z) / event.scale)
    half = event.lattice / 2  # so many steps away go to the even one of two counts
    steps = np.arange(-(event.lattice // 2), event.lattice // 2 + 1)
    places = z[:, None] * event.lattice + steps
    goes_here = (np.abs(steps) < half) | (z[:, None] % 2 == 0)
    return (np.exp(-((places / event.lattice) ** 2) / (2 * event.sigma**2)) * goes_here).sum(axis=1)


def law(event):
    """Noise in whole rows, and its probabilities."""
    reach = math.ceil(60 * (event.sigma if isinstance(event, GaussianEvent) else event.scale))
    z = np.arange(-reach, reach + 1)
    return z, weights(event, z) / weights(event, z).sum()


def variance_of(event):
    z, mass = law(event)
    return (mass * z**2).sum()


def size_of(event, noise):
    """Squares of Gaussian noise and absolute values of the other: what has a generating function."""
    return (noise / event.sigma) ** 2 if isinstance(event, GaussianEvent) else np.abs(noise / event.scale)


def at_most_chance(parts):
    """Chernoff's bound of the probability that the sizes of all noise add up to so much, or to so little.

    ``parts``: (event, noise). The bound is above the true probability for any number of cells, however few.
    """
    found = sum(size_of(event, noise).sum() for event, noise in parts)
    laws = [(len(noise), *law(event), event) for event, noise in parts]

    def log_bound(t):
        return (
            sum(
                n * np.logaddexp.reduce(t * size_of(event, z) + np.log(mass + 1e-300))
                for n, z, mass, event in laws
            )
            - t * found
        )

    most = 0.49 if isinstance(parts[0][0], GaussianEvent) else 0.98
    return math.exp(min(0.0, *map(log_bound, (*np.linspace(-3, -0.02, 60), *np.linspace(0.01, most, 50)))))


def two_sided(z):
    return 2 * norm.sf(abs(z))


def residuals(epsilon, delta, unit, method="copula"):
    """One release of a fixed table: (ledgered event, residual tables) for each question for tables."""
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, size, ROWS) for size in SIZES], axis=1)  # most cells are empty
    ledger = RecordingLedger()
    with duckdb.connect() as con:
        con.execute(
            "CREATE TABLE t AS SELECT 'p' || row_number() OVER () AS who, * FROM "
            "(SELECT unnest(?::INTEGER[]) AS a, unnest(?::INTEGER[]) AS b, unnest(?::INTEGER[]) AS c)",
            [column.tolist() for column in codes.T],
        )
        result = dpsyn_sql.release(
            con,
            "t",
            epsilon=epsilon,
            delta=delta,
            domain=SPEC,
            ledger=ledger,
            rows=1,
            method=method,
            **unit,
        )
    found = (table for table in result.measurements if not table.composed)
    for event, question in zip(ledger.events, ledger.questions, strict=True):
        if question["ask"] != "measure":
            continue
        yield event, [residual(next(found), tuple(attrs), codes) for attrs in question["tables"]]


def residual(noisy, attrs, codes):
    if not attrs:  # the total
        return noisy.values - ROWS
    axes = ["abc".index(name) for name in attrs]
    maps = [
        np.arange(SIZES[axis]) if bins is None else np.array(bins)
        for axis, bins in zip(axes, noisy.maps or (None,) * len(axes), strict=True)
    ]
    exact = np.zeros([bins.max() + 1 for bins in maps], dtype=np.int64)
    np.add.at(exact, tuple(bins[codes[:, axis]] for axis, bins in zip(axes, maps, strict=True)), 1)
    assert noisy.attrs == attrs and noisy.values.shape == exact.shape
    return noisy.values - exact


CASES = {
    "gaussian": (2.0, 1e-9, dict(exclude=("who",))),
    "laplace": (3.0, 0, dict(exclude=("who",))),
    "gaussian, units of 3 rows": (5.0, 1e-9, dict(unit="who", most=3, weights=False, exclude=("who",))),
    "laplace, units of 3 rows": (9.0, 0, dict(unit="who", most=3, weights=False, exclude=("who",))),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_residuals_have_the_ledgered_variance_and_nothing_in_common(case):
    """A variance that is off by a third fails, and so does noise that cells share or that sums lack."""
    large = [found for found in residuals(*case) if sum(table.size for table in found[1]) > MANY]
    assert large
    for event, tables in large:
        flat = np.concatenate([table.ravel() for table in tables]).astype(float)
        variance, size = variance_of(event), len(flat)
        assert at_most_chance([(event, flat)]) > LOWEST_P, "variance"
        assert two_sided(flat.mean() / math.sqrt(variance / size)) > LOWEST_P, "mean"
        for lag in (1, 2, 7, SIZES[-1]):
            product = (flat[lag:] * flat[:-lag]).mean() / variance
            assert two_sided(product * math.sqrt(size - lag)) > LOWEST_P, f"correlation at lag {lag}"
        for table in tables:
            check_sums(table, variance)


def check_sums(table, variance):
    """A sum over n cells has n times the variance of one only if they are independent."""
    for sums, cells in ((table.sum(axis=1), table.shape[1]), (table.sum(axis=0), table.shape[0])):
        statistic = (sums.astype(float) ** 2).sum() / (cells * variance)
        # Sums of few cells have heavier tails than the normal: a wide bound, and shared noise is far outside.
        assert chi2.sf(statistic / 1.5, len(sums)) > LOWEST_P
        assert chi2.cdf(statistic * 1.5, len(sums)) > LOWEST_P


@pytest.mark.parametrize("delta", [1e-9, 0])
@pytest.mark.parametrize("method", METHODS)
def test_tables_of_every_method_have_the_ledgered_noise(method, delta):
    """All cells of four releases together, also those over bins: noise of half the scale fails."""
    asked = (residuals(3.0, delta, dict(exclude=("who",)), method) for _ in range(4))
    parts = [
        (event, table.ravel().astype(float))
        for event, tables in itertools.chain.from_iterable(asked)
        for table in tables
    ]
    residual = method == "adaptive" and delta > 0  # the total alone; the door's test has the rest
    cells = sum(noise.size for _, noise in parts)
    assert cells >= 4 * (1 if residual else sum(SIZES))
    assert at_most_chance(parts) > LOWEST_P
    halved = [(event, noise / 2) for event, noise in parts]
    assert residual or at_most_chance(halved) < LOWEST_P, "so few cells could not tell half the scale"


@pytest.mark.parametrize("delta", [1e-9, 0])
def test_two_releases_of_one_table_share_no_noise(delta):
    """Nothing is seeded: the same question on the same rows is answered anew."""
    compared = 0
    for (event, first), (_, second) in zip(
        residuals(2.0, delta, dict(exclude=("who",))),
        residuals(2.0, delta, dict(exclude=("who",))),
        strict=True,
    ):
        one, two = (np.concatenate([table.ravel() for table in side]) for side in (first, second))
        if len(one) > MANY:
            assert two_sided((one * two).mean() / variance_of(event) * math.sqrt(len(one))) > LOWEST_P
            compared += 1
    assert compared


# -- the whole distribution, through the real curator ---------------------------------------------

CELLS = 30_000
WIDE = Domain((Attribute("a", "INTEGER", "numeric", edges=tuple(range(CELLS + 1))),))
LETTERS = Domain(tuple(Attribute(name, "BOOLEAN", "categorical", labels=(False, True)) for name in "abc"))


def no_rows(domain):
    """The counter of a source without rows."""
    return FakeCounter(lambda query: np.zeros(query.shape(domain), dtype=np.int64))


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(
    "budget",
    [
        Budget("gdp", 2 * 10**13),
        Budget("gdp", 10**15),
        Budget("gdp", 4 * 10**16),
        Budget("pure", 5 * 10**14),
    ],
    ids=str,
)
def test_noise_has_the_exact_probabilities_of_the_ledgered_event(budget, rows):
    """Chi-square over all values: a scale off by five per cent fails, whatever the shape."""
    ledger = RecordingLedger()
    with ledger.open_release(ReleaseKey(None, "r", None, {}), budget) as entry:
        door = ReadAtOnce(no_rows(WIDE), WIDE, rows, entry, ExactNoise())
        (table,) = door.ask(Marginals([MarginalQuery(("a",))]), budget)
    (event,) = ledger.events
    assert getattr(event, "lattice", 1) == (16 if budget.kind == "gdp" else 1)
    scale = event.scale if isinstance(event, LaplaceEvent) else event.sigma
    z = np.arange(-math.ceil(60 * scale), math.ceil(60 * scale) + 1)
    expected = CELLS * weights(event, z) / weights(event, z).sum()
    seen = np.bincount(table.values - z[0], minlength=len(z))
    assert seen.sum() == CELLS and len(seen) == len(z)
    frequent = expected >= 10
    pooled = [np.append(each[frequent], each[~frequent].sum()) for each in (seen, expected)]
    assert chisquare(*pooled).pvalue > LOWEST_P


@pytest.mark.parametrize("rows", [1, 3])
def test_residuals_of_marginals_have_the_exact_probabilities_of_the_ledgered_event(rows):
    """Chi-square over all values of two tables of different shapes, asked together."""
    sizes, scale = (60, 50, 4), 100 * rows
    domain = Domain(
        tuple(
            Attribute(name, "INTEGER", "numeric", edges=tuple(range(size + 1)))
            for name, size in zip("abc", sizes, strict=True)
        )
    )
    one_row = math.prod(k * (k - 1) for k in sizes) + math.prod(k * (k - 1) for k in sizes[:2])
    budget = Budget("gdp", 10**15 * one_row * rows**2 // (2 * scale**2))
    queries, ledger = [MarginalQuery(tuple("abc")), MarginalQuery(tuple("ab"))], RecordingLedger()
    with ledger.open_release(ReleaseKey(None, "r", None, {}), budget) as entry:
        door = ReadAtOnce(no_rows(domain), domain, rows, entry, ExactNoise())
        tables = door.ask(Residuals(queries), budget)
    (event,) = ledger.events
    assert event.l2_squared == one_row * rows**2 and event.sigma == pytest.approx(scale, rel=1e-3)
    z = np.arange(-60 * scale, 60 * scale + 1)
    assert all(table.scale == event.sigma for table in tables)
    values = np.concatenate([table.values.ravel() for table in tables])
    expected = values.size * weights(event, z) / weights(event, z).sum()
    seen = np.bincount(values - z[0], minlength=len(z))
    frequent = expected >= 10
    assert frequent.sum() > 100
    pooled = [np.append(each[frequent], each[~frequent].sum()) for each in (seen, expected)]
    assert chisquare(*pooled).pvalue > LOWEST_P


def exponential_mechanism(scores, scale):
    mass = np.exp((scores - scores.max()) / scale)
    return mass / mass.sum()


def permute_and_flip(scores, scale):
    """McKenna and Sheldon (2020), Algorithm 1, over all orders of the candidates."""
    accept = np.exp((scores - scores.max()) / scale)
    chosen = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        reached = 1 / math.factorial(len(scores))
        for candidate in order:
            chosen[candidate] += reached * accept[candidate]
            reached *= 1 - accept[candidate]
    return chosen


@pytest.mark.parametrize(("kind", "rows"), [("gdp", 1), ("gdp", 3), ("pure", 1)])
def test_choices_have_the_probabilities_of_the_ledgered_event(kind, rows):
    """Scores 0, 2k and 4k: the score of an empty table is the sum of its reference."""
    draws, share = 400, Budget(kind, {"gdp": 10**14, "pure": 8 * 10**14}[kind])
    scores = np.array([0, 2, 4]) * rows
    candidates = [MarginalQuery((name,)) for name in "abc"]
    references = [np.array([score, 0]) for score in scores]
    ledger = RecordingLedger()
    with ledger.open_release(ReleaseKey(None, "r", None, {}), Budget(kind, draws * share.amount)) as entry:
        door = ReadAtOnce(no_rows(LETTERS), LETTERS, rows, entry, ExactNoise())
        picked = ["abc"[door.ask(Choice(candidates, references), share)[0]] for _ in range(draws)]
    (event,) = set(ledger.events)
    assert isinstance(event, SelectionEvent) and event.sensitivity == rows
    probabilities = permute_and_flip if kind == "pure" else exponential_mechanism
    expected, halved = (draws * probabilities(scores, event.scale / part) for part in (1, 2))
    assert chisquare([picked.count(name) for name in "abc"], expected).pvalue > LOWEST_P
    assert chisquare(expected, halved).pvalue < LOWEST_P**2, "so few draws could not tell half the scale"

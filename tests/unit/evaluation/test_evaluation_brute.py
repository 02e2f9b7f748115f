"""Every figure of evaluate() against another computation: by pandas, numpy and scipy, over the rows themselves."""

import itertools
import math
import sys
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.one_compared import opened_one

from dpsyn_sql.evaluation import codes as coding
from dpsyn_sql.evaluation import marginals as ways
from dpsyn_sql.evaluation.codes import encode
from dpsyn_sql.evaluation.evaluating import evaluate
from dpsyn_sql.evaluation.queries import QUERIES, drawn_ranges

TYPES = {"few": "INTEGER", "many": "DOUBLE", "word": "VARCHAR", "flag": "BOOLEAN", "day": "DATE"}
TEXT = ("word", "flag")
LABELS = 6


def table(rows, seed, shift=0.0):
    """NULLs, values that are not finite, values of one table alone, and rare categories."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(shift, 1, rows)
    few = pd.array(np.clip(np.round(2 * hidden + 5), 0, 9 + seed), dtype="Int64")
    many = hidden**2 + rng.normal(0, 0.5 + seed / 10, rows)
    many[rng.random(rows) < 0.02] = np.nan
    many[rng.random(rows) < 0.02] = np.inf
    word = [f"w{int(abs(place))}" for place in 3 * hidden + rng.normal(0, 1 + seed, rows)]
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 60 + 10 * seed, rows), "D")
    frame = pd.DataFrame({"few": few, "many": many, "word": word, "flag": rng.random(rows) < 0.3, "day": day})
    frame = frame.astype({"word": object, "flag": object, "day": object})
    for name, share in (("few", 0.1), ("word", 0.05), ("flag", 0.5), ("day", 0.01)):
        frame.loc[rng.random(rows) < share + seed / 50, name] = None
    return frame


def write(con, name, frame):
    declared = ", ".join(f"{column} {kind}" for column, kind in TYPES.items())
    con.execute(f"CREATE TABLE {name} ({declared})")
    missing = frame.astype(object).where(frame.notna() | (frame.columns == "many"), None)
    rows = [[None if value is pd.NaT else value for value in row] for row in missing.to_numpy().tolist()]
    con.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", rows)


FRAMES = {"real": table(400, 0), "synthetic": table(300, 1, 0.2), "holdout": table(250, 2)}
ROWS = {name: len(frame) for name, frame in FRAMES.items()}


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as connection:
        for name, frame in FRAMES.items():
            write(connection, name, frame)
        yield connection


@pytest.fixture(scope="module")
def found(con):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coding, "MOST_LABELS", LABELS)
        return evaluate(con, "real", "synthetic", "holdout", never=["few > 8", "many < 0 AND flag"]).tables


def number(name, value):
    """A finite number, infinity for others, None if missing."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if name == "day":
        return pd.Timestamp(value).timestamp()
    return float(value) if math.isfinite(value) else math.inf


def numbers(side, name):
    values = [number(name, value) for value in FRAMES[side][name]]
    return np.array([value for value in values if value is not None and value != math.inf])


def brute_code(name):
    """A function of a value to its code, from the real table."""
    if name in TEXT:
        spelled = [str(value).lower() if name == "flag" else value for value in FRAMES["real"][name].dropna()]
        counted = Counter(spelled)
        top = sorted(counted, key=lambda label: (-counted[label], label))[:LABELS]

        def of_text(value):
            if value is None:
                return "missing"
            label = str(value).lower() if name == "flag" else value
            return label if label in top else "rare" if label in counted else "unseen"

        return of_text
    real = np.sort(numbers("real", name))
    values = np.unique(real)
    edges = np.unique(np.quantile(real, np.arange(1, 21) / 20, method="inverted_cdf"))

    def of_number(value):
        value = number(name, value)
        if value is None or value == math.inf:
            return "missing" if value is None else "odd"
        if not real[0] <= value <= real[-1]:
            return "below" if value < real[0] else "above"
        if len(values) <= 20:
            return f"= {value}" if value in values else "unseen"
        return int((edges < value).sum())

    return of_number


CODES = {
    side: [
        [code(value) for value in FRAMES[side][name]] for name, code in ((n, brute_code(n)) for n in TYPES)
    ]
    for side in FRAMES
}


def shares(side, attributes):
    counted = Counter(zip(*(CODES[side][place] for place in attributes), strict=True))
    return {cell: rows / ROWS[side] for cell, rows in counted.items()}


def apart(first, second):
    """Total variation, sum of squares and maximum of differences."""
    values = np.array([first.get(cell, 0) - second.get(cell, 0) for cell in {*first, *second}])
    return {"tv": np.abs(values).sum() / 2, "sse": (values**2).sum(), "max": np.abs(values).max()}


@pytest.mark.parametrize("side", ["synthetic", "holdout"])
@pytest.mark.parametrize("number_of", [1, 2, 3, 4, 5])
def test_marginals_are_those_of_the_rows(found, side, number_of):
    every = list(itertools.combinations(range(len(TYPES)), number_of))
    wanted = [apart(shares("real", one), shares(side, one)) for one in every]
    frame = found["marginals"]
    line = frame[(frame.ways == number_of) & (frame.compared == side)].iloc[0]
    assert (line.marginals, line.possible) == (len(every), len(every))
    for name in ("tv", "sse", "max"):
        values = [one[name] for one in wanted]
        for kind, value in (("mean", np.mean(values)), ("median", np.median(values)), ("worst", max(values))):
            assert line[f"{name}_{kind}"] == pytest.approx(value)
    assert line.sse_rows_worst == pytest.approx(line.sse_worst * ROWS["real"] ** 2)


def test_reference_lines_of_marginals(found):
    """An independent table is the product of the one-way marginals; a resample has the mean over draws."""
    frame = found["marginals"].set_index(["ways", "compared"])
    tvs = []
    for first, second in itertools.combinations(range(len(TYPES)), 2):
        one, other = (
            Counter(CODES["real"][first]),
            Counter(CODES["real"][second]),
        )
        product = {(a, b): one[a] * other[b] / ROWS["real"] ** 2 for a, b in itertools.product(one, other)}
        tvs.append(apart(shares("real", (first, second)), product)["tv"])
    assert frame.loc[2, "independent"].tv_mean == pytest.approx(np.mean(tvs))
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(300):
        rows = rng.integers(0, ROWS["real"], ROWS["synthetic"])
        tables = []
        for one in itertools.combinations(range(len(TYPES)), 3):
            counted = Counter(tuple(CODES["real"][place][row] for place in one) for row in rows)
            again = {cell: count / len(rows) for cell, count in counted.items()}
            tables.append(apart(shares("real", one), again)["tv"])
        drawn.append(np.mean(tables))
    error = np.std(drawn) / np.sqrt(len(drawn))
    assert frame.loc[3, "resample"].tv_mean == pytest.approx(np.mean(drawn), abs=5 * error)


def test_worst_marginals_are_named(found):
    for line in found["worst"].itertuples():
        attributes = [list(TYPES).index(name) for name in line.columns.split(", ")]
        assert len(attributes) == line.ways
        wanted = apart(shares("real", attributes), shares("synthetic", attributes))
        assert (line.tv, line.sse, line.max) == pytest.approx(tuple(wanted.values()))
        assert line.tv_holdout == pytest.approx(
            apart(shares("real", attributes), shares("holdout", attributes))["tv"]
        )
    worst = found["worst"].groupby("ways").tv.first()
    frame = found["marginals"].set_index(["ways", "compared"])
    for number_of in worst.index:
        assert worst[number_of] == pytest.approx(frame.loc[number_of, "synthetic"].tv_worst)


@pytest.mark.parametrize("side", ["synthetic", "holdout"])
@pytest.mark.parametrize("number_of", [1, 2, 3])
def test_conjunctions_are_those_of_the_papers_table(found, side, number_of):
    """By the definition of benchmarks/conjunctions.py, synthetic counts scaled to the rows of the real table."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
    benchmark = pytest.importorskip("conjunctions", reason="the benchmarks are not beside the tests")
    places = [
        {label: place for place, label in enumerate(dict.fromkeys((*CODES["real"][a], *CODES[side][a])))}
        for a in range(len(TYPES))
    ]
    sizes = [len(one) for one in places]

    def counts(which):
        rows = [[places[a][label] for label in CODES[which][a]] for a in range(len(TYPES))]
        return benchmark.conjunctions(np.array(rows).T, sizes, number_of)

    errors = np.abs(counts("real") - counts(side) * (ROWS["real"] / ROWS[side]))
    frame = found["conjunctions"]
    line = frame[(frame.ways == number_of) & (frame.compared == side)].iloc[0]
    assert line.queries == len(errors)
    for share, (mean, _) in zip(benchmark.SHARES, benchmark.best(errors), strict=True):
        best = np.sort(errors)[: math.ceil(share * len(errors))]
        assert line[f"mean_{100 * share:.0f}"] == pytest.approx(mean)
        assert line[f"max_{100 * share:.0f}"] == pytest.approx(best[-1])


def test_columns_are_those_of_scipy_and_of_the_formulas_of_sdmetrics(found):
    frame = found["columns"].set_index("column")
    for place, name in enumerate(TYPES):
        line = frame.loc[name]
        real, synthetic = FRAMES["real"][name], FRAMES["synthetic"][name]
        assert line.tv == pytest.approx(apart(shares("real", (place,)), shares("synthetic", (place,)))["tv"])
        given = [
            [value for value in one if number_or_text(name, value) is not None] for one in (real, synthetic)
        ]
        missing = [1 - len(values) / len(one) for values, one in zip(given, (real, synthetic), strict=True)]
        assert (line.missing_real, line.missing_synthetic) == pytest.approx(missing)
        assert line.MissingValueSimilarity == pytest.approx(1 - abs(missing[0] - missing[1]))
        values = [{number_or_text(name, value) for value in one} for one in given]
        unseen = sum(number_or_text(name, value) not in values[0] for value in given[1])
        assert line.unseen == pytest.approx(unseen / ROWS["synthetic"])
        if name in TEXT:
            counted = [Counter(number_or_text(name, value) for value in one) for one in given]
            one, other = ({k: v / sum(c.values()) for k, v in c.items()} for c in counted)
            assert line.TVComplement == pytest.approx(1 - apart(one, other)["tv"])
            assert line.CategoryCoverage == pytest.approx(len(values[0] & values[1]) / len(values[0]))
            assert np.isnan([line.ks, line.KSComplement, line.mean_real, line.BoundaryAdherence]).all()
            continue
        one, other = numbers("real", name), numbers("synthetic", name)
        assert line.ks == pytest.approx(stats.ks_2samp(one, other).statistic)
        assert line.KSComplement == pytest.approx(1 - line.ks)
        assert line.wasserstein == pytest.approx(stats.wasserstein_distance(one, other) / one.std())
        assert (line.mean_real, line.mean_synthetic) == pytest.approx((one.mean(), other.mean()))
        assert (line.sd_real, line.sd_synthetic) == pytest.approx((one.std(), other.std()))
        for quarter in (25, 50, 75):
            told = (line[f"q{quarter}_real"], line[f"q{quarter}_synthetic"])
            assert told == pytest.approx(
                [np.quantile(part, quarter / 100, method="inverted_cdf") for part in (one, other)]
            )
        assert line.BoundaryAdherence == pytest.approx(((other >= one.min()) & (other <= one.max())).mean())
        lost = max((other.min() - one.min()) / np.ptp(one), 0) + max(
            (one.max() - other.max()) / np.ptp(one), 0
        )
        assert line.RangeCoverage == pytest.approx(max(0, 1 - lost))


def number_or_text(name, value):
    if name not in TEXT:
        return number(name, value)
    return value


def test_pairs_are_those_of_the_rows(found):
    frame = found["pairs"].set_index(["first", "second", "measure"])
    both = list(itertools.combinations(TYPES, 2))
    for first, second in both:
        one, other = (list(TYPES).index(name) for name in (first, second))
        for side in FRAMES:
            crossed = pd.crosstab(
                np.array(CODES[side][one], dtype=str), np.array(CODES[side][other], dtype=str)
            )
            chi2 = stats.chi2_contingency(crossed.to_numpy(), correction=False).statistic
            wanted = np.sqrt(chi2 / (ROWS[side] * (min(crossed.shape) - 1)))
            assert frame.loc[(first, second, "cramers_v"), side] == pytest.approx(wanted)
        line = frame.loc[(first, second, "cramers_v")]
        wanted = apart(shares("real", (one, other)), shares("synthetic", (one, other)))["tv"]
        assert line.ContingencySimilarity == pytest.approx(1 - wanted)
        if first not in TEXT and second not in TEXT:
            for side in FRAMES:
                pairs = [
                    [number(first, a), number(second, b)]
                    for a, b in zip(FRAMES[side][first], FRAMES[side][second], strict=True)
                ]
                finite = np.array([pair for pair in pairs if None not in pair and math.inf not in pair])
                pearson = stats.pearsonr(*finite.T).statistic
                assert frame.loc[(first, second, "pearson"), side] == pytest.approx(pearson)
                spearman = stats.spearmanr(*finite.T).statistic
                assert frame.loc[(first, second, "spearman"), side] == pytest.approx(spearman, abs=0.02)
            line = frame.loc[(first, second, "pearson")]
            assert line.difference == pytest.approx(line.synthetic - line.real)
            assert line.CorrelationSimilarity == pytest.approx(1 - abs(line.synthetic - line.real) / 2)
            assert line.independent == pytest.approx(1 / np.sqrt(ROWS["real"] - 1))
    for text, value in itertools.product(TEXT, (name for name in TYPES if name not in TEXT)):
        for side in FRAMES:
            label = CODES[side][list(TYPES).index(text)]
            values = [number(value, one) for one in FRAMES[side][value]]
            kept = pd.DataFrame({"label": label, "value": values}).dropna().query("value < inf")
            middle = kept.groupby("label").value.transform("mean")
            wanted = np.sqrt(middle.var(ddof=0) / kept.value.var(ddof=0))
            assert frame.loc[(text, value, "correlation_ratio"), side] == pytest.approx(wanted)
    assert len(frame) == len(both) + 2 * 3 + 2 * 3


def test_ranges_are_those_of_the_rows(con, found):
    with opened_one(con, "real", "synthetic") as session:
        codes = encode(session)
        queries = {number_of: drawn_ranges(codes, number_of, 1) for number_of in (1, 2)}
    frame = found["ranges"].set_index(["ways", "compared"])
    for number_of, asked in queries.items():
        share = {side: [] for side in FRAMES}
        for query in asked:
            for side, frame_of in FRAMES.items():
                matching = np.ones(len(frame_of), dtype=bool)
                for column, (low, high) in zip(query.columns, query.bounds, strict=True):
                    values = [number(column.column.name, value) for value in frame_of[column.column.name]]
                    matching &= [value is not None and low <= value <= high for value in values]
                share[side].append(matching.mean())
        assert len(asked) == QUERIES and {len(query.columns) for query in asked} == {number_of}
        for side in ("synthetic", "holdout"):
            errors = np.abs(np.subtract(share[side], share["real"]))
            line = frame.loc[number_of, side]
            assert (line["mean"], line["median"], line.worst) == pytest.approx(
                (errors.mean(), np.median(errors), errors.max())
            )
            assert line.worst_query == str(asked[int(errors.argmax())])


def test_conditions_count_the_rows_that_break_them(found):
    frame = found["conditions"].set_index("condition")
    for side, rows in FRAMES.items():
        above = sum(value is not pd.NA and value > 8 for value in rows["few"])
        assert frame.loc["few > 8", f"{side}_rows"] == above
        assert frame.loc["few > 8", f"{side}_share"] == pytest.approx(above / len(rows))
        negative = sum(a < 0 and b is True for a, b in zip(rows["many"], rows["flag"], strict=True))
        assert frame.loc["many < 0 AND flag", f"{side}_rows"] == negative


def test_marginals_of_many_columns_are_drawn_with_a_seed():
    drawn = ways.chosen(27, 4, 1)
    assert len(drawn) == len(set(drawn)) == ways.MOST_TABLES[4] and drawn == ways.chosen(27, 4, 1)
    assert all(len(set(one)) == 4 and list(one) == sorted(one) for one in drawn)
    assert drawn != ways.chosen(27, 4, 2)
    assert len(ways.chosen(27, 2, 1)) == 351

"""Mixtures released whole: rows, marginals, the stored model, a replay with other parameters, Ctrl-C."""

import duckdb
import numpy as np
import pytest
from support.ledgers import overview

import dpsyn_sql
from dpsyn_sql.fit import mixture as fit
from dpsyn_sql.methods.papers.mixture import Task

pytestmark = pytest.mark.filterwarnings("ignore")

SIZES = (3, 4, 2, 5, 3)
ROWS = 30_000
DOMAIN = {
    "columns": {
        f"x{place}": {"type": "categorical", "categories": list(range(size)), "other": False}
        for place, size in enumerate(SIZES)
    }
}
FOUR = ["x0", "x1", "x3", "x4"]
METHOD = {"name": "mixture", "components": 6}


@pytest.fixture
def con():
    rng = np.random.default_rng(5)
    group, columns = rng.integers(0, 3, ROWS), {}
    for place, size in enumerate(SIZES):
        ends = np.cumsum(rng.dirichlet(np.full(size, 0.4), 3), axis=1)
        found = (rng.random(ROWS)[:, None] > ends[group]).sum(axis=1)
        columns[f"x{place}"] = np.minimum(found, size - 1)
    with duckdb.connect() as con:
        con.register("columns", columns)
        con.execute("CREATE TABLE source AS FROM columns")
        con.unregister("columns")
        yield con


def released(con, tmp_path, **options):
    return dpsyn_sql.release(
        con, "source", into="copy", domain=DOMAIN, ledger=tmp_path / "ledger", **{"method": METHOD, **options}
    )


def counts(con, table, names, rows=ROWS):
    """Shares of every combination, row-major."""
    sizes = [SIZES[int(name[1:])] for name in names]
    number = "0"
    for name, size in zip(names, sizes, strict=True):
        number = f"({number}) * {size} + {name}"
    found = np.zeros(np.prod(sizes))
    for cell, count in con.execute(f"SELECT {number}, count(*) FROM {table} GROUP BY ALL").fetchall():
        found[cell] = count / rows
    return found


def test_rows_model_and_drawn_rows_keep_four_columns(con, tmp_path):
    release = released(con, tmp_path, epsilon=4, rows=ROWS)
    real = counts(con, "source", FOUR)
    said = release.marginal(FOUR)["estimate"].to_numpy()
    assert np.abs(counts(con, "copy", FOUR) - real).sum() / 2 < 0.05
    assert np.abs(said / said.sum() - real).sum() / 2 < 0.05
    pair = release.marginal(["x1", "x3"])["estimate"].to_numpy()
    loaded = dpsyn_sql.load(con, "copy")
    np.testing.assert_allclose(loaded.marginal(["x1", "x3"])["estimate"], pair, rtol=1e-4, atol=0.1)
    drawn = loaded.sample(200_000, seed=4)
    con.register("drawn", drawn)
    assert np.abs(counts(con, "drawn", FOUR, 200_000) - real).sum() / 2 < 0.05
    assert not any("label" in name for name in drawn.columns)


@pytest.mark.parametrize("by", ["em", "kmeans", "target"])
def test_a_replay_with_other_parameters_asks_the_same_questions(con, tmp_path, monkeypatch, by):
    options = {"method": {**METHOD, "by": by}, "epsilon": 1, **({"workload": "x2"} if by == "target" else {})}
    first = released(con, tmp_path, **options)
    labels, label = [], Task.label

    def changed(task, mixture, number):
        other = fit.Components(mixture.weights[::-1], tuple(own[::-1] for own in mixture.profiles))
        labels.append(label(task, other, number))
        return labels[-1]

    if by != "target":  # components of another class would not be of theirs
        monkeypatch.setattr(Task, "label", changed)
    before = overview(tmp_path / "ledger").accounts
    again = released(con, tmp_path, **options, replace=True)
    assert again.id == first.id and again.replayed
    assert overview(tmp_path / "ledger").accounts == before
    assert len(labels) == {"em": 3, "kmeans": 5, "target": 0}[by]


@pytest.mark.parametrize("round_", [1, 3])
def test_an_interrupt_between_rounds_goes_on_at_no_cost(con, tmp_path, monkeypatch, round_):
    label = Task.label

    def interrupted(task, mixture, number):
        if number == round_:
            raise KeyboardInterrupt
        return label(task, mixture, number)

    monkeypatch.setattr(Task, "label", interrupted)
    with pytest.raises(KeyboardInterrupt):
        released(con, tmp_path, epsilon=1)
    monkeypatch.undo()
    before = overview(tmp_path / "ledger")
    assert [one.state for one in before.releases] == ["debited"]
    release = released(con, tmp_path, epsilon=1)
    after = overview(tmp_path / "ledger")
    assert release.replayed and after.accounts == before.accounts
    assert con.execute("SELECT count(*) FROM copy").fetchone()[0] > 0.9 * ROWS

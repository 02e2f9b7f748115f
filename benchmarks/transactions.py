"""Marginals of binary transactions: synthetic tables and models against noise on every marginal asked.

    python benchmarks/transactions.py [--inputs bms_webview_1 groceries mushroom] [--items 32 64 128]
        [--methods dpsyn adaptive] [--variants "dpsyn views=random"] [--ways 2 4 6] [--epsilon 1]
        [--seeds 3] [--against "dpsyn cover=2,3"] [--pictures docs/pictures] [--quick]

The most frequent items of each input are binary attributes, a row for each transaction. They are chosen from
the true rows, as the papers do: that choice is part of the benchmark and not of any promise.

SSE of a marginal is the sum over its cells of the squared difference of shares of the rows. Printed is the
average over all two-way marginals, and over 500 seeded marginals of four and of six attributes. "rows": of
the written table. "model": of the model, where it answers such marginals. Direct noise spends the whole
budget on the marginals of one column of the table, and has no rows; its SSE is its expectation ("raw"), or
measured after negative cells are set to 0 and the sum to 1. ``--against`` repeats the first input and number
of items for each value of a setting. ``--pictures`` writes charts: SSE by the number k of attributes of a
marginal, by epsilon if there are several, and by each setting of ``--against``.
"""

from __future__ import annotations

import argparse
import math
import statistics
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb
import numpy as np
from adaptive import Table, Written, codes_declared, written
from baselines.lap import answered, gaussian_sigma, laplace_scale, made_shares
from baselines.lap import squared_error as expected_error
from charts import write_chart
from comparison import chosen, codes_of, shares, squared_error
from harness import DATA, add_methods, apart, command_line, machine, methods_wanted, need, print_table
from numpy.typing import NDArray

INPUTS = ("bms_webview_1", "groceries", "mushroom", "epub", "income")
SETS = 500

Errors = dict[str, dict[int, float]]
"""Average SSE by what answers ("rows", "model") and number of attributes."""


def transactions(name: str, items: int) -> Table:
    """A binary attribute for each of the most frequent items, in order of frequency."""
    file = need(DATA / "transactions" / f"{name}.parquet")

    def load(con: duckdb.DuckDBPyConnection) -> None:
        con.execute("SET enable_progress_bar = false")
        found = con.execute(
            "SELECT item FROM read_parquet($1) GROUP BY item "
            "ORDER BY count(DISTINCT tid) DESC, item LIMIT $2",
            [str(file), items],
        ).fetchall()
        con.execute("CREATE TABLE frequent AS SELECT unnest($1) AS item", [[row[0] for row in found]])
        con.execute("ALTER TABLE frequent ADD COLUMN place BIGINT")
        con.execute("UPDATE frequent SET place = rowid")
        places = ", ".join(f"coalesce(max((place = {i})::UTINYINT), 0) AS i{i}" for i in range(items))
        con.execute(
            f"CREATE TABLE source AS SELECT {places} FROM read_parquet('{file}') LEFT JOIN frequent "
            "USING (item) GROUP BY tid"
        )

    with duckdb.connect() as con:
        available = con.execute("SELECT count(DISTINCT item) FROM read_parquet($1)", [str(file)]).fetchone()
    items = min(items, available[0] if available else 0)
    sizes = {f"i{index}": 2 for index in range(items)}
    return Table(load, codes_declared(sizes, set()), sizes)


def groups_of(items: int, ways: int) -> list[tuple[int, ...]]:
    """All pairs, or ``SETS`` seeded sets of more attributes."""
    return chosen(items, ways, None if ways == 2 else SETS)


def errors_of(made: Written, ways: Sequence[int]) -> Errors:
    """Of the written rows and of the model, if it answers marginals of so many attributes."""
    names, model = list(made.release.model.domain.names), made.release.model
    found: Errors = {"rows": {}, "model": {}}
    for number in ways:
        groups = groups_of(len(made.sizes), number)
        true = [shares(made.source, made.sizes, axes) for axes in groups]
        pairs = zip(true, groups, strict=True)
        found["rows"][number] = statistics.mean(
            squared_error(table, shares(made.copy, made.sizes, axes)) for table, axes in pairs
        )
        asked = [[names[axis] for axis in axes] for axes in groups]
        if all(model.supports(one) for one in asked):
            pairs_of_names = zip(true, asked, strict=True)
            found["model"][number] = statistics.mean(
                squared_error(table, made_shares(model.project(one).ravel())) for table, one in pairs_of_names
            )
    return found


def measured(
    name: str, items: int, method: object, epsilon: float, delta: float, ways: Sequence[int]
) -> tuple[Errors, float, float]:
    """Errors, seconds and MiB of one release: for a process of its own."""
    warnings.simplefilter("ignore")
    made = written(transactions(name, items), method, epsilon, delta)
    return errors_of(made, ways), made.watch.seconds["total"], made.peak


def direct(
    rows: NDArray[np.int64], epsilon: float, delta: float, ways: Sequence[int]
) -> dict[str, dict[int, float]]:
    """Noise on every marginal of one column of the table, at the whole budget."""
    found: dict[str, dict[int, float]] = {"direct Laplace, delta 0, raw": {}, "direct Gaussian, raw": {}}
    clipped: dict[str, dict[int, float]] = {"direct Laplace, delta 0": {}, "direct Gaussian": {}}
    sizes = [2] * rows.shape[1]
    for number in ways:
        groups = groups_of(rows.shape[1], number)
        scales = (laplace_scale(len(groups), epsilon), gaussian_sigma(len(groups), epsilon, delta))
        for raw, made, law, scale in zip(found, clipped, ("laplace", "gaussian"), scales, strict=True):
            found[raw][number] = expected_error(2**number, len(rows), scale, law)
            answers = answered(rows, sizes, groups, scale, np.random.default_rng(0), law)
            clipped[made][number] = statistics.mean(
                squared_error(shares(rows, sizes, axes), made_shares(answer))
                for axes, answer in zip(groups, answers, strict=True)
            )
    return found | clipped


def medians_of(runs: Sequence[tuple[Errors, float, float]]) -> tuple[Errors, float, float]:
    """Medians of errors, seconds and MiB."""
    errors = {
        what: {number: statistics.median(run[0][what][number] for run in runs) for number in by_ways}
        for what, by_ways in runs[0][0].items()
    }
    return errors, *(statistics.median(run[place] for run in runs) for place in (1, 2))


def compared(
    name: str, items: int, wanted: Mapping[str, object], epsilon: float, arguments: argparse.Namespace
) -> dict[str, tuple[dict[int, float], float, float]]:
    """Errors by number of attributes, seconds and MiB of everything that answers."""
    found: dict[str, tuple[dict[int, float], float, float]] = {}
    for label, method in wanted.items():
        runs = [
            apart(measured, name, items, method, epsilon, arguments.delta, arguments.ways)
            for _ in range(arguments.seeds)
        ]
        errors, seconds, memory = medians_of(runs)
        for what, by_ways in errors.items():
            if by_ways:
                found[f"{label}, {what}"] = by_ways, seconds, memory
        print(f"{name}, {items} items, epsilon {epsilon:g}, {label}: {seconds:.1f} s", flush=True)
    table = transactions(name, items)
    with duckdb.connect() as con:
        table.load(con)
        (rows,), _ = codes_of(con, ("source",), table.scored)
    for label, by_ways in direct(rows, epsilon, arguments.delta, arguments.ways).items():
        found[label] = by_ways, math.nan, math.nan
    return found


def show(
    found: Mapping[str, tuple[dict[int, float], float, float]], title: str, arguments: argparse.Namespace
) -> None:
    """One table: a line for everything that answers."""
    rows: list[list[object]] = []
    for label, (by_ways, seconds, memory) in found.items():
        figures = [f"{by_ways[number]:.3g}" if number in by_ways else "" for number in arguments.ways]
        times: list[object] = ["", ""] if math.isnan(seconds) else [seconds, f"{memory:.0f}"]
        rows.append([label, *figures, *times])
    print_table(
        ["who answers", *(f"SSE, {number}-way" for number in arguments.ways), "seconds", "MiB"],
        rows,
        f"{title}, delta {arguments.delta:g}, medians of {arguments.seeds} releases; {machine()}",
    )


def by_setting(text: str, name: str, items: int, epsilon: float, arguments: argparse.Namespace) -> None:
    """SSE for each value of one setting of a method, and a chart of it."""
    *fixed, last = text.split()
    setting, _, values = last.partition("=")
    rows: list[list[object]] = []
    lines: dict[str, list[tuple[float, float]]] = {}
    for value in values.split(","):
        wanted = methods_wanted([], [" ".join([*fixed, f"{setting}={value}"])])
        for label, (by_ways, seconds, _) in compared(name, items, wanted, epsilon, arguments).items():
            if label.startswith("direct") or not wanted:
                continue
            rows.append([label, *(f"{by_ways.get(one, math.nan):.3g}" for one in arguments.ways), seconds])
            for number, error in by_ways.items():
                line = f"{label.rpartition(', ')[2]}, {number}-way"
                lines.setdefault(line, []).append((float(value), error))
    if rows:
        print_table(["setting", *(f"SSE, {one}-way" for one in arguments.ways), "seconds"], rows, text)
        picture(arguments, f"sse_by_{setting}", f"{name}, {items} items", setting, lines)


def picture(
    arguments: argparse.Namespace,
    name: str,
    title: str,
    across: str,
    lines: Mapping[str, Sequence[tuple[float, float]]],
) -> None:
    """A chart, where a folder for charts is given."""
    if arguments.pictures:
        path = arguments.pictures / f"{name}.svg"
        write_chart(path, title, across, "average SSE of a marginal", lines)
        print(f"wrote {path}\n", flush=True)


def main() -> None:
    """A table for each input, number of items and epsilon; charts of the first input."""
    parser = command_line(__doc__)
    add_methods(parser)
    parser.add_argument("--inputs", nargs="+", choices=INPUTS, default=["bms_webview_1"])
    parser.add_argument("--items", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument("--ways", type=int, nargs="+", default=[2, 4, 6])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--seeds", type=int, default=3, help="releases of each")
    parser.add_argument("--against", nargs="*", default=[], help="'dpsyn cover=2,3'")
    parser.add_argument("--pictures", type=Path, help="folder for charts")
    parser.add_argument("--quick", action="store_true", help="32 items, one release of each")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.items, arguments.seeds = [32], 1
    wanted = methods_wanted(arguments.methods, arguments.variants)
    by_epsilon: dict[str, list[tuple[float, float]]] = {}
    for name in arguments.inputs:
        for items in arguments.items:
            for epsilon in arguments.epsilon:
                found = compared(name, items, wanted, epsilon, arguments)
                show(found, f"{name}, {items} items, epsilon {epsilon:g}", arguments)
                if (name, items) != (arguments.inputs[0], arguments.items[0]):
                    continue
                middle = arguments.ways[len(arguments.ways) // 2]
                for label, (by_ways, _, _) in found.items():
                    if middle in by_ways:
                        by_epsilon.setdefault(label, []).append((epsilon, by_ways[middle]))
                if epsilon == arguments.epsilon[0]:
                    lines = {label: [*by_ways.items()] for label, (by_ways, _, _) in found.items()}
                    title = f"{name}, {items} items, epsilon {epsilon:g}"
                    picture(arguments, "sse_by_k", title, "attributes of a marginal", lines)
    if len(arguments.epsilon) > 1:
        title = f"{arguments.inputs[0]}, {arguments.items[0]} items, {middle}-way marginals"
        picture(arguments, "sse_by_epsilon", title, "epsilon", by_epsilon)
    for text in arguments.against:
        by_setting(text, arguments.inputs[0], arguments.items[0], arguments.epsilon[0], arguments)


if __name__ == "__main__":
    main()

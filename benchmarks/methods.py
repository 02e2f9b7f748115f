"""Every method on the same tables by the same scorer, each release in a process of its own.

    python benchmarks/methods.py [--methods adaptive copula] [--variants "dpsyn synthesis=sts"]
        [--tables adult projection] [--epsilon 0.1 1 10] [--delta 1e-9] [--seeds 3] [--quick]

    adult        Adult discretised: 48,842 rows, 14 attributes of codes
    projection   six of its attributes with 7,560 joint cells: small enough for MWEM and a histogram

Total variation distance of the WRITTEN table from the source over all two-way and 200 seeded three-way
marginals: mean and maximum; medians over the releases. "Direct" has no table of rows: noise on each of the
marginals that are scored, negative cells set to 0. The baselines are those of ``baselines/``: numpy noise
from a seed. This compares with private data: only for public tables.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import duckdb
import numpy as np
from adaptive import Table, adult, codes_declared, written
from baselines.histogram import histogram
from baselines.lap import answered, gaussian_sigma, laplace_scale, made_shares
from baselines.mwem import marginal, mwem
from comparison import TRIPLES, chosen, codes_of, shares, variations
from harness import add_methods, apart, command_line, machine, methods_wanted, peak_mebibytes, print_table
from measured_once import MEASURED_ONCE
from numpy.typing import NDArray

KEPT = ("workclass", "marital-status", "relationship", "race", "sex", "income>50K")
HEADER = ["synthesizer", "2-way mean", "2-way max", "3-way mean", "3-way max", "seconds", "of it fit", "MiB"]
DIRECT = ("direct Gaussian, no table", "direct Laplace, no table, delta 0")
JOINT = ("MWEM, delta 0", "Laplace histogram, delta 0")
"""Baselines; those of ``JOINT`` hold the joint domain in memory."""

Groups = Sequence[Sequence[int]]
Answers = Callable[[Groups], list[NDArray[np.float64]]]


def projection() -> Table:
    """Six attributes of Adult discretised."""
    whole = adult()
    sizes = {name: int(whole.scored[name] or 0) for name in KEPT}

    def load(con: duckdb.DuckDBPyConnection) -> None:
        whole.load(con)
        others = [name for name in whole.scored if name not in KEPT]
        for name in others:
            con.execute(f'ALTER TABLE source DROP COLUMN "{name}"')

    return replace(whole, load=load, domain=codes_declared(sizes, set()), scored=sizes)


TABLES: dict[str, Callable[[], Table]] = {"adult": adult, "projection": projection}


def groups_of(attributes: int) -> tuple[Groups, Groups]:
    """All pairs, and the seeded triples."""
    return chosen(attributes, 2), chosen(attributes, 3, TRIPLES)


def summary(two: Sequence[float], three: Sequence[float]) -> list[float]:
    """Mean and maximum of both."""
    return [figure for part in (two, three) for figure in (statistics.mean(part), max(part))]


def measured(name: str, method: object, epsilon: float, delta: float) -> list[float]:
    """Distances, seconds, seconds of the fit and MiB of one release: for a process of its own."""
    warnings.simplefilter("ignore")
    made = written(TABLES[name](), method, epsilon, delta)
    scores = [variations(made.source, made.copy, made.sizes, part) for part in groups_of(len(made.sizes))]
    return [*summary(*scores), made.watch.seconds["total"], made.watch.seconds.get("fit", 0.0), made.peak]


def baseline_answers(
    label: str,
    rows: NDArray[np.int64],
    sizes: Sequence[int],
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> Answers:
    """What gives the shares of any marginals asked, by one of ``DIRECT`` or ``JOINT``."""
    if label in JOINT:
        table = (mwem if label.startswith("MWEM") else histogram)(rows, sizes, epsilon, rng)
        return lambda groups: [marginal(table, axes) for axes in groups]
    asked = sum(len(part) for part in groups_of(len(sizes)))
    gaussian = label == DIRECT[0]
    scale = gaussian_sigma(asked, epsilon, delta) if gaussian else laplace_scale(asked, epsilon)
    law = "gaussian" if gaussian else "laplace"
    return lambda groups: [made_shares(one) for one in answered(rows, sizes, groups, scale, rng, law)]


def baseline(name: str, label: str, epsilon: float, delta: float, seed: int) -> list[float]:
    """As ``measured``, of a baseline; the fit is all of it."""
    table = TABLES[name]()
    with duckdb.connect() as con:
        table.load(con)
        (rows,), sizes = codes_of(con, ("source",), table.scored)
    begun = time.perf_counter()
    answers = baseline_answers(label, rows, sizes, epsilon, delta, np.random.default_rng(seed))
    scores = []
    for part in groups_of(len(sizes)):
        true = [shares(rows, sizes, axes) for axes in part]
        pairs = zip(true, answers(part), strict=True)
        scores.append([float(np.abs(one - other).sum() / 2) for one, other in pairs])
    seconds = time.perf_counter() - begun
    return [*summary(*scores), seconds, seconds, peak_mebibytes()]


def line(label: str, runs: Sequence[Sequence[float]]) -> list[object]:
    """Medians of the runs as a row."""
    figures = [statistics.median(column) for column in zip(*runs, strict=True)]
    print(f"{label}: {figures[0]:.4f} / {figures[2]:.4f}, {figures[4]:.1f} s", flush=True)
    return [label, *(f"{figure:.4f}" for figure in figures[:4]), *figures[4:6], f"{figures[6]:.0f}"]


def main() -> None:
    """Print a table for each input and epsilon."""
    parser = command_line(__doc__)
    add_methods(parser)
    parser.add_argument("--tables", nargs="+", choices=[*TABLES], default=[*TABLES])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--seeds", type=int, default=3, help="releases of each")
    parser.add_argument("--quick", action="store_true", help="one release of each at the first epsilon")
    arguments = parser.parse_args()
    runs = 1 if arguments.quick else arguments.seeds
    wanted = methods_wanted(arguments.methods, arguments.variants)
    for epsilon in arguments.epsilon[: 1 if arguments.quick else None]:
        for name in arguments.tables:
            rows = [
                line(
                    label,
                    [apart(measured, name, method, epsilon, arguments.delta) for _ in range(runs)],
                )
                for label, method in wanted.items()
            ]
            known = DIRECT if name == "adult" else (*DIRECT, *JOINT)
            rows += [
                line(
                    label,
                    [apart(baseline, name, label, epsilon, arguments.delta, seed) for seed in range(runs)],
                )
                for label in known
            ]
            if name == "adult" and epsilon == 1:
                for peer, (two, three, _, seconds, *_, memory) in MEASURED_ONCE.items():
                    rows.append([f"{peer}, once", two, "", three, "", seconds, "", memory])
            print_table(
                HEADER,
                rows,
                f"{name}, epsilon {epsilon:g}, delta {arguments.delta:g}, medians of {runs} releases, "
                f"each in its own process; {machine()}",
            )


if __name__ == "__main__":
    main()

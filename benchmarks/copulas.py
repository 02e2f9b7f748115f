"""The copula paper's comparison on Adult: copulas, its baselines, and noise on every conjunction asked.

    python benchmarks/copulas.py [--methods adaptive] [--variants "dpcopula hybrid=true"] [--epsilon 1]
        [--seeds 3] [--quick]

Queries and table as in ``conjunctions.py``: all positive conjunctions of one, two and three values, absolute
errors in rows over the best 95, 99 and 100 % of them, 32,561 rows, delta 2^-30. The baselines of the paper
are settings of the copula: ``no-cor`` (columns drawn independently), ``cop-ID`` (the identity as correlations
of values), ``cop-1`` (one correlation of 1). There they have exact margins, here noisy ones. Two more
baselines are cut off from any table: ``Lap`` adds Laplace noise to each cell of all one-way and two-way
marginals (or of all three-way marginals alone, as in the paper), at pure epsilon and scale m / epsilon for m
marginals; ``Gauss`` adds Gaussian noise at (epsilon, delta). The paper composed Laplace noise to (epsilon,
delta), at a sensitivity that is too small (docs/privacy.md). Table 2 of the paper is beside ours; its tables
DSS and Hospital are not public or not here, so their figures stand alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
from baselines.lap import gaussian_sigma, laplace_scale
from conjunctions import (
    DELTA,
    TABLE_2,
    best,
    codes,
    conjunctions,
    domain,
    header,
    middle,
    paper_line,
    released,
    size,
)
from harness import DATA, add_methods, apart, command_line, machine, methods_wanted, need, print_table

PAPERS_NAMES = {
    "copula": "copula (dpc)",
    "copula correlation=none": "no-cor",
    "copula correlation=identity": "cop-ID",
    "copula correlation=ones": "cop-1",
    "dpcopula": "DPCopula",
    "dpcopula hybrid=true": "DPHybrid",
}
"""Methods with settings, and what the papers call them."""

WAYS = (1, 2, 3)
Result = dict[int, list[tuple[float, int]]]


def measured(method: object, epsilon: float) -> Result:
    """Errors of one release by the number of attributes of a conjunction: for a process of its own."""
    source = need(DATA / "uci_adult" / "adult_train.parquet")
    spec = domain()
    made = released(source, spec, method, epsilon)
    with duckdb.connect() as con:
        real = codes(con, f"'{source}'", spec)
    sizes = [size(facts) for facts in spec["columns"].values()]
    return {
        ways: best(np.abs(conjunctions(made, sizes, ways) - conjunctions(real, sizes, ways))) for ways in WAYS
    }


def direct(law: str, spec: Mapping[str, Any], epsilon: float, seed: int) -> Result:
    """Errors of noise on every conjunction: they do not depend on the rows."""
    sizes = [size(facts) for facts in spec["columns"].values()]
    rng, found = np.random.default_rng(seed), {}
    for ways in WAYS:
        marginals = math.comb(len(sizes), 3) if ways == 3 else len(sizes) + math.comb(len(sizes), 2)
        cells = len(conjunctions(np.zeros((1, len(sizes)), np.int64), sizes, ways))
        if law == "laplace":
            noise = rng.laplace(0, laplace_scale(marginals, epsilon), cells)
        else:
            noise = rng.normal(0, gaussian_sigma(marginals, epsilon, DELTA), cells)
        found[ways] = best(np.abs(noise))
    return found


def main() -> None:
    """Our figures beside the paper's, then those that stand alone."""
    parser = command_line(__doc__)
    add_methods(parser, [*PAPERS_NAMES, "adaptive"])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=3, help="releases of each")
    parser.add_argument("--quick", action="store_true", help="one release of each")
    arguments = parser.parse_args()
    seeds = range(1 if arguments.quick else arguments.seeds)
    wanted = methods_wanted(arguments.methods, arguments.variants)
    found: dict[str, list[Result]] = {}
    for label, method in wanted.items():
        found[PAPERS_NAMES.get(label, label)] = [apart(measured, method, arguments.epsilon) for _ in seeds]
        print(f"{label}: done", flush=True)
    for name, law in (("Lap, no table, delta 0", "laplace"), ("Gauss, no table", "gaussian")):
        found[name] = [direct(law, domain(), arguments.epsilon, seed) for seed in seeds]
    rows: list[list[object]] = []
    for ways in WAYS:
        rows += [[f"{ways}-way", name, *middle([run[ways] for run in runs])] for name, runs in found.items()]
        rows += [[f"{ways}-way", f"paper, {row}", *paper_line(row, "Adult", ways)] for row in TABLE_2]
    print_table(
        header("queries", "who"),
        rows,
        f"Adult, epsilon {arguments.epsilon:g}, delta 2^-30, medians of {len(seeds)} releases (no-cor, "
        f"cop-ID and cop-1 have exact margins in the paper, whose figures for them are curves); {machine()}",
    )
    print_table(
        header("table", "queries", "paper"),
        [
            [table, f"{ways}-way", row, *paper_line(row, table, ways)]
            for table in ("DSS", "Hospital")
            for ways in WAYS
            for row in TABLE_2
        ],
        "The paper's other tables",
    )


if __name__ == "__main__":
    main()

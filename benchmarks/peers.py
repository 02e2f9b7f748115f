"""Other synthesizers on a table of codes, where they are installed; figures measured once, where not.

    AIM (private-pgm)        its folder ``mechanisms`` on PYTHONPATH, and the package ``mbi``
    AIM, SWIFT (dpsynth)     the package ``dpsynth``

Each run takes minutes and gigabytes. They are given exact codes and the true number of rows.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import combinations
from typing import Any

import numpy as np
from comparison import mean_distances
from numpy.typing import NDArray

Codes = NDArray[np.int64]

MEASURED_ONCE: dict[str, list[object]] = {
    "AIM (private-pgm)": ["0.0385", "0.0887", "", 518.0, "", "", "5700"],
    "SWIFT (dpsynth)": ["0.0390", "0.0855", "", 728.0, "", "", ""],
    "prototype of this method, in numpy": ["0.0302", "0.0731", "", 1.7, "", "", ""],
    "MST (private-pgm)": ["0.0516", "0.1131", "", 86.0, "", "", ""],
    "PrivSyn (its authors' code)": ["0.0887", "0.1839", "", 128.0, "", "", ""],
    "PrivBayes (dpmm)": ["0.0941", "0.1712", "", 104.0, "", "", ""],
    "columns shuffled, no privacy": ["0.0761", "0.1735", "", "", "", "", ""],
    "bootstrap of the rows, no privacy": ["0.0146", "0.0348", "", "", "", "", ""],
}
"""On Adult discretised with 2 cores at epsilon 1, delta 1e-9, by this scorer: two-way, three-way,
range, seconds, of it fit, sample, MiB."""


def _aim(data: Any, names: Sequence[str], epsilon: float, delta: float) -> Any:
    from aim import AIM

    made = AIM(epsilon, delta).run(data, [(pair, 1.0) for pair in combinations(names, 2)])
    return made[-1] if isinstance(made, tuple) else made


def _dpsynth(mechanism: str) -> Callable[[Any, Sequence[str], float, float], Any]:
    def run(data: Any, names: Sequence[str], epsilon: float, delta: float) -> Any:
        from dpsynth import discrete_mechanisms

        recipe = getattr(discrete_mechanisms, mechanism)()
        calibrated = recipe.calibrate(epsilon=epsilon, delta=delta)
        return calibrated(np.random.default_rng(), data).synthetic_data

    return run


_PEERS: dict[str, tuple[str, Callable[[Any, Sequence[str], float, float], Any]]] = {
    "AIM (private-pgm)": ("aim", _aim),
    "AIM (dpsynth)": ("dpsynth", _dpsynth("AIMMechanism")),
    "SWIFT (dpsynth)": ("dpsynth", _dpsynth("SWIFTMechanism")),
}


def run_peers(
    names: Sequence[str], sizes: Sequence[int], real: Codes, epsilon: float, delta: float, runs: int
) -> dict[str, list[object]]:
    """Two-way and three-way distance, range of the former, seconds (mean, mean, range, median), "", "".

    Peers that are not installed, or whose interface has changed, are left out; the latter are named.
    """
    found: dict[str, list[object]] = {}
    for name, (module, run) in _PEERS.items():
        if find_spec(module) is None or find_spec("mbi") is None:
            continue
        results = []
        try:
            for _ in range(runs):
                begun = time.perf_counter()
                made = run(_as_mbi(names, sizes, real), names, epsilon, delta)
                seconds = time.perf_counter() - begun
                results.append((*mean_distances(real, _codes_of(made, names), sizes), seconds))
        except (ImportError, AttributeError, TypeError) as error:
            print(f"{name} cannot be run by this script: {type(error).__name__}: {error}", flush=True)
            continue
        two, three, times = (list(part) for part in zip(*results, strict=True))
        figures = (statistics.mean(two), statistics.mean(three), max(two) - min(two))
        found[name] = [*(f"{figure:.4f}" for figure in figures), statistics.median(times), "", ""]
    return found


def _as_mbi(names: Sequence[str], sizes: Sequence[int], real: Codes) -> Any:
    """The table as ``mbi.Dataset``, which was made of a data frame in older versions."""
    import mbi
    import pandas as pd

    domain = mbi.Domain(list(names), list(sizes))
    columns = {name: real[:, place] for place, name in enumerate(names)}
    try:
        return mbi.Dataset(columns, domain)
    except (TypeError, ValueError, AttributeError, AssertionError):
        return mbi.Dataset(pd.DataFrame(columns), domain)


def _codes_of(made: Any, names: Sequence[str]) -> Codes:
    """A matrix of codes from an ``mbi.Dataset`` of either kind, or a data frame."""
    table = made.df if hasattr(made, "df") else made
    table = table.data if hasattr(table, "data") and isinstance(table.data, dict) else table
    return np.stack([np.asarray(table[name], dtype=np.int64) for name in names], axis=1)

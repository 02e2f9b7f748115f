"""What every runner does beside its package: read the request, time the work, write rows and a report.

A runner is started as ``python RUNNER.py FOLDER`` by the Python of the peer's own environment. Of this
project it sees this file alone; numpy is what all peers bring.

``rows.npy``       int64 codes, a row for each row and a column for each attribute
``request.json``   ``names``; ``sizes``, the number of codes of each; ``epsilon``, ``delta``; ``mechanism``,
                   which of the package's is asked for
``copy.npy``       int64 codes of the synthetic rows, written by the runner
``report.json``    ``wall`` and ``processor`` seconds of the synthesis, ``peak`` MiB of the process,
                   ``versions`` of the packages; written by the runner
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Request:
    """What ``request.json`` and ``rows.npy`` hold; ``folder`` is the runner's own to write in."""

    folder: Path
    rows: Codes
    names: list[str]
    sizes: list[int]
    epsilon: float
    delta: float
    mechanism: str


def serve(synthesize: Callable[[Request], Codes], packages: Sequence[str]) -> None:
    """Answer the request in the folder that the command line names."""
    folder = Path(sys.argv[1])
    asked = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    request = Request(folder=folder, rows=np.load(folder / "rows.npy"), **asked)
    begun, processor = time.perf_counter(), _processor_seconds()
    copy = np.asarray(synthesize(request), dtype=np.int64)
    report = {
        "wall": time.perf_counter() - begun,
        "processor": _processor_seconds() - processor,
        "peak": _peak_mebibytes(),
        "versions": ", ".join(f"{package} {metadata.version(package)}" for package in packages),
    }
    np.save(folder / "copy.npy", copy)
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")


def _processor_seconds() -> float:
    """Of all cores, of this process and of those it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _peak_mebibytes() -> float:
    """Of this process, or of the largest that it has waited for."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(who).ru_maxrss for who in whose) / 1024

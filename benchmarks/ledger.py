"""Cost of the ledger: debit, question, replay, verify; four processes racing.

    python benchmarks/ledger.py [folder]

The folder (default: a temporary one) should be on the disk that matters: most of the time is
SQLite waiting for it (synchronous=FULL).
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np

import dpsyn_sql
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent
from dpsyn_sql.errors import PrivacyBudgetExceeded
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.planning.plan import ReleaseKey

SHARE = Budget("gdp", 10**9)
EVENT = GaussianEvent(1e4, 10)
TABLES = [np.arange(10_000) for _ in range(10)]
ROUNDS = 200


def key(version: str) -> ReleaseKey:
    return ReleaseKey("people", "adult", version, {"epsilon": "1"}, ("main.adult",))


def debit(ledger: SqliteLedger, version: int) -> None:
    with ledger.open_release(key(str(version)), SHARE):
        pass


def question(ledger: SqliteLedger, version: int) -> None:
    with ledger.open_release(key(str(version)), SHARE) as entry:
        asked = entry.ask({"ask": "measure"})
        if asked.stored is None:
            asked.charge(EVENT)
            asked.store(TABLES)


def medians(path: Path) -> list[tuple[str, float]]:
    rows = []
    with closing(SqliteLedger(path)) as ledger:
        for name, step in (
            ("debit (one transaction)", debit),
            ("find, reserve, store 10 tables of 10,000 cells", question),
            ("find and replay them", question),
        ):
            rows.append((name, statistics.median(timed(step, ledger, number) for number in range(ROUNDS))))
        started = time.perf_counter()
        ledger.verify()
        rows.append((f"verify {ROUNDS} releases, 160 MB of answers", time.perf_counter() - started))
    return rows


def timed(step: Callable[[SqliteLedger, int], None], ledger: SqliteLedger, number: int) -> float:
    started = time.perf_counter()
    step(ledger, number)
    return time.perf_counter() - started


def race(path: Path, name: int, share: Budget, start: Barrier, won: multiprocessing.Queue[int]) -> None:
    count = 0
    with closing(SqliteLedger(path)) as ledger:
        start.wait()
        for number in range(ROUNDS // 2):
            try:
                with ledger.open_release(key(f"{name}-{number}"), share):
                    count += 1
            except PrivacyBudgetExceeded:
                break
    won.put(count)


def raced(path: Path) -> tuple[list[int], int, float]:
    """Four processes try half of what fits each, so twice as much as fits."""
    with closing(SqliteLedger(path)) as ledger:
        limit = ledger.grant("people", "0.1", "1e-9").limit
    assert limit is not None
    share = Budget("gdp", limit.amount // ROUNDS)
    context = multiprocessing.get_context("fork")
    won, start = context.Queue(), context.Barrier(5)
    processes = [context.Process(target=race, args=(path, name, share, start, won)) for name in range(4)]
    for process in processes:
        process.start()
    start.wait()
    started = time.perf_counter()
    counts = [won.get() for _ in processes]
    seconds = time.perf_counter() - started
    with closing(SqliteLedger(path)) as ledger:
        ledger.verify()
    return counts, limit.amount // share.amount, seconds


class Timed:
    """A ledger entry, or a question in it, that adds up the time of its calls."""

    def __init__(self, inner: Any, spent: list[float]) -> None:
        self._inner, self._spent = inner, spent

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value):
            return value

        def called(*arguments: Any) -> Any:
            started = time.perf_counter()
            try:
                made = value(*arguments)
            finally:
                self._spent.append(time.perf_counter() - started)
            return Timed(made, self._spent) if name == "ask" else made

        return called


class TimedLedger(SqliteLedger):
    """A ledger that adds up the time it takes from a release."""

    def __init__(self, path: Path) -> None:
        started = time.perf_counter()
        super().__init__(path)
        self.spent = [time.perf_counter() - started]

    @contextmanager
    def open_release(self, key: ReleaseKey, budget: Budget, *, new_debit: bool = False) -> Iterator[Any]:
        started = time.perf_counter()
        with super().open_release(key, budget, new_debit=new_debit) as entry:
            self.spent.append(time.perf_counter() - started)
            yield Timed(entry, self.spent)


def share_of_a_release(folder: Path) -> tuple[float, float]:
    """Seconds of the ledger within a release of the example table, and of the whole release."""
    examples = Path(__file__).resolve().parent.parent / "examples"
    with closing(TimedLedger(folder / "release")) as ledger:
        started = time.perf_counter()
        dpsyn_sql.release(
            None,
            examples / "adult.parquet",
            domain=examples / "adult.domain.yml",
            into=folder / "out.parquet",
            ledger=ledger,
        )
        return sum(ledger.spent), time.perf_counter() - started


def main(folder: Path) -> None:
    for name, seconds in medians(folder / "medians"):
        print(f"{name:<50} {seconds * 1e3:9.2f} ms")
    counts, fit, seconds = raced(folder / "race")
    print(f"{'four processes racing, a debit each time':<50} {seconds / sum(counts) * 1e3:9.2f} ms")
    print(f"  {sum(counts)} debits won of {fit} that fit: {sorted(counts)} by process, in {seconds:.2f} s")
    inside, whole = share_of_a_release(folder)
    print(
        f"{'ledger within a release of the Adult example':<50} {inside * 1e3:9.2f} ms, {inside / whole:.1%}"
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))

"""Twelve monthly releases of the flights of 2013 by ``dpsyn run``, with a budget for the year.

    python benchmarks/schedule.py [folder]

Each call is a process of its own, as a timer starts it: one month, the other eleven, and calls with
nothing due. The privacy unit is a flight. Domains are those of ``domains/flights.yml``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from harness import DATA

from dpsyn_sql.ledger.sqlite import SqliteLedger

SCHEDULE = """ledger: ledger
accounts:
  flights: {{limit: {{epsilon: 24}}, per: {{year: {{epsilon: 12}}}}}}
sources:
  flights:
    query: SELECT *, make_date(year, month, day) AS date FROM '{source}'
    window: date
    domain: flights.yml
releases:
  monthly:
    source: flights
    output: "{{release}}-{{period}}.parquet"
    cadence: month
    start: 2013-01-01
    end: 2014-01-01
    epsilon: 1
"""
DOMAINS = Path(__file__).parent / "domains" / "flights.yml"
DATE = 'columns:\n\n  date: {derived: "make_date(year, month, day)"}\n'


def called(folder: Path, *arguments: str) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Seconds of a command and what it printed."""
    start = time.perf_counter()
    command = [sys.executable, "-c", "from dpsyn_sql.cli.start import main; main()", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return time.perf_counter() - start, done


def main(folder: Path) -> None:
    """Print seconds and what is spent."""
    (folder / "dpsyn.yml").write_text(SCHEDULE.format(source=DATA / "nycflights13" / "flights.parquet"))
    (folder / "flights.yml").write_text(DOMAINS.read_text().replace("columns:\n", DATE, 1))
    first, done = called(folder, "run", "--select", "monthly:2013-01")
    print(f"one month: {first:.1f} s, exit code {done.returncode}")
    others, done = called(folder, "run")
    print(f"eleven months: {others:.1f} s, {others / 11:.1f} s each, exit code {done.returncode}")
    print(done.stdout, done.stderr, sep="")
    idle = sorted(called(folder, "run")[0] for _ in range(5))
    print(f"nothing due: {idle[2]:.2f} s (median of 5)")
    print(f"status: {sorted(called(folder, 'status')[0] for _ in range(5))[2]:.2f} s (median of 5)")
    with closing(SqliteLedger(folder / "ledger", read_only=True)) as ledger:
        (account,) = ledger.overview().accounts
        print(
            f"spent: epsilon={account.epsilon:.4g} at delta={float(account.delta):.3g} in "
            f"{len(ledger.overview().releases)} debits of epsilon=1"
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        made = Path(tempfile.mkdtemp())
        try:
            main(made)
        finally:
            shutil.rmtree(made)

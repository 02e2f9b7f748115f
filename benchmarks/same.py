"""Is it still the same? Plans, prices, questions, exact answers of many releases, before and after a change.

    python -m benchmarks.same --into before.json [--only together traces]
    python -m benchmarks.same --against before.json [--into after.json]
    python -m benchmarks.same --noise --into before.json [--tables adult flights] [--releases 6] [--others 2]

Without ``--noise`` every release of ``same_cases.py`` is made with noise of zeros, and secrets that are
always the same. What is compared has a digest: the plan (steps, events, budget), the price (what the ledger
is charged, and for which events), the questions in order, the exact answers, and the rows that are written.
``--against`` prints what differs, with the first question that does, and ends with 1 if anything does.
``recording`` is the only function that knows the inside of the package, ``same_cases.py`` the only file that
knows its calls: after a change that renames either, point them to the new names, and nothing else. Releases
fit floating-point numbers: compare runs of one machine and the same libraries.

With ``--noise`` there are real releases of public tables at epsilon 1, each in a process of its own, as
``accuracy.py`` makes them: distances, processor seconds, peak memory. They are kept in the same file; with
``--against`` each mean stands beside the stored one. Noise has no seed, so they decide no exit code.
"""

from __future__ import annotations

import hashlib
import json
import random
import secrets
import statistics
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))  # where it is run as a module of the checkout

from accuracy import SOURCES, Figures, beside, mean_of, released
from harness import apart, command_line, machine, print_table
from same_cases import Case, cases, plans_of, release

from dpsyn_sql.accounting.budget import AMOUNT_UNITS, Budget
from dpsyn_sql.accounting.events import event_to_dict
from dpsyn_sql.ledger import entries
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.planning.asking import Asked
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.private.measure import noise
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.private.measure.planned_events import planned_events

COMPARED = ("plan", "price", "questions", "answers", "rows")
EPSILON = 1.0
NOISY_TABLES = ("adult", "flights", "weather", "german_credit", "mushroom")
LONG = 120
"""Characters of a fact of a question from which its digest stands for it."""
KEY = 7
"""Of every draw among the rows of a unit."""


@dataclass
class Record:
    """What the hooks see of a release. For generated tables: ``exact`` has counts without noise."""

    debits: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    questions: list[dict[str, Any]] = field(default_factory=list)
    stored: list[list[np.ndarray]] = field(default_factory=list)
    exact: list[np.ndarray] = field(default_factory=list)


@contextmanager
def recording() -> Iterator[Record]:
    """All that hangs on the inside of the package: noise of zeros, fixed secrets, and what passes the ledger.

    The noise source sees the exact answers. The ledger's entry sees the questions, in order, what they are
    charged, and what is stored. The id of a release seeds rows: of a database, questions about tables below
    follow from them.
    """
    record, ids = Record(), iter(range(1, 10_000))
    ask, charge, store, open_release = (
        SqliteEntry.ask, SqliteEntry.charge, SqliteEntry.store, SqliteLedger.open_release
    )  # fmt: skip

    def silent(_self: object, values: np.ndarray, _scale: float) -> np.ndarray:
        record.exact.append(values.copy())
        return values.copy()

    def highest(_self: object, scores: np.ndarray, _scale: float, _kind: str, number: int) -> np.ndarray:
        record.exact.append(scores.copy())
        return np.argsort(-scores, kind="stable")[:number]

    def asked(self: SqliteEntry, question: Mapping[str, Any]) -> Any:
        numbered = ask(self, question)
        if numbered.stored is None:  # else it was asked and answered before
            record.questions.append(dict(question))
        return numbered

    def charged(self: SqliteEntry, questions: Sequence[tuple[Any, Sequence[Any]]]) -> None:
        record.events += [event_to_dict(event) for _, events in questions for event in events]
        charge(self, questions)

    def kept(self: SqliteEntry, answers: Sequence[Any]) -> Any:
        answered = store(self, answers)
        record.stored += answered
        return answered

    @contextmanager
    def opened(self: SqliteLedger, key: Any, budget: Budget, **more: Any) -> Iterator[SqliteEntry]:
        with open_release(self, key, budget, **more) as entry:
            if not entry.replayed:
                record.debits.append({"budget": told(budget), "cost": told(entry.cost or budget)})
            yield entry

    patches = (
        patch.multiple(ExactNoise, gaussian=silent, laplace=silent, select=highest),
        patch.object(noise, "_RANDOM", random.Random(KEY)),  # rows that a splitter draws
        patch.object(secrets, "randbits", lambda _bits: KEY),  # which rows of a unit count
        patch.object(entries, "secrets", SimpleNamespace(token_hex=lambda size: f"{next(ids):0{2 * size}x}")),
        patch.multiple(SqliteEntry, ask=asked, charge=charged, store=kept),
        patch.object(SqliteLedger, "open_release", opened),
    )
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        yield record


def told(budget: Budget) -> dict[str, Any]:
    return {"kind": budget.kind, "amount": budget.amount, "delta": budget.delta}


def plan_facts(plan: Plan) -> dict[str, Any]:
    """What counts as the plan."""
    steps = [
        {
            "name": step.name,
            "queries": [[query.attrs, query.maps] for query in step.queries],
            "budget": told(step.budget),
            **(
                {"residuals": step.residuals}
                if isinstance(step, Asked)
                else {"tables": step.tables, "limits": [step.most_attributes, step.most_cells, step.together]}
            ),
        }
        for step in plan.steps
    ]
    return {
        "method": plan.method,
        "sizes": [[one.name, one.size] for one in plan.domain.attributes],
        "discovery": [[step.ask, step.attr, step.length, told(step.budget)] for step in plan.discovery],
        "steps": steps,
        "events": [event_to_dict(event) for event in planned_events(plan)],
        "budget": told(plan.budget),
    }


def digest(facts: object) -> str:
    """A short hash of JSON-ready facts."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def digest_of_tables(tables: Sequence[np.ndarray]) -> str:
    """A short hash of tables of integers and their shapes."""
    return digest(
        [[table.shape, hashlib.sha256(np.ascontiguousarray(table)).hexdigest()] for table in tables]
    )


def made(case: Case) -> dict[str, Any]:
    """All releases of a case: digests, and what helps to understand a difference."""
    began, plans, rows = time.perf_counter(), list[dict[str, Any]](), list[tuple[int, int]]()
    with recording() as record, duckdb.connect() as con:
        con.execute(case.tables)
        for options in case.calls:
            plans += map(plan_facts, plans_of(con, case, options))
            for table in release(con, case, options):
                rows += con.execute(f"SELECT count(*), bit_xor(hash(t)) FROM {table} AS t").fetchall()
    if not record.exact or not record.debits or len(record.stored) != len(record.questions):
        raise SystemExit(
            "the hooks miss something: a release without noise or debit, or a question without answer"
        )
    answers = [digest_of_tables(tables) for tables in record.stored]
    paid = [one["cost"] for one in record.debits]
    return {
        "digests": {
            "plan": digest(plans),
            "price": digest([record.debits, record.events]),
            "questions": digest(record.questions),
            "answers": digest([digest_of_tables(record.exact), *answers]),
            "rows": digest(rows),
        },
        "summary": {
            "plans": [
                f"{one['method']}: {', '.join(step['name'] for step in one['steps'])}" for one in plans
            ],
            "price": [f"{cost['kind']} {cost['amount'] / AMOUNT_UNITS:.6g}" for cost in paid],
            "events": len(record.events),
            "questions": len(record.questions),
            "sum of answers": int(sum(int(table.sum()) for tables in record.stored for table in tables)),
            "rows": [number for number, _ in rows],
            "seconds": round(time.perf_counter() - began, 1),
        },
        "each": [
            [shortened(question), digest(question), answer]
            for question, answer in zip(record.questions, answers, strict=True)
        ],
    }


def shortened(question: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a question; of a long one its digest."""
    texts = {name: json.dumps(fact, default=str) for name, fact in question.items()}
    return {name: fact if len(texts[name]) < LONG else digest(fact) for name, fact in question.items()}


def changed_facts(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What was and is not any more."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return "; ".join(f"{name} was {before.get(name)} and is {after.get(name)}" for name in names)


def differences(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[str]:
    """What differs between two runs of a case: names of ``COMPARED``; a case of one run alone differs too."""
    if before is None or after is None:
        return ["only before" if after is None else "only now"]
    return [name for name in COMPARED if before["digests"][name] != after["digests"][name]]


def first_difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """The first question that is another one, or has another answer; else what differs in the summary."""
    for place, (ours, theirs) in enumerate(zip_longest(after["each"], before["each"])):
        if ours is None or theirs is None:
            return f"{len(before['each'])} questions before, {len(after['each'])} now"
        if ours[1] != theirs[1]:
            return f"question {place + 1}: {changed_facts(theirs[0], ours[0])}"
        if ours[2] != theirs[2]:
            return f"another answer to question {place + 1}, {ours[0]}"
    return changed_facts(*({**run["summary"], "seconds": None} for run in (before, after)))


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Print a line for each case; whether all are the same."""
    rows: list[list[object]] = []
    for name in dict.fromkeys([*before, *after]):
        found = differences(before.get(name), after.get(name))
        both = name in before and name in after
        why = first_difference(before[name], after[name]) if found and both else ""
        rows.append([name, ", ".join(found) or "same", why])
    differ = sum(row[1] != "same" for row in rows)
    print_table(["release", "what differs", "first of it"], rows, f"{differ} of {len(rows)} differ.")
    return not differ


def show(made_now: Mapping[str, Any]) -> None:
    """What each case asked, paid and gave."""
    columns = ("questions", "events", "sum of answers", "rows", "price", "seconds")
    rows: list[list[object]] = []
    for name, one in made_now.items():
        cells = [one["summary"][column] for column in columns]
        shown = [", ".join(map(str, cell)) if isinstance(cell, list) else str(cell) for cell in cells]
        rows.append([name, *shown])
    seconds = sum(one["summary"]["seconds"] for one in made_now.values())
    print_table(["release", *columns], rows, f"{len(rows)} cases in {seconds:.0f} s. {machine()}")


def noisy(tables: Sequence[str], releases: int, others: int) -> list[dict[str, Any]]:
    """Real releases of the tables whose data are at hand; the first one ``releases`` times."""
    figures: list[dict[str, Any]] = []
    for place, table in enumerate(tables):
        try:
            SOURCES[table]()
        except SystemExit as missing:  # of ``harness.need``
            print(f"{table} is left out: {missing}\n", flush=True)
            continue
        for _ in range(others if place else releases):
            figures.append(asdict(apart(released, table, "adaptive", EPSILON)))
    return figures


def noisy_table(after: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]]) -> None:
    """Mean distances, median processor seconds and largest memory, each beside those before."""
    rows: list[list[object]] = []
    for table in dict.fromkeys(one["table"] for one in after):
        ours, theirs = ([Figures(**one) for one in run if one["table"] == table] for run in (after, before))
        row: list[object] = [table, f"{len(ours)}, {len(theirs)}"]
        for way in ("one_way", "two_way", "three_way"):
            row.append(beside(mean_of(ours, way), mean_of(theirs, way) if theirs else None))
        runs = [run for run in (ours, theirs) if run]
        row.append(" / ".join(f"{statistics.median(one.processor for one in run):.1f}" for run in runs))
        row.append(" / ".join(f"{max(one.mebibytes for one in run):.0f}" for run in runs))
        rows.append(row)
    header = ["table", "releases, before", "one-way", "two-way", "three-way", "processor seconds", "peak MiB"]
    print_table(header, rows, f"adaptive, epsilon {EPSILON:g}; now / before. {machine()}")


def main() -> int:
    """Make the releases, print the tables, and compare; 1 if anything differs."""
    parser = command_line(__doc__)
    parser.add_argument("--into", type=Path, help="JSON file; what it holds of the other kind stays")
    parser.add_argument("--against", type=Path, help="such a file of another run")
    parser.add_argument(
        "--only", nargs="+", metavar="WORD", help="releases whose name has one of these words"
    )
    parser.add_argument("--noise", action="store_true", help="real releases in place of those without noise")
    parser.add_argument("--tables", nargs="+", choices=[*SOURCES], default=[*NOISY_TABLES])
    parser.add_argument("--releases", type=int, default=6, help="of the first table")
    parser.add_argument("--others", type=int, default=2, help="of each other table")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    before = json.loads(arguments.against.read_text()) if arguments.against else {}
    same = True
    if arguments.noise:
        found: dict[str, Any] = {"noise": noisy(arguments.tables, arguments.releases, arguments.others)}
        noisy_table(found["noise"], before.get("noise", ()))
    else:
        wanted = {name: case for name, case in cases().items() if is_wanted(name, arguments.only)}
        found = {"exact": {name: made(case) for name, case in wanted.items()}}
        show(found["exact"])
        if arguments.against:
            stored = before.get("exact", {})
            same = compare(
                {name: one for name, one in stored.items() if is_wanted(name, arguments.only)}, found["exact"]
            )
    if arguments.into:
        held = json.loads(arguments.into.read_text()) if arguments.into.exists() else {}
        arguments.into.write_text(json.dumps({**held, **found}, indent=1) + "\n")
    return 0 if same else 1


def is_wanted(name: str, words: Sequence[str] | None) -> bool:
    return words is None or any(word in name for word in words)


if __name__ == "__main__":
    sys.exit(main())

"""plan_database(): what a release of several tables would do. No row is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpsyn_sql.accounting.account import KINDS, describe
from dpsyn_sql.accounting.budget import DELTA_UNITS, Budget, Number, exact_number
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.front.arguments import takes_request
from dpsyn_sql.front.database_job import Leg
from dpsyn_sql.front.database_prepare import prepared_database
from dpsyn_sql.front.database_request import DatabaseRequest
from dpsyn_sql.front.ledger_lookup import describe_ledger
from dpsyn_sql.front.plan import found_in_words
from dpsyn_sql.planning.explain import errors_in_words, explain_details, labelled
from dpsyn_sql.planning.explain_tree import explain_tree
from dpsyn_sql.planning.tree import Tree
from dpsyn_sql.private.measure.planned_events import explained_noise


@dataclass(frozen=True, slots=True)
class DatabaseExplanation:
    """What a release of several tables would do; ``str()`` gives what matters most, ``verbose()`` all of it.

    Fields as of ``Explanation``; ``legs``: the tables with their plans, the root first.
    """

    tree: Tree
    legs: tuple[Leg, ...]
    budget: Budget
    into: str
    promise: str
    ledger: str
    account: str
    preview: str
    obstacle: str
    cost: Budget
    delta: Number

    def __str__(self) -> str:
        return "\n".join([*self._verdict(), "More        every column and question: verbose(), --verbose"])

    def verbose(self) -> str:
        """As ``str()``, with every column and every question of every table."""
        lines = self._verdict()
        for leg in self.legs:
            noise = explained_noise(leg.plan)
            found = found_in_words(leg.plan, leg.shape)
            details = explain_details(leg.plan, leg.shape, counting=(), noise=noise, discovery=found)
            lines += [f"Table       {leg.name}", *(f"  {line}" for line in details)]
        return "\n".join(lines)

    def _verdict(self) -> list[str]:
        first = {
            "Writes": f"{self.into}; {self.obstacle}" if self.obstacle else self.into,
            "Costs": self.promise,
            "Release": self.preview,
            "Account": self.account,
            "Ledger": self.ledger,
        }
        lines = [f"{what:<12}{text}" for what, text in first.items()]
        lines += explain_tree(self.tree, {leg.name: leg.shape for leg in self.legs})
        return [*lines, *self._of_tables(), f"Budget      {self._budget()}"]

    def _of_tables(self) -> Iterator[str]:
        """The share of each table, and how far off its counts are."""
        for leg in self.legs:
            share = leg.plan.budget.amount / self.budget.amount
            errors = list(errors_in_words(leg.plan, explained_noise(leg.plan)))
            yield from labelled(
                "Errors", [f"{leg.name}, {share:.0%} of the budget:", *(f"  {one}" for one in errors)]
            )

    def _budget(self) -> str:
        if self.budget.kind == "pure":
            return "Laplace noise, delta = 0"
        kept = self.budget.delta / DELTA_UNITS
        told = describe(self.budget, exact_number("delta", self.delta))
        return f"{told}, {KINDS['gdp']}, Gaussian noise, threshold delta = {kept:.3g}"


@takes_request(DatabaseRequest)
def plan_database(con: Connection, request: DatabaseRequest) -> DatabaseExplanation:
    """Explain what ``release_database`` would do with the same arguments. Reads no rows, charges nothing.

    Rows of public tables are read where references need them.

    Args:
        con: as for ``release_database``.
        request: as for ``release_database``; or instead its fields, as arguments:

    Raises:
        InputError: ``release_database`` would refuse the same call.
    """
    with prepared_database(con, request, explaining=True) as job:
        promise = f"epsilon = {float(request.epsilon):g}, delta = {float(request.delta):g}"
        stored = job.preview.stored is not None
        return DatabaseExplanation(
            tree=job.tree,
            legs=job.legs,
            budget=job.budget,
            into=job.target.name,
            promise=f"{promise}, charged before" if stored else f"{promise}, once for all tables",
            ledger=describe_ledger(job.place),
            account=f"{job.preview.account_state} {job.preview.account_state.warning}".strip(),
            preview=str(job.preview),
            obstacle=job.obstacle,
            cost=job.preview.cost or job.budget,
            delta=request.delta,
        )

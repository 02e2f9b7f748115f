"""Every Protocol: the seams between the parts of the pipeline.

Private side of the door: ``Engine`` (when it reads the source), ``Counter``, ``NoiseSource``.
The door: ``Curator``. Public side: ``Method``, ``Model``, ``Sampler``, and the ``Engine`` that writes.
The ledger stands beside the door: it is charged before anything is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dpsyn_sql.accounting.account import KINDS, shown
from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.accounting.events import PrivacyEvent
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.planning.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.planning.limits import NO_TERMS, Terms
from dpsyn_sql.planning.plan import Plan, ReleaseKey
from dpsyn_sql.planning.queries import (
    Answer,
    ContributionQuery,
    Exact,
    GridQuery,
    KeyQuery,
    MarginalQuery,
    NoisyMarginal,
    Question,
    StepQuery,
    TypesQuery,
)
from dpsyn_sql.source.ledger_names import Home
from dpsyn_sql.source.parts import Encoding, Tally
from dpsyn_sql.source.relation import Source
from dpsyn_sql.sqltext.dialect import Dialect

if TYPE_CHECKING:  # load numpy, and a ledger is shown without
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from dpsyn_sql.domain.hierarchies.base import Hierarchy
    from dpsyn_sql.domain.hierarchies.growth import Nodes
    from dpsyn_sql.domain.shape import Shape
    from dpsyn_sql.fit.network import ModelTables, Network
    from dpsyn_sql.fit.variances import Variances
    from dpsyn_sql.planning.growth import Growth
    from dpsyn_sql.sqltext.fragments import Fragment


class Engine(Protocol):
    """A database session. Every failure is an ``EngineFailure`` without the engine's text."""

    dialect: Dialect

    @property
    def private(self) -> bool:
        """Whether it is an instance of ours, which nobody else can look into."""

    def execute(self, sql: str, *, step: str) -> None:
        """Run a statement and drain its result; ``step`` names the work for messages."""

    def fetch(self, sql: str, *, step: str) -> dict[str, NDArray[Any]]:
        """Run a query; columns as numpy arrays by name."""

    def load(self, table: str, columns: Mapping[str, NDArray[Any]], *, step: str) -> None:
        """Append equally long numpy columns to an existing table (``table`` is quoted SQL)."""

    def transaction(self) -> AbstractContextManager[None]:
        """One transaction: committed at the end, rolled back on any error."""

    def drop_temporary(self) -> None:
        """Drop every temporary table and view of this session: all of them are ours."""

    def forbid(self, fragments: Iterable[str]) -> None:
        """From now on refuse every statement that names one of ``fragments``, in any letter case."""

    def close(self) -> None:
        """Drop what this session made for itself and let the database go; harmless when repeated."""


class SourceEngine(Engine, Protocol):
    """PRIVATE: an engine that holds the rows of a source, in one part or in many parts on many machines.

    Statements about rows are DuckDB's everywhere. What ``execute``, ``fetch`` and ``load`` see is the one
    database beside the pipeline, which need not hold the rows: only these methods read them.
    """

    @property
    def in_parts(self) -> bool:
        """Whether the rows lie in parts: then a pass over them costs more than many statements in one."""

    def sums(
        self, tallies: Sequence[Tally], *, step: str, over: Encoding | None = None, unit: str | None = None
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """Each tally's keys with their sums over all rows, in the order of the tallies, groups in any order.

        ``over``: the encoding that they read, kept or not; None: the source. Codes that are not kept are made
        in passing. ``unit``: a column of the source whose rows of one value must be in one part; for tallies
        of the source only. Keys are integers. Columns are numpy arrays by name, ``n`` int64.
        """

    def gather(self, table: Fragment, tally: Tally, *, step: str, unit: str | None = None) -> None:
        """Make a temporary table of the sums of a tally over the source: its keys (integers or bytes)
        and ``n`` BIGINT. It is beside the pipeline, where ``execute`` and ``fetch`` read it."""

    def keep(self, encoding: Encoding, *, step: str) -> None:
        """Make the codes once, for statements to come: every later count sees the same rows."""

    def drop(self, table: Fragment, *, step: str) -> None:
        """Let what ``keep`` or ``gather`` made go; harmless where there is nothing."""


@dataclass(frozen=True, slots=True)
class PartStatements:
    """What a task elsewhere runs for a part of the synthetic rows (``write.publish``). ``first``, ``rows``,
    ``seed`` and ``before`` are the variables ``dpsyn_<name>`` of its session.

    ``room`` makes the table ``staged`` of codes; ``draw`` stages ``rows`` rows by ``seed``, numbered from
    ``first`` on, from the table ``slots`` (empty if codes are brought). From row ``first`` on, ``check``
    counts the rows and the complete ones, ``reject`` removes those that cannot be (empty without
    conditions), ``count`` counts, and ``trim`` keeps the first ``rows`` rows.
    """

    room: str
    staged: str
    draw: str
    check: str
    reject: str
    count: str
    slots: str
    trim: str


@dataclass(frozen=True, slots=True)
class PartRows:
    """Synthetic rows that are made part by part in tasks elsewhere.

    Args:
        statements: what a task runs.
        rows: wanted, of all parts (``sample.rounds.parts``).
        seed: of drawing.
        gaps: conditions remove rows, so that numbers have gaps.
        slots: table of the alias tables in the session that writes; None if codes are brought.
        staged: table of the codes there; None if tasks draw them.
        left: rows of each part that are left by conditions; None if there are none.
    """

    statements: PartStatements
    rows: int
    seed: int
    gaps: bool = False
    slots: Fragment | None = None
    staged: Fragment | None = None
    left: tuple[int, ...] | None = None

    @property
    def kept(self) -> int:
        """Rows of all parts that are left."""
        return self.rows if self.left is None else sum(self.left)


class RowPublisher(Protocol):
    """Makes synthetic rows in tasks elsewhere and writes them there, all of them or none."""

    def left(self, engine: Engine, rows: PartRows) -> tuple[int, ...]:
        """How many rows of each part conditions leave; the parts are drawn for it, and nothing is written.

        ``engine``: the session that holds what ``rows`` names.
        """

    def publish(
        self,
        engine: Engine,
        rows: PartRows,
        query: str,
        shape: Shape,
        comments: Mapping[str, str],
        words: str,
        release: str,
        model: Path,
    ) -> None:
        """Write the rows that ``query`` decodes of each part, then the model, so that the same call repairs
        what a killed one left.

        Args:
            engine: the session that holds what ``rows`` names.
            rows: what is made.
            query: of a part in its task (``write.publish.part_query``).
            shape: of the output; complete.
            comments: of every column.
            words: what a reader of the rows should know first.
            release: its id.
            model: a database file with the model, which is copied.

        Raises:
            PublishError: the output has appeared, or is not what this release wrote.
            EngineFailure: it failed.
        """


class Counter(Protocol):
    """PRIVATE: exact counts of marginals of the encoded source."""

    def counted_as(self, query: MarginalQuery) -> MarginalQuery:
        """The marginal to count for a query over bins: over its original codes if others need these too,
        else the query itself."""

    def count(self, queries: Sequence[MarginalQuery]) -> list[NDArray[np.int64]]:
        """One int64 array of the marginal's full shape per query."""


class DiscoveryCounter(Protocol):
    """PRIVATE: exact counts for discovery; each unit counts for at most k keys or cells."""

    def keys(self, query: KeyQuery, least: int) -> Iterator[tuple[list[Exact], NDArray[np.int64]]]:
        """Distinct values of at least ``least`` distinct units each, with their numbers, in parts: there may
        be more of them than memory holds."""

    def cells(self, query: GridQuery) -> NDArray[np.int64]:
        """Distinct units per code of the grid, int64[grid.size]."""

    def steps(self, query: StepQuery) -> NDArray[np.int64]:
        """Distinct units by the last step that fits, int64[len(query.steps) + 1]; at 0 if none does."""

    def types(self, query: TypesQuery) -> NDArray[np.int64]:
        """Distinct units per class of text, int64[len(CLASSES)]."""

    def contributions(self, query: ContributionQuery) -> NDArray[np.int64]:
        """Units by number of bounded rows, int64[query.most]."""

    def nodes(self, hierarchies: tuple[Hierarchy, ...], nodes: Nodes) -> NDArray[np.int64]:
        """Rows of nodes that share no row, int64[nodes]: rows, not units, and at most k of a unit."""

    def outside(self, hierarchies: tuple[Hierarchy, ...]) -> NDArray[np.int64]:
        """Rows outside of a hierarchy, and rows without a value, int64[2], among the same rows of units."""

    def largest(
        self, hierarchies: tuple[Hierarchy, ...], nodes: Nodes, refined: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Rows of the largest child of each node by each part, int64[nodes, parts]; 0 where ``refined`` (bool
        of the same shape) says that it has no children by a part."""


class NoiseSource(Protocol):
    """Integer noise; there is no seed."""

    def gaussian(self, values: NDArray[np.int64], sigma: float) -> NDArray[np.int64]:
        """Add independent discrete Gaussian noise of scale ``sigma`` to a flat vector.

        Values and scale are in steps of an event's lattice.
        """

    def laplace(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """Add independent discrete Laplace noise of ``scale`` to a flat vector."""

    def select(self, scores: NDArray[np.int64], scale: float, kind: Kind, number: int) -> NDArray[np.int64]:
        """Indices of ``number`` candidates with high scores, best first: exponential mechanism or
        permute-and-flip, peeled."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of an account: epsilon spent so far at its delta, its grant, and in words what is left.

    ``idle``: other accounts with a limit and no source, where this one has no limit. ``kind``: of the
    account, or of the release that would make it.
    """

    account: str
    spent_epsilon: float
    delta: float
    granted: tuple[str, str] | None
    left: str = ""
    idle: tuple[str, ...] = ()
    kind: Kind = "gdp"

    def __str__(self) -> str:
        spent = f"epsilon={shown(self.spent_epsilon)} at delta={shown(self.delta)} is spent so far"
        named = f"{self.account!r} ({KINDS[self.kind]})"
        if self.granted is None:
            return f"{named} has no limit; {spent}"
        epsilon, delta = self.granted
        return f"{named} was granted epsilon={epsilon}, delta={delta}; {spent}; {self.left}"

    @property
    def warning(self) -> str:
        """A warning about limits that apply to no source; empty if there are none."""
        if not self.idle:
            return ""
        return (
            f"The ledger has a limit for {', '.join(map(repr, self.idle))}, but no source is charged to it. "
            f"This release is charged to {self.account!r}, which has no limit. "
            "Set one with `dpsyn ledger grant`."
        )


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a ledger would do with a release. Finding out changes nothing.

    ``stored`` is the budget of the entry that would be replayed, None for a new debit; ``measured_on`` the
    day of its answers, None if they are not complete. ``wrote``: it was published to this output before,
    or died while writing it. ``published``: the id of the release, if it was published to any output.
    ``refusal``: why nothing would be debited. ``told``: what a new debit costs within its panel;
    ``cost``: the same in units, None where no ledger was asked.
    """

    standing: Standing
    stored: Budget | None = None
    measured_on: str | None = None
    wrote: bool = False
    published: str = ""
    refusal: str = ""
    told: str = ""
    cost: Budget | None = None

    def __str__(self) -> str:
        if self.refusal:
            return f"would be refused: {self.refusal}"
        if self.stored is None:
            return self.told or "a new debit, which fits the account"
        if self.measured_on is None:
            return "continues an earlier run under its debit: costs nothing more"
        return f"a replay of the answers of {self.measured_on}: costs nothing"


class Asked(Protocol):
    """A question in a ledger entry, by its number."""

    @property
    def stored(self) -> list[NDArray[np.int64]] | None:
        """The answer that was stored before it was asked, or None."""

    def charge(self, event: PrivacyEvent) -> None:
        """Reserve an event within the debit, before the source is read.

        Raises:
            PrivacyBudgetExceeded: the events would exceed what was debited.
        """

    def store(self, answer: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """Store a noisy answer, compare-and-set; returns the answer that won."""


class LedgerEntry(Protocol):
    """A release in the ledger: the debit was made when it was opened; no refunds."""

    @property
    def budget(self) -> Budget:
        """What was debited: its kind is that of every question."""

    @property
    def release_id(self) -> str:
        """Random public identifier of the release."""

    @property
    def debited_at(self) -> str:
        """UTC time of the debit, ISO 8601: the only timestamp of a certificate."""

    @property
    def name(self) -> str:
        """Name of the release."""

    @property
    def version(self) -> str | None:
        """Public label of the data it was measured on."""

    @property
    def standing(self) -> Standing:
        """The account after the debit, for people."""

    @property
    def replayed(self) -> bool:
        """The debit was found in the ledger, not made: nothing was charged this time."""

    @property
    def state(self) -> str:
        """``"debited"``: questions may be asked; ``"measured"``, ``"published"``: all answers are
        stored and the source is not opened again."""

    @property
    def measured_on(self) -> str | None:
        """UTC day on which the last answer was stored, ISO 8601; None while questions may be asked."""

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """Events charged so far, in order."""

    def ask(self, question: Mapping[str, Any]) -> Asked:
        """The next question; the entry numbers them in the order of these calls, whoever asks. A stored
        question of this number that differs is an error."""

    def close_questions(self) -> None:
        """Set the state measured: from now on the source is never read again for this entry."""

    def publishing(self, into: str) -> AbstractContextManager[None]:
        """Announce ``into`` while it is written; a killed release may then write it again."""

    def published(self, into: str, rows: int) -> None:
        """State published."""


class Ledger(Protocol):
    """Accounts and entries."""

    @property
    def home(self) -> Home:
        """Where the names of its sources begin."""

    def look(
        self, key: ReleaseKey, budget: Budget, targets: Sequence[str], *, new_debit: bool = False
    ) -> Outlook:
        """What ``open_release`` would do, for an output of these names; changes nothing.

        Raises:
            AccountError: the sources belong to another account, or to different ones.
        """

    def open_release(
        self, key: ReleaseKey, budget: Budget, *, new_debit: bool = False
    ) -> AbstractContextManager[LedgerEntry]:
        """Debit ``budget`` and open an entry, or find the one of the same key at no cost.

        ``new_debit`` pays again where the name and version exist with other settings, or the same settings
        under another name.

        Raises:
            PrivacyBudgetExceeded: the account does not hold it; nothing was read.
            ReleaseChanged: same name and version, other settings; nothing was charged.
            ReleaseExists: same version and settings, another output; nothing was charged.
            AccountError: another unit, kind or account than the source's own.
            LedgerError: the ledger cannot be used; nothing was read.
        """


class Curator(Protocol):
    """The door: the only way from private data to a method."""

    def ask(self, question: Question[Answer], budget: Budget) -> Answer:
        """The noisy answer to a question of ``plan.queries``, costing at most ``budget``.

        Raises:
            BudgetError: the budget cannot pay for such a question; nothing was charged.
            PrivacyBudgetExceeded: the ledger does not hold the cost; nothing was counted.
        """


class MarginalModel(Protocol):
    """What is known of a table after the fit, or read back from where it is stored; public."""

    @property
    def domain(self) -> Domain:
        """The attributes it models."""

    @property
    def total(self) -> float:
        """Estimated number of (bounded) rows of the source; may be negative."""

    def supports(self, attrs: Sequence[str]) -> bool:
        """Whether ``project`` answers for these attributes; cheap."""

    def project(self, attrs: Sequence[str]) -> NDArray[np.float64]:
        """Expected counts of a marginal the model can answer, axes in the order of ``attrs``.

        Raises:
            InputError: it does not support these attributes.
        """


class Model(MarginalModel, Protocol):
    """A fitted model. It says itself what it answers and how its rows are drawn."""

    def network(self) -> Network | None:
        """What SQL draws rows of it from; None for a model that is no network."""

    def tables(self) -> ModelTables:
        """What SQL answers marginals from."""

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> Sampler:
        """What draws its rows; ``deadline`` says how much time there is."""


class Sampler(Protocol):
    """Draws synthetic rows as codes; post-processing, deterministic in the seed."""

    @property
    def drawn(self) -> str:
        """How it draws rows, as certificates have it: ``"with low variance"``."""

    def batches(self, rows: int, seed: int) -> Iterator[NDArray[np.integer[Any]]]:
        """Arrays of shape (batch, attributes) that sum to ``rows`` rows."""


class Method(Protocol):
    """A recipe: plan from public facts, then ask the curator and fit (``methods/recipe.py``)."""

    @property
    def name(self) -> str:
        """The name in plans and certificates."""

    def chosen(self, domain: Domain, terms: Terms) -> Method:
        """The method that plans and runs: itself, or another one that is better for such a table."""

    @property
    def model(self) -> type[Model]:
        """The class of model that ``run`` fits; a release checks it before it charges."""

    @property
    def growth(self) -> Growth | None:
        """How discovery grows the tree of a table that is one key; None for methods of other tables."""

    def plan(self, source: Source, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> Plan:
        """Which marginals at what share of the budget.

        Raises:
            InputError: a workload is given, but the method does not use it.
        """

    def run(self, plan: Plan, curator: Curator, terms: Terms = NO_TERMS) -> Model:
        """Measure as planned and fit a model to the noisy answers."""

    def variances(self, model: Model, answers: Sequence[NoisyMarginal]) -> Variances:
        """Of the estimates of a model that ``run`` fitted, as far as they are known; post-processing.

        ``answers`` are all noisy tables that the release shows.
        """

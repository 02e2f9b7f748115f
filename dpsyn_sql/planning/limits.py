"""Limits of a release: memory, time, how codes are written to disk, and when it stops."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dpsyn_sql.errors import InputError, PlanTooLarge, said
from dpsyn_sql.planning.asking import Answered, Handle
from dpsyn_sql.planning.families import Families
from dpsyn_sql.planning.plan import CountedKey
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.planning.workload import UNWEIGHTED, Workload
from dpsyn_sql.source.names import keyed
from dpsyn_sql.source.relation import PrivacyUnit

if TYPE_CHECKING:  # loads numpy, and a ledger is shown without
    from dpsyn_sql.fit.given import Given


# -- time --------------------------------------------------------------------------------------------

# A limit on the time after the last question: what of the fit and the sample is cut short when it runs out.
#
# Nothing here may reach a question: the clock starts when all have been answered, so what it decides is
# post-processing. Two runs of one release may differ by it.


class Deadline:
    """``seconds`` of work inside ``running``, or None for no limit; ``cuts`` says what was left out.

    What touches the source or its database stays outside, so that its pace decides nothing.
    """

    def __init__(self, seconds: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self.cuts: list[str] = []
        self._clock = clock
        self._spent = 0.0
        self._since: float | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """All questions have been answered, and what is done inside uses noisy answers alone."""
        if self.seconds is None:
            yield
            return
        self._since = self._clock()
        try:
            yield
        finally:
            self._spent += self._clock() - self._since
            self._since = None

    @property
    def left(self) -> float:
        """Seconds left; infinite without a limit."""
        if self.seconds is None:
            return math.inf
        return self.seconds - self._spent - (0.0 if self._since is None else self._clock() - self._since)

    def over(self, share: float, cut: str) -> bool:
        """Whether ``share`` of the time is used up; then ``cut`` is what is left out."""
        return self._short(self.seconds is not None and self.left <= (1 - share) * self.seconds, cut)

    def forbids(self, seconds: float, cut: str) -> bool:
        """Whether work of about so many seconds is more than what is left; then ``cut`` is left out."""
        return self._short(seconds > self.left, cut)

    def _short(self, short: bool, cut: str) -> bool:
        if short and cut not in self.cuts:
            self.cuts.append(cut)
        return short


NO_DEADLINE = Deadline()
"""All the time there is; it never cuts anything."""


# -- memory ------------------------------------------------------------------------------------------

# A limit on memory in bytes, how it is divided, and the other terms of a method. Only public facts decide.
#
# The interpreter and its libraries take a part. The database gets half of the rest. The other half is for our
# own tables: exact counts and references of the candidates, the cliques of a model, and what its fit
# remembers of them.

_PROCESS = 256 * 2**20
# Bytes of Python with numpy, scipy and the database loaded: 160 MB and a margin.

LEAST_MEMORY = 512 * 2**20
"""Bytes; below it the database cannot read a Parquet file of a few dozen columns."""

MAX_PAIR_CELLS = 2**22
"""The most cells of a candidate pair of original codes: 32 MB to count."""

_BYTES_PER_CANDIDATE_CELL = 32
# An exact count, its expectation by the model and the reference, 8 bytes each, and coarse twins.

_BYTES_PER_TREE_CELL = 256
# The tables of a calibration, the steps that L-BFGS remembers, the distributions that rows are drawn from.

_BYTES_PER_MEASURED_CELL = 48
# A count with and without noise, in one vector and in its table, and the stored answer.

_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_WRITTEN = re.compile(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([a-z]*)\s*", re.IGNORECASE | re.ASCII)


SCRATCH = ("encrypted", "plain")
"""How codes that do not fit in memory are written."""

LimitsSpec = Mapping[str, str | float | None] | None
"""Limits as people write them: ``{"memory": "4GB", "time": 600, "scratch": "plain"}``."""


@dataclass(frozen=True, slots=True)
class Limits:
    """``memory``: bytes of the whole process at most; ``time``: seconds for the fit and the sample; None for
    no limit. ``scratch``: one of ``SCRATCH``. Memory alone may change questions."""

    memory: int | None = None
    time: float | None = field(default=None, compare=False)
    scratch: str = field(default=SCRATCH[0], compare=False)

    @property
    def engine(self) -> str | None:
        """The limit for our own instance, as DuckDB writes it."""
        return None if self.memory is None else f"{self._half // 2**20}MiB"

    def candidate_cells(self, most: int) -> int:
        """Cells of all candidates together: ``most``, or the power of two that fits into three quarters."""
        return self._fitting(most, 0.75, _BYTES_PER_CANDIDATE_CELL)

    def tree_cells(self, most: int) -> int:
        """Cells of a junction tree: ``most``, or the power of two that fits into half."""
        return self._fitting(most, 0.5, _BYTES_PER_TREE_CELL)

    def check_measured(self, cells: int) -> None:
        """Refuse to measure more cells than can be held.

        Raises:
            PlanTooLarge: naming the limit that would be enough.
        """
        needed = cells * _BYTES_PER_MEASURED_CELL
        if self.memory is not None and needed > self._half:
            enough = -(-(_PROCESS + 2 * needed) // 10**6)
            raise PlanTooLarge(
                f"The plan is too large for the memory: it measures {cells:,} cells at once, which needs "
                f"limits={{'memory': '{enough}MB'}}. Raise the limit, declare fewer bins or categories, or "
                "leave a column out with exclude=."
            )

    @property
    def _half(self) -> int:
        return 0 if self.memory is None else (self.memory - _PROCESS) // 2

    def _fitting(self, most: int, share: float, size: int) -> int:
        if self.memory is None or most * size <= share * self._half:
            return most
        return int(2 ** (int(share * self._half / size).bit_length() - 1))


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a table beside the answers that its method asks for.

    ``tables``: one-way tables that discovery has, with the noise taken out; nobody asks for them again.
    ``seen``: noisy counts of the labels that discovery found, without those of ``__other__`` and NULL.
    ``counted``: of a table that is one key, once discovery is over. ``given``: of a table of a tree below the
    root the rows of its parent, once they are drawn.
    """

    tables: tuple[NoisyMarginal, ...] = ()
    seen: tuple[NoisyMarginal, ...] = ()
    counted: CountedKey | None = None
    given: Given | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """``limits`` and ``workload`` may change questions; ``deadline`` changes only later steps.

    Of a table whose columns were asked about once (``discovery/designs.few_units``), ``known`` are the
    attributes whose one-way tables discovery has, and ``alone`` says that one-way tables are all that is
    worth measuring, by a noisy number of rows and the whole budget. ``families``: of a table whose rows stay
    together; its domain is then theirs. ``unit``: what is protected. ``evidence``: what is known beside the
    answers; who reads it looks at noisy answers.
    """

    limits: Limits = NO_LIMITS
    workload: Workload = UNWEIGHTED
    deadline: Deadline = field(default=NO_DEADLINE, compare=False)
    alone: bool = False
    known: frozenset[str] = frozenset()
    families: Families | None = None
    unit: PrivacyUnit = field(default=PrivacyUnit(), compare=False)
    evidence: Handle[Evidence] = field(default=Answered(Evidence()), compare=False)

    @property
    def of_tree(self) -> bool:
        """Whether the table is one of a tree."""
        return self.families is not None and bool(self.families.table)

    @property
    def above(self) -> frozenset[str]:
        """The attributes of rows above the table: no question is about these alone."""
        return frozenset(one.name for one in self.families.above) if self.families else frozenset()

    @property
    def unasked(self) -> frozenset[str]:
        """The attributes whose one-way tables the method does not ask for."""
        return self.known | self.above


NO_TERMS = Terms()
"""No limit on memory or time, and all pairs alike."""


def bytes_written(value: object) -> float | None:
    """The number of bytes that a text or a number means; None if it means none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
    unit = _UNITS.get(found[2].lower()) if found else None
    return float(found[1]) * unit if found and unit else None


def read_limits(spec: LimitsSpec, taken: Sequence[str] = ("memory", "time", "scratch")) -> Limits:
    """Read limits as people write them; ``taken``: those that there are.

    Raises:
        InputError: not such a mapping, or a value of it that is not understood or out of range.
    """
    readers: dict[str, Callable[[object, str], Any]] = {
        "memory": _memory,
        "time": _seconds,
        "scratch": _scratch,
    }
    stated = keyed("limits", spec, taken, "{'memory': '4GB'}")
    limits: dict[str, Any] = {
        key: readers[key](value, f"limits={{{key!r}: {said(value)}}}") for key, value in stated.items()
    }
    return Limits(**limits)


def _memory(value: object, stated: str) -> int:
    """Of ``"4GB"``, ``"1.5 GiB"`` or a number of bytes."""
    number = bytes_written(value)
    if number is None:
        raise InputError(f"{stated} is not understood: write for example '4GB', or a number of bytes")
    if number < LEAST_MEMORY:
        raise InputError(f"{stated} is too small: give {LEAST_MEMORY // 2**20}MiB or more")
    return int(number)


def _seconds(value: object, stated: str) -> float:
    """Of a number, or of one as text."""
    seconds = 0.0
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            seconds = float(value)
    if not (math.isfinite(seconds) and seconds > 0):
        raise InputError(f"{stated}: give a positive number of seconds, or None")
    return seconds


def _scratch(value: object, stated: str) -> str:
    if not isinstance(value, str) or value not in SCRATCH:
        raise InputError(f"{stated} is not known; use one of {', '.join(SCRATCH)}")
    return value


# -- stops -------------------------------------------------------------------------------------------

# Whether a release stops after it has learnt the values of its columns of text; by noisy answers and public
# facts alone.
#
# It stops where little can be kept and its owner can do something about it: many columns of which no value is
# frequent enough to be found (each would be ``__other__`` in every row), in a table of so many columns that
# pairs are not worth their budget. It never stops because noise hides everything.

HIDDEN_COLUMNS, HIDDEN_PART = 5, 0.125
"""So many columns without a value, and this part of all columns, are worth a stop."""

TIED_PART = 0.5
"""Pairs that have to go together, as part of the number of columns, above which too few may: a table in which
each column goes with one other has half as many pairs as columns."""

CLEAR = 0.25
"""Values of this part of the rows have to be found, or noise hides whatever there is."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """What is known after the questions about values of text.

    ``rows``: the noisy number of units; ``columns``: how many are measured. ``hidden``: of each column
    without a value the noisy rows from which one would have been shown.
    """

    rows: float
    columns: int
    hidden: Mapping[str, int]


def little_is_kept(learnt: Learnt, tied: float) -> bool:
    """Whether to stop. ``tied``: how many pairs have to go together for pairs to be worth their budget."""
    least = max(HIDDEN_COLUMNS, HIDDEN_PART * learnt.columns)
    clear = max(learnt.hidden.values(), default=0) <= CLEAR * learnt.rows
    return clear and len(learnt.hidden) >= least and tied > TIED_PART * learnt.columns

"""The terms that a release sets for its method: memory, workload, time."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsyn_sql.planning.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.planning.limits import NO_LIMITS, Limits
from dpsyn_sql.planning.workload import UNWEIGHTED, Workload


@dataclass(frozen=True, slots=True)
class Terms:
    """``limits`` and ``workload`` may change questions; ``deadline`` changes only later steps."""

    limits: Limits = NO_LIMITS
    workload: Workload = UNWEIGHTED
    deadline: Deadline = field(default=NO_DEADLINE, compare=False)


NO_TERMS = Terms()
"""No limit on memory or time, and all pairs alike."""

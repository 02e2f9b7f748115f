"""What one release sets and no method chooses: memory, what matters most, time."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsyn_sql.planning.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.planning.limits import NO_LIMITS, Limits
from dpsyn_sql.planning.workload import UNWEIGHTED, Workload


@dataclass(frozen=True, slots=True)
class Terms:
    """``limits`` and ``workload`` may form questions; ``deadline`` only what follows the last of them."""

    limits: Limits = NO_LIMITS
    workload: Workload = UNWEIGHTED
    deadline: Deadline = field(default=NO_DEADLINE, compare=False)


NO_TERMS = Terms()
"""All the memory and time there is, and all pairs alike."""

"""How long a running phase will go on, said only where its steps so far tell it."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field

_FEWEST, _BRIEFEST = 3, 1.0
"""Reports and seconds before anything is said."""
_ALIKE = 2.0
"""The first half of the steps and the second took as long within this factor, or nothing is said."""
_LATE = 0.5
"""A report that takes a second and this share of all the time so far ends what was said."""
_MOST_MARKS = 256

_SECOND, _MINUTE, _HOUR = 1.0, 60.0, 3600.0


@dataclass(slots=True)
class Pace:
    """The steps of one run of a phase.

    ``begun``: seconds of a clock; ``total``: the amount of work, or None; ``at_most``: the phase may end
    before, as a fit that has converged does.
    """

    begun: float
    total: int | None
    at_most: bool = False
    done: int = 0
    _reports: int = 0
    _last: float = 0.0
    _even: bool = False
    _apart: int = 1
    _marks: list[tuple[int, float]] = field(default_factory=list)

    def advance(self, amount: int, now: float) -> None:
        """``amount`` of the work is done at ``now``, in seconds of the clock."""
        if amount <= 0:
            return
        self.done, self._reports, self._last = self.done + amount, self._reports + 1, now
        self._even = self._is_even()
        if self._reports % self._apart == 0:
            self._marks.append((self.done, now))
        if len(self._marks) > _MOST_MARKS:
            del self._marks[::2]
            self._apart *= 2

    def _is_even(self) -> bool:
        """Whether the first half of the steps, as far as there was a report, took as long as the others."""
        place = bisect_right(self._marks, (self.done // 2, math.inf))
        if place == 0:
            return False
        done, moment = self._marks[place - 1]
        first, second = (moment - self.begun) / done, (self._last - moment) / (self.done - done)
        return first < second * _ALIKE and second < first * _ALIKE

    def left(self, now: float) -> float | None:
        """Seconds that the phase goes on, at the pace of all its steps; None: they do not tell.

        Between two reports it counts down.
        """
        spent = self._last - self.begun
        if self.total is None or self._reports < _FEWEST or spent < _BRIEFEST or self.done >= self.total:
            return None
        waited = now - self._last
        if not self._even or waited > _LATE * spent + _SECOND:
            return None
        left = spent / self.done * (self.total - self.done) - waited
        return left if left > 0 else None

    def words(self, now: float) -> str:
        """The same for people, such as "about 3 min"; empty: nothing can be said."""
        left = self.left(now)
        if left is None:
            return ""
        return f"{'at most' if self.at_most else 'about'} {duration(left)}"


def duration(seconds: float) -> str:
    """Seconds in one or two units, as coarse as a guess is: ``5 s``, ``40 s``, ``3 min``, ``2 h 10 min``."""
    if seconds < 55:
        step = 5 if seconds < 30 else 10
        return f"{max(5, round(seconds / step) * step)} s"
    if seconds < _HOUR - _MINUTE / 2:
        return f"{round(seconds / _MINUTE)} min"
    tens = round(seconds / (10 * _MINUTE))
    hours, minutes = tens // 6, tens % 6 * 10
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"

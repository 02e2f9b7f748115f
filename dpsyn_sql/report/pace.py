"""How long a running phase will go on, said only where its steps so far tell it."""

from __future__ import annotations

from dataclasses import dataclass

_FEWEST, _BRIEFEST = 3, 1.0
"""Reports and seconds before anything is said."""
_WEIGHT = 0.5
"""Of the last report in the recent pace."""
_ALIKE = 2.0
"""The recent pace and that of all steps differ by less than this factor, or nothing is said; a report that is
late by more than this factor and a second ends what was said."""

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
    _recent: float = 0.0

    def advance(self, amount: int, now: float) -> None:
        """``amount`` of the work is done at ``now``, in seconds of the clock."""
        if amount <= 0:
            return
        own = (now - (self._last if self._reports else self.begun)) / amount
        self._recent = _WEIGHT * own + (1 - _WEIGHT) * self._recent if self._reports else own
        self.done, self._reports, self._last = self.done + amount, self._reports + 1, now

    def left(self, now: float) -> float | None:
        """Seconds that the phase goes on, at the pace of all its steps; None: they do not tell.

        Between two reports it counts down.
        """
        spent = self._last - self.begun
        if self.total is None or self._reports < _FEWEST or spent < _BRIEFEST or self.done >= self.total:
            return None
        mean, waited = spent / self.done, now - self._last
        uneven = not mean / _ALIKE < self._recent < mean * _ALIKE
        if uneven or waited > _ALIKE * spent / self._reports + _SECOND:
            return None
        left = mean * (self.total - self.done) - waited
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

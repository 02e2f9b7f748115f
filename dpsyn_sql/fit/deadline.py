"""A limit on the time after the last question: what of the fit and the sample is cut short when it runs out.

Nothing here may reach a question: the clock starts when all have been answered, so what it decides is
post-processing. Two runs of one release may differ by it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class Deadline:
    """``seconds`` from ``start`` on, or None for no limit. ``cuts`` says what was left out, in words."""

    def __init__(self, seconds: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self.cuts: list[str] = []
        self._clock = clock
        self._started: float | None = None

    def start(self) -> None:
        """All questions have been answered; later calls change nothing."""
        if self._started is None:
            self._started = self._clock()

    @property
    def left(self) -> float:
        """Seconds left; infinite without a limit, all of them before the start."""
        if self.seconds is None:
            return math.inf
        return self.seconds - (0.0 if self._started is None else self._clock() - self._started)

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

"""A limit on the time after the last question: what of the fit and the sample is cut short when it runs out.

Nothing here may reach a question: the clock starts when all have been answered, so what it decides is
post-processing. Two runs of one release may differ by it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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

"""What an interrupted release has charged and how to continue, as a note on the KeyboardInterrupt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from dpsyn_sql.interfaces import LedgerEntry


class Course:
    """How far a release has come; ``str()`` is the message if it ends here."""

    def __init__(self) -> None:
        self._where, self._charged = "before anything was charged", ""

    def __str__(self) -> str:
        return " ".join([f"Interrupted {self._where}.", *([self._charged] if self._charged else [])])

    @contextmanager
    def charging(
        self, name: str, opening: AbstractContextManager[LedgerEntry], *, kept: bool
    ) -> Iterator[LedgerEntry]:
        """Open the entry of a release; ``kept``: its ledger outlives the connection."""
        again = "the same call" if kept else "the same call on the same connection"
        again += " continues from here at no further cost."
        self._where = "while the ledger was being charged"
        self._charged = f"The ledger says whether the release {name!r} was charged; if so, {again}"
        with opening as entry:
            self._where = "while the source was being measured"
            before = "Nothing was charged this time: the" if entry.replayed else "The"
            self._charged = f"{before} release {name!r} stays charged; {again}"
            yield entry

    def measured(self) -> None:
        """All answers are stored."""
        self._where = "after everything was measured, before the output was written"

    def writing(self) -> None:
        """The output is about to be written."""
        self._where = "while the output was being written"

    def written(self, target: str) -> None:
        """The output is written."""
        self._where = f"after {target} was written"


@contextmanager
def noting_interrupts() -> Iterator[Course]:
    """An interrupt inside keeps its type and gets a note that says how far the release has come."""
    course = Course()
    try:
        yield course
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(str(course))
        raise

"""Faults that would break the privacy claim, how each is planted, and the test that kills it.

An edit replaces a text that occurs once in a file of the package. The files are not touched: the
changed text is loaded in their place, in a process of its own (see ``planting.py``).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """``edits``: (file below the repository, text that occurs once, what stands there instead)."""

    name: str
    killed_by: str
    edits: tuple[tuple[str, str, str], ...]


def fault(name, killed_by, *edits):
    return Fault(name, killed_by, edits)

"""What identifies a release in the ledger: public labels and settings, never the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ReleaseKey:
    """The idempotency key of a release.

    ``name`` is that of the output if ``named`` is false. ``sources`` are the private tables and files that
    are read, whatever query reads them. They decide which account is charged. They are not part of the
    identity, since a folder may grow.
    ``configuration`` is JSON-ready: resolved source, unit, domain, excluded columns, method and
    settings, epsilon and delta. Post-processing (output, rows, seed) is not part of it.
    """

    account: str | None
    name: str
    version: str | None
    configuration: Mapping[str, Any]
    sources: tuple[str, ...] = ()
    named: bool = True

    @property
    def unit(self) -> str:
        """The privacy unit: a column's name, ``"row"`` or ``"row of result"``."""
        return str(self.configuration.get("unit") or "row")

"""What database engines spell differently, in one place."""

from __future__ import annotations

from dataclasses import dataclass

from dpsyn_sql.errors import InternalError
from dpsyn_sql.sqltext.fragments import Fragment


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one engine spells what others spell differently.

    ``code_types`` are unsigned types with their bits, narrowest first.
    """

    name: str
    code_types: tuple[tuple[str, int], ...]

    def code_type(self, size: int) -> Fragment:
        """The smallest type that holds the codes 0..size-1.

        Raises:
            InternalError: no type holds so many codes.
        """
        for name, bits in self.code_types:
            if size <= 2**bits:
                return Fragment(name)
        raise InternalError(f"no unsigned type holds {size} codes")


DUCKDB = Dialect(
    name="duckdb",
    code_types=(("UTINYINT", 8), ("USMALLINT", 16), ("UINTEGER", 32), ("UBIGINT", 64)),
)

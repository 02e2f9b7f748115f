"""The chain: one record for each change of the ledger, each holding the hash of the one before.

A changed, missing or reordered record is found by recomputing the hashes; a changed row is found
by comparing it with its records. Cutting off the end, or restoring an old copy of the file, leaves
a valid chain: only a head hash kept elsewhere shows that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from dpsyn_sql.errors import InternalError
from dpsyn_sql.ledger.store import Store

GENESIS = "0" * 64
"""What the first record names as its predecessor."""


def canonical_json(value: Any) -> str:
    """One text for equal values: sorted keys, no spaces, ASCII; floats keep every bit.

    Raises:
        InternalError: not JSON-ready (NaN and infinities included).
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        kind = type(error).__name__
    raise InternalError(f"the ledger was given something that is not JSON ({kind})")


def sha256(content: str | bytes) -> str:
    """Hexadecimal SHA-256 of a text (UTF-8) or of bytes."""
    data = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()


def record_hash(position: int, kind: str, body: str, previous: str) -> str:
    """The hash of a record: over the canonical JSON of its four parts."""
    return sha256(canonical_json([previous, position, kind, body]))


def append(store: Store, kind: str, body: Mapping[str, Any]) -> None:
    """Continue the chain; call inside the transaction that makes the change itself."""
    last = store.one("last_record")
    position = 1 if last is None else last["position"] + 1
    previous = GENESIS if last is None else last["hash"]
    text = canonical_json(dict(body))
    store.run(
        "add_record",
        position=position,
        kind=kind,
        body=text,
        previous=previous,
        hash=record_hash(position, kind, text, previous),
    )

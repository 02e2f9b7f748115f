"""Read a stored certificate. Anybody can edit it, so all that is computed from it later has its type and its
range here; other facts are text, or unused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[object], bool]

_LARGEST = 1e300
"""No figure of a release is larger, and a float holds it."""


def checked_facts(certificate: str) -> dict[str, Any]:
    """The facts of a certificate.

    Raises:
        ValueError: it is no JSON, or a fact is missing or is not what ``release()`` writes; the text says
            which.
        RecursionError: JSON in too many levels.
    """
    facts: Any = json.loads(certificate)
    for name, check in _FACTS.items():
        if not (isinstance(facts, dict) and check(_at(facts, name))):
            raise ValueError(name)
    json.dumps(facts, ensure_ascii=False).encode()  # half of a character cannot be shown
    return dict(facts)


_MISSING = object()


def _at(facts: Mapping[str, Any], name: str) -> object:
    found: Any = facts
    for key in name.split("."):
        found = found.get(key, _MISSING) if isinstance(found, dict) else _MISSING
    return found


def _text(value: object) -> bool:
    return isinstance(value, str)


def _text_if_any(value: object) -> bool:
    """A step that is about no column has None."""
    return value is None or value is _MISSING or isinstance(value, str)


def _number(least: float, below: float = _LARGEST) -> Check:
    def check(value: object) -> bool:
        return type(value) in (int, float) and least <= value < below  # type: ignore[operator]

    return check


def _whole(least: int, below: float = 2**63) -> Check:
    def check(value: object) -> bool:
        return type(value) is int and least <= value < below

    return check


def _maybe(check: Check) -> Check:
    """Of a fact that not every release has."""
    return lambda value: value is _MISSING or check(value)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _with(**checks: Check) -> Check:
    def check(value: object) -> bool:
        return isinstance(value, dict) and all(one(value.get(key, _MISSING)) for key, one in checks.items())

    return check


def _texts_by_name(value: object) -> bool:
    return isinstance(value, dict) and all(map(_text, value.values()))


_SHARE = _with(share=_number(-_LARGEST), standard_error=_number(-_LARGEST))
_LOST = _with(
    name=_text,
    lost=_maybe(_text),
    other=_maybe(_SHARE),
    null=_maybe(_SHARE),
    first_bin=_maybe(_SHARE),
    last_bin=_maybe(_SHARE),
    prefixes=_maybe(_SHARE),
    wide_bins=_maybe(_list_of(_SHARE)),
)
_PAIRS = _with(measured=_whole(0), modelled=_whole(0), independent=_whole(0))

_FACTS: Mapping[str, Check] = {
    "release": _text,
    "method": _text,
    "debited_at": _maybe(_text),
    "guarantee.epsilon": _number(5e-324),
    "guarantee.delta": _number(0, 1),
    "guarantee.rho": _number(0),
    "guarantee.privacy_unit": _text,
    "guarantee.rows_per_unit": _whole(1),
    "sampling.rows": _whole(0),
    "budget": _maybe(_with()),
    "budget.kind": _maybe(_text),
    "budget.reserved_units_of_1e-15": _maybe(_whole(0, _LARGEST)),
    "budget.threshold_delta": _maybe(_number(0, 1)),
    "mechanisms": _maybe(_list_of(_with(step=_text, column=_text_if_any))),
    "source": _maybe(_with(name=_text, kind=_text)),
    "public_facts.statements": _maybe(_list_of(_text)),
    "public_facts.excluded": _maybe(_list_of(_text)),
    "public_facts.never": _maybe(_list_of(_text)),
    "public_facts.roles": _maybe(_list_of(_with(name=_text))),
    "not_promised": _maybe(_list_of(_text)),
    "versions": _maybe(_texts_by_name),
    "losses": _maybe(_with(columns=_list_of(_LOST), pairs=_PAIRS, warnings=_list_of(_text))),
}
"""What is computed or shown of a certificate. The domain is checked where it is made."""

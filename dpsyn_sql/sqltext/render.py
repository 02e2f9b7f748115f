"""Templates in ``sql/`` become statements; nothing unquoted gets through.

The environment is strict: an undefined name raises, and so does any plain string that a
template prints. Only ``Fragment`` (made by ``ident``, ``literal`` and friends) and integers pass.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from dpsyn_sql.errors import InternalError
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, lot

_PACKAGE = Path(__file__).resolve().parent.parent


def templates_folder() -> Path:
    """``dpsyn_sql/_sql`` in an installed package, ``sql/`` beside it in a checkout."""
    shipped = _PACKAGE / "_sql"
    return shipped if shipped.is_dir() else _PACKAGE.parent / "sql"


def _only_quoted(value: Any) -> str:
    if isinstance(value, Fragment):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InternalError(f"a template printed an unquoted {type(value).__name__}")


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates_folder()),
        undefined=jinja2.StrictUndefined,
        finalize=_only_quoted,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,
    )
    environment.filters = {"ident": ident, "literal": literal}
    environment.globals["lot"] = lot
    return environment


def render(template: str, **values: Any) -> Fragment:
    """The statement of ``sql/<template>.sql`` with ``values`` filled in.

    Args:
        template: path below ``sql/`` without the ending, for example ``"count/marginal"``.
        values: fragments, integers, and lists or objects that hold them.

    Raises:
        InternalError: a value is missing or would be printed unquoted.
    """
    try:
        return Fragment(_environment().get_template(f"{template}.sql").render(values).strip())
    except jinja2.UndefinedError as error:
        problem = str(error)
    raise InternalError(f"template {template}: {problem}")

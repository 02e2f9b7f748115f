"""``--method`` and ``--set``, from the registry of methods, which is loaded when it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from dpsyn_sql.errors import InputError

if TYPE_CHECKING:
    from dpsyn_sql.methods import Recipe


def method_names(incomplete: str) -> list[str]:
    """For the shell: the methods whose names begin so."""
    from dpsyn_sql.methods import names

    return [name for name in names() if name.startswith(incomplete)]


Method = Annotated[
    str | None,
    typer.Option("--method", "-m", help="A method.", show_default=False, autocompletion=method_names),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the method, as degree=2 (repeatable)."),
]


class MethodCommand(TyperCommand):
    """A command with ``--method``. Only its help loads the methods, to name them."""

    audits = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Add the names, the default, and a line for each method."""
        from dpsyn_sql.methods import described, method_help, static_default

        default = f" Default: {static_default().name}." if self.audits else ""
        for item in self.params:
            if item.name == "method":
                item.help = f"{method_help()}.{default}"  # type: ignore[attr-defined]
        self.epilog = "\n\n".join(["Methods, with their settings:", *described()])
        super().format_help(ctx, formatter)


class AuditCommand(MethodCommand):
    """A command whose default method knows all its questions beforehand."""

    audits = True


def with_set(method: object, entries: Sequence[str]) -> Recipe:
    """The method, a name or any other form of it, with the settings of ``--set``.

    Raises:
        InputError: ``--set`` cannot be read, or the method has no such setting.
    """
    from dpsyn_sql.methods import with_settings

    settings: dict[str, str] = {}
    for entry in entries:
        setting, sign, value = entry.partition("=")
        if not sign or not setting or setting in settings:
            raise InputError(f"--set {entry!r}: write degree=2, each only once")
        settings[setting] = value
    return with_settings(method, settings)

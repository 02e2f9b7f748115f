"""The command with its commands: a line that cannot be read is one message too, and JSON with ``--json``."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from dpsyn_sql.cli.codes import ExitCode
from dpsyn_sql.cli.output import tell_error

_JSON = "--json"


class Commands(TyperGroup):
    """The group of all commands; it says what is wrong with a command line."""

    def make_context(self, info_name: str | None, args: list[str], *others: Any, **options: Any) -> Any:
        """Read the options of the group, and whether errors are to be JSON."""
        as_json = _JSON in args  # reading empties the list
        try:
            context = super().make_context(info_name, args, *others, **options)
        except Exception as error:
            _tell(error, as_json)
            raise
        context.meta[_JSON] = as_json
        return context

    def invoke(self, ctx: Any) -> Any:
        """Read the options of the command and run it."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            _tell(error, ctx.meta[_JSON])
            raise


def _tell(error: Exception, as_json: bool) -> None:
    """One line for a command line that cannot be read; other errors, and help, pass.

    The class of these errors is not the same in all versions of the library.
    """
    message = getattr(error, "format_message", None)
    if message is None or type(error).__name__ == "NoArgsIsHelpError":
        return
    context = getattr(error, "ctx", None)
    hint = "" if context is None else f" See '{context.command_path} --help'."
    text = " ".join(message().split()).removesuffix(".")
    text += "" if text.endswith("?") else "."
    tell_error(as_json, "UsageError", text + hint, ExitCode.REFUSED)
    raise typer.Exit(int(ExitCode.REFUSED)) from None

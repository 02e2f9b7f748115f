"""The command ``dpsyn`` in this process, as a person types it."""

from typer.testing import CliRunner

from dpsyn_sql.cli.main import app


def run(*arguments):
    """The result of a command line: its exit code and what it prints."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])

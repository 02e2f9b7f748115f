"""``dpsyn ledger``: who spent what, limits, and whether the record is whole."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from dpsyn_sql.accounting.budget import DELTA_UNITS
from dpsyn_sql.cli.messages import plain_errors
from dpsyn_sql.errors import InputError
from dpsyn_sql.ledger.overview import AccountOverview, ReleaseOverview
from dpsyn_sql.ledger.sqlite import SqliteLedger

ledger_app = typer.Typer(
    help="Accounts, limits and releases of a ledger file.", no_args_is_help=True, rich_markup_mode=None
)

_NEW = (
    "A limit protects only the sources that are charged to its account; 'dpsyn plan' names the account of "
    "a source. To grant before the first release, say --new."
)

_IDLE = (
    "No source is charged to this account yet: the limit holds for the source named before the '#' of "
    "its name, or for releases with --account. 'dpsyn plan' shows which account a release is charged to."
)

Place = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger file.")]


@ledger_app.command("show")
def show_command(place: Place) -> None:
    """Print accounts with what is spent and left, and all releases."""
    with plain_errors(), closing(SqliteLedger(place, create=False)) as ledger:
        overview = ledger.overview()
    typer.echo(f"Ledger {overview.place}, head {overview.head}")
    for account in overview.accounts:
        typer.echo(_account_line(account))
    for release in overview.releases:
        typer.echo(_release_line(release))


@ledger_app.command("grant")
def grant_command(
    place: Place,
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="The account, as 'dpsyn plan' names it.")],
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="Total limit of all releases.")],
    delta: Annotated[
        str | None,
        typer.Option("--delta", help="0 (pure) to 1e-6. Default: 1e-9 for each whole epsilon."),
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Make the account (and the ledger) before its first release.")
    ] = False,
) -> None:
    """Set the total limit of an account, never below what is spent.

    An account that is not there yet needs --new: a limit under a misspelt name would protect nothing.
    """
    with plain_errors():
        if not new and not place.is_file():
            raise InputError(f"There is no ledger at {place}. {_NEW}")
        with closing(SqliteLedger(place)) as ledger:
            known = [item.name for item in ledger.overview().accounts]
            if not new and account not in known:
                there = f"it has {', '.join(map(repr, known))}" if known else "it has none yet"
                raise InputError(f"The ledger {place} has no account {account!r}: {there}. {_NEW}")
            granted = ledger.grant(account, epsilon, delta)
        idle = not granted.sources
    typer.echo(_account_line(granted))
    if idle:
        typer.echo(_IDLE)


@ledger_app.command("moved")
def moved_command(
    place: Place,
    with_data: Annotated[
        bool,
        typer.Option("--with-data/--alone", help="The data were moved or renamed with it, or stayed."),
    ],
) -> None:
    """Say how a ledger was moved or renamed, so that it goes on with the accounts it has."""
    with plain_errors(), closing(SqliteLedger(place, create=False)) as ledger:
        ledger.moved(with_data=with_data)
        typer.echo(f"The ledger {ledger.place} goes on here.")


@ledger_app.command("verify")
def verify_command(
    place: Place,
    head: Annotated[
        str | None, typer.Option("--head", help="A head hash kept elsewhere; it must be in the chain.")
    ] = None,
) -> None:
    """Recompute every cost, sum and hash. Prints the head hash, to be kept elsewhere."""
    with plain_errors(), closing(SqliteLedger(place, create=False)) as ledger:
        found = ledger.verify(head)
    typer.echo(f"The ledger is whole. Head {found}")


def _account_line(account: AccountOverview) -> str:
    spent = f"spent epsilon={account.epsilon:.4g} at delta={float(account.delta):g}"
    if account.granted is None:
        limit = "no limit"
    else:
        limit = f"granted epsilon={account.granted[0]}, delta={account.granted[1]}; {account.left}"
    return f"Account {account.name} (unit {account.unit or 'not fixed yet'}): {spent}, {limit}"


def _release_line(release: ReleaseOverview) -> str:
    version = f" version {release.version}" if release.version is not None else ""
    written = "".join(f"; {rows} rows to {target}" for target, rows in release.published)
    cost = f"{release.cost.kind} {float(release.cost.fraction):.6g}"
    if release.cost.delta:
        cost += f" and threshold delta {release.cost.delta / DELTA_UNITS:.3g}"
    return (
        f"Release {release.release_id} {release.name}{version}: {release.state}, {cost} "
        f"of {release.account}, debited {release.debited_at}{written}"
    )

"""``dpsyn ledger``: what was spent, limits, and whether the record is intact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsyn_sql.cli.messages import plain_errors
from dpsyn_sql.errors import InputError, LedgerError
from dpsyn_sql.source.names import listed

if TYPE_CHECKING:
    from dpsyn_sql.ledger.overview import AccountOverview, ReleaseOverview
    from dpsyn_sql.ledger.sqlite import SqliteLedger

# The functions that read ledgers import what they need, so that help is quick.

ledger_app = typer.Typer(
    help="Accounts, limits and releases of a ledger file.", no_args_is_help=True, rich_markup_mode=None
)

_NEW = (
    "A limit protects only the sources that are charged to its account; 'dpsyn plan' names the account of "
    "a source. To grant before the first release, add --new."
)

_IDLE = (
    "No source is charged to this account yet: the limit holds for the source named before the '#' of "
    "its name, or for releases with --account. 'dpsyn plan' shows which account a release is charged to."
)

_PLACE = (
    "The ledger file, or a source (database, CSV or Parquet file, folder, glob) whose ledger it is. "
    "Default: DPSYN_LEDGER."
)

Place = Annotated[str | None, typer.Argument(metavar="[LEDGER]", help=_PLACE)]


@ledger_app.command("show")
def show_command(place: Place = None) -> None:
    """Print all accounts with what is spent and left, and all releases."""
    with plain_errors(), _opened(place) as ledger:
        overview = ledger.overview()
    typer.echo(f"Ledger {overview.place}, head {overview.head}")
    for account in overview.accounts:
        typer.echo(_account_line(account))
    for release in overview.releases:
        typer.echo(_release_line(release))


@ledger_app.command("grant")
def grant_command(
    place: Annotated[str, typer.Argument(metavar="[LEDGER]", help=_PLACE)],
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="Total limit of all releases.")],
    account: Annotated[
        str | None, typer.Argument(metavar="ACCOUNT", help="The account that 'dpsyn plan' names.")
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option("--delta", help="0 (pure) to 1e-6. Default: 1e-9 for each whole epsilon."),
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Create the account (and the ledger) before its first release.")
    ] = False,
) -> None:
    """Set the total limit of an account, never below what is spent.

    An account that does not exist yet needs --new: a limit under a misspelt name would protect nothing.
    """
    with plain_errors():
        from dpsyn_sql.ledger.locations import ledger_meant
        from dpsyn_sql.ledger.sqlite import SqliteLedger

        # One argument is the account, two are the ledger and the account.
        given, name = (None, place) if account is None else (place, account)
        path = ledger_meant(given)
        if not new and not path.is_file():
            raise InputError(f"{_no_ledger(given, path)} {_NEW}")
        with closing(SqliteLedger(path)) as ledger:
            known = [item.name for item in ledger.overview().accounts]
            if not new and name not in known:
                there = f"it has {listed(known)}" if known else "it has no account yet"
                raise InputError(f"The ledger {path} has no account {name!r}: {there}. {_NEW}")
            granted = ledger.grant(name, epsilon, delta)
        idle = not granted.sources
    typer.echo(_account_line(granted))
    if idle:
        typer.echo(_IDLE)


@ledger_app.command("moved")
def moved_command(
    place: Place,
    with_data: Annotated[
        bool,
        typer.Option("--with-data/--alone", help="Whether the data were moved or renamed too."),
    ],
) -> None:
    """Record how a ledger was moved or renamed, so that you can go on using its accounts."""
    with plain_errors(), _opened(place) as ledger:
        ledger.moved(with_data=with_data)
        typer.echo(f"The ledger {ledger.place} can be used here.")


@ledger_app.command("verify")
def verify_command(
    place: Place = None,
    head: Annotated[
        str | None, typer.Option("--head", help="A head hash kept elsewhere: it must be in the chain.")
    ] = None,
) -> None:
    """Recompute every cost, sum and hash. Print the head hash; keep it elsewhere."""
    with plain_errors(), _opened(place) as ledger:
        found = ledger.verify(head)
    typer.echo(f"The ledger is intact. Head {found}")


@contextmanager
def _opened(given: str | None) -> Iterator[SqliteLedger]:
    """The path of an existing ledger.

    Raises:
        LedgerError: there is none.
    """
    from dpsyn_sql.ledger.locations import ledger_meant
    from dpsyn_sql.ledger.sqlite import SqliteLedger

    path = ledger_meant(given)
    if not path.is_file():
        raise LedgerError(_no_ledger(given, path))
    with closing(SqliteLedger(path, create=False)) as ledger:
        yield ledger


def _no_ledger(given: str | None, path: Path) -> str:
    why = "" if given is None or Path(given) == path else f", the place of the ledger of {given}"
    return f"There is no ledger at {path}{why}."


def _account_line(account: AccountOverview) -> str:
    spent = f"spent epsilon={account.epsilon:.4g} at delta={float(account.delta):g}"
    if account.granted is None:
        limit = "no limit"
    else:
        limit = f"granted epsilon={account.granted[0]}, delta={account.granted[1]}; {account.left}"
    return f"Account {account.name} (unit {account.unit or 'not fixed yet'}): {spent}, {limit}"


def _release_line(release: ReleaseOverview) -> str:
    from dpsyn_sql.accounting.budget import DELTA_UNITS

    version = f" version {release.version}" if release.version is not None else ""
    written = "".join(_written(release))
    cost = f"{release.cost.kind} {float(release.cost.fraction):.6g}"
    if release.cost.delta:
        cost += f" and threshold delta {release.cost.delta / DELTA_UNITS:.3g}"
    return (
        f"Release {release.release_id} {release.name}{version}: {release.state}, {cost} "
        f"of {release.account}, debited {release.debited_at}{written}"
    )


def _written(release: ReleaseOverview) -> Iterator[str]:
    """Each output once, with its present number of rows."""
    times = Counter(target for target, _ in release.published)
    for target, rows in dict(release.published).items():
        often = f" (written {times[target]} times)" if times[target] > 1 else ""
        yield f"; {rows} rows to {target}{often}"

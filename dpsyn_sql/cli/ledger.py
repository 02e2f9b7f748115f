"""``dpsyn ledger``: what was spent, limits, and whether the record is intact."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsyn_sql.accounting.account import KINDS, shown
from dpsyn_sql.cli.output import Json, Output, Quiet, printing
from dpsyn_sql.errors import InputError, LedgerError
from dpsyn_sql.source.names import listed

if TYPE_CHECKING:
    from dpsyn_sql.ledger.overview import AccountOverview, Overview, ReleaseOverview
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

_RESTORED = (
    "Whoever restores this copy can spend again what is spent from now on. Keep the head elsewhere: "
    "'dpsyn ledger verify --head' shows later whether a ledger is behind it."
)

_PLACE = (
    "The ledger file, or a schedule or source (database, CSV or Parquet file, folder, glob) whose ledger "
    "it is. Default: DPSYN_LEDGER, else the only ledger in this folder."
)

Place = Annotated[str | None, typer.Argument(metavar="[LEDGER]", help=_PLACE)]


@ledger_app.command("show")
def show_command(ledger_or_source: Place = None, as_json: Json = False, quiet: Quiet = False) -> None:
    """Print all accounts with what is spent and left, and all releases."""
    with printing(as_json, quiet) as out:
        with _opened(ledger_or_source) as ledger:
            overview = ledger.overview()
        out.show(f"Ledger {overview.place}, head {overview.head}")
        if sys.stdout.isatty():
            _tables(out, overview)
        else:
            for account in overview.accounts:
                out.show(_account_line(account))
            for release in overview.releases:
                out.show(_release_line(release))
        out.document(
            {
                "ledger": overview.place,
                "head": overview.head,
                "accounts": [_account_facts(account) for account in overview.accounts],
                "releases": [_release_facts(release) for release in overview.releases],
            }
        )


@ledger_app.command("grant")
def grant_command(
    ledger_or_account: Annotated[str, typer.Argument(metavar="[LEDGER]", help=_PLACE)],
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
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Set the total limit of an account, never below what is spent.

    An account that does not exist yet needs --new: a limit under a misspelt name would protect nothing.
    """
    asks = "Interrupted: 'dpsyn ledger show' says whether the limit is set. The same command sets it again."
    with printing(as_json, quiet, asks) as out:
        from dpsyn_sql.ledger.sqlite import SqliteLedger

        # One argument is the account, two are the ledger and the account.
        stated, name = (None, ledger_or_account) if account is None else (ledger_or_account, account)
        path = _meant(stated)
        if not new and not path.is_file():
            raise InputError(f"{_no_ledger(stated, path)} {_NEW}")
        with closing(SqliteLedger(path)) as ledger:
            accounts = [item.name for item in ledger.overview().accounts]
            if not new and name not in accounts:
                there = f"it has {listed(accounts)}" if accounts else "it has no account yet"
                raise InputError(f"The ledger {path} has no account {name!r}: {there}. {_NEW}")
            granted = ledger.grant(name, epsilon, delta)
        out.say(_account_line(granted))
        if not granted.sources:
            out.say(_IDLE)
        notes = [] if granted.sources else [_IDLE]
        out.document({"ledger": str(path), "account": _account_facts(granted), "notes": notes})


@ledger_app.command("moved")
def moved_command(
    ledger_or_source: Place,
    with_data: Annotated[
        bool,
        typer.Option("--with-data/--alone", help="Whether the data were moved or renamed too."),
    ],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Record how a ledger was moved or renamed, so that you can go on using its accounts."""
    asks = "Interrupted: the move is recorded or not; the same command is safe."
    with printing(as_json, quiet, asks) as out, _opened(ledger_or_source) as ledger:
        ledger.moved(with_data=with_data)
        out.say(f"The ledger {ledger.place} can be used here.")
        out.document({"ledger": ledger.place, "with_data": with_data})


@ledger_app.command("verify")
def verify_command(
    ledger_or_source: Place = None,
    head: Annotated[
        str | None, typer.Option("--head", help="A head hash kept elsewhere: it must be in the chain.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Recompute every cost, sum and hash. Print the head hash; keep it elsewhere."""
    with printing(as_json, quiet) as out, _opened(ledger_or_source) as ledger:
        verified_head = ledger.verify(head)
        out.say(f"The ledger is intact. Head {verified_head}")
        out.document({"ledger": ledger.place, "intact": True, "head": verified_head})


@ledger_app.command("backup")
def backup_command(
    ledger_or_copy: Annotated[str, typer.Argument(metavar="[LEDGER]", help=_PLACE)],
    copy: Annotated[str | None, typer.Argument(metavar="COPY", help="The file to make.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Copy a ledger to a new file, also while releases run. Print the head hash; keep it elsewhere.

    Whoever restores a copy can spend again what was spent after it was made.
    """
    asks = "Interrupted: the copy is there whole or not at all."
    stated, copy_path = (None, ledger_or_copy) if copy is None else (ledger_or_copy, copy)
    with printing(as_json, quiet, asks) as out, _opened(stated) as ledger:
        head = ledger.backup(copy_path)
        out.say(f"A copy of {ledger.place} is at {copy_path}. Head {head}")
        out.say(_RESTORED)
        out.document({"ledger": ledger.place, "copy": copy_path, "head": head})


@contextmanager
def _opened(ledger_or_source: str | None) -> Iterator[SqliteLedger]:
    """The path of an existing ledger.

    Raises:
        LedgerError: there is none.
    """
    from dpsyn_sql.ledger.sqlite import SqliteLedger

    path = _meant(ledger_or_source)
    if not path.is_file():
        raise LedgerError(_no_ledger(ledger_or_source, path))
    with closing(SqliteLedger(path, create=False)) as ledger:
        yield ledger


def _meant(ledger_or_source: str | None) -> Path:
    """The file of the ledger; that of a schedule is named in it."""
    if ledger_or_source is not None and Path(ledger_or_source).suffix.lower() in (".yml", ".yaml"):
        from dpsyn_sql.schedule.reading import read_schedule

        return Path(read_schedule(ledger_or_source).ledger)
    from dpsyn_sql.ledger.locations import find_ledger

    return find_ledger(ledger_or_source)


def _no_ledger(ledger_or_source: str | None, path: Path) -> str:
    why = (
        ""
        if ledger_or_source is None or Path(ledger_or_source) == path
        else f", the place of the ledger of {ledger_or_source}"
    )
    return f"There is no ledger at {path}{why}."


def _tables(out: Output, overview: Overview) -> None:
    """For a terminal."""
    out.table(
        ["account", "unit", "counts by", "epsilon spent", "at delta", "limit", "left"],
        [
            [
                account.name,
                account.unit or "not fixed yet",
                KINDS[account.kind],
                shown(account.epsilon),
                shown(account.delta),
                "no limit" if account.granted is None else "epsilon={}, delta={}".format(*account.granted),
                account.left,
            ]
            for account in overview.accounts
        ],
    )
    if overview.releases:
        out.table(
            ["release", "version", "state", "cost", "account", "debited", "written", "id"],
            [
                [
                    release.name,
                    release.version,
                    release.state,
                    release.told,
                    release.account,
                    release.debited_at,
                    "".join(_written(release)).removeprefix("; "),
                    release.release_id,
                ]
                for release in overview.releases
            ],
        )


def _account_facts(account: AccountOverview) -> dict[str, Any]:
    granted = account.granted
    limit = None if granted is None else {"epsilon": granted[0], "delta": granted[1]}
    return {
        "name": account.name,
        "unit": account.unit,
        "kind": account.kind,
        "accounting": KINDS[account.kind],
        "sources": list(account.sources),
        "spent": {"epsilon": account.epsilon, "delta": float(account.delta)},
        "granted": limit,
        "left": None if account.affordable is None else str(account.affordable),
        "left_in_words": account.left or None,
    }


def _release_facts(release: ReleaseOverview) -> dict[str, Any]:
    from dpsyn_sql.accounting.budget import DELTA_UNITS

    cost = release.cost
    return {
        "id": release.release_id,
        "name": release.name,
        "version": release.version,
        "account": release.account,
        "state": release.state,
        "cost": {
            "kind": cost.kind,
            "amount": float(cost.fraction),
            "threshold_delta": cost.delta / DELTA_UNITS,
        },
        "debited_at": release.debited_at,
        "measured_on": release.measured_on,
        "written": [{"output": target, "rows": rows} for target, rows in release.published],
    }


def _account_line(account: AccountOverview) -> str:
    spent = f"spent epsilon={shown(account.epsilon)} at delta={shown(account.delta)}"
    if account.granted is None:
        limit = "no limit"
    else:
        limit = f"granted epsilon={account.granted[0]}, delta={account.granted[1]}; {account.left}"
    unit = account.unit or "not fixed yet"
    return f"Account {account.name} (unit {unit}; {KINDS[account.kind]}): {spent}, {limit}"


def _release_line(release: ReleaseOverview) -> str:
    version = f" version {release.version}" if release.version is not None else ""
    written = "".join(_written(release))
    return (
        f"Release {release.release_id} {release.name}{version}: {release.state}, {release.told} "
        f"of {release.account}, debited {release.debited_at}{written}"
    )


def _written(release: ReleaseOverview) -> Iterator[str]:
    """Each output once, with its present number of rows."""
    times = Counter(target for target, _ in release.published)
    for target, rows in dict(release.published).items():
        often = f" (written {times[target]} times)" if times[target] > 1 else ""
        yield f"; {rows} rows to {target}{often}"

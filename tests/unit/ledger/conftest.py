import shutil
from contextlib import closing

import pytest
from ledger_steps import EVENT, key, run

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.ledger.sqlite import MemoryLedger, SqliteLedger


@pytest.fixture(params=["file", "memory"])
def ledger(request, tmp_path):
    opened = SqliteLedger(tmp_path / "ledger") if request.param == "file" else MemoryLedger()
    yield opened
    opened.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.dpsyn-ledger"


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """A file in which every table has rows and every kind of record occurs: made once, since each debit waits
    for the disk."""
    path = tmp_path_factory.mktemp("full") / "ledger"
    opened = SqliteLedger(path)
    pure = Budget.from_epsilon(1, 0)
    with opened.open_release(key("old", account="toy", source="toys"), pure) as entry:
        entry.close_questions()
    with opened.open_release(key("new", account="toy", source="toys"), Budget("gdp", 10**13)):
        pass
    opened.grant("people", "1", "1e-9")
    with opened.open_release(key(version="2026-11"), Budget("gdp", 5 * 10**12)) as entry:
        run(entry)
    with opened.open_release(key("half"), Budget("gdp", 3 * 10**12)) as entry:
        entry.ask({"ask": 0}).charge(EVENT)
    with opened.open_release(key("stops", account="toy", source="toys"), Budget("gdp", 10**13)) as entry:
        entry.ask({"ask": 0}).charge(EVENT)
        entry.stop()
    with opened.open_release(key("goes on", account="toy", source="toys"), Budget("gdp", 10**12)):
        pass
    opened.close()
    return path


@pytest.fixture
def full(once, path):
    """A copy of ``once`` that says where it is."""
    shutil.copy(once, path)
    with closing(SqliteLedger(path)) as ledger:
        ledger.moved(with_data=True)
    return path

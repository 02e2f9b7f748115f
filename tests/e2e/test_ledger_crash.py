"""The ledger under kill -9, races, a full disk and a read-only file."""

import itertools
import json
import os
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent
from dpsyn_sql.errors import LedgerError, PrivacyBudgetExceeded
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.planning.plan import ReleaseKey

pytestmark = [pytest.mark.slow, pytest.mark.required]

FILE_STEPS = ("open", "os.link", "os.remove", "os.rename", "os.listdir", "fcntl.flock")

GRANT = Budget.from_epsilon(1, 1e-9)
SHARE = Budget("gdp", GRANT.amount // 5, GRANT.delta // 5)
QUESTIONS = 2


def key(version=None):
    return ReleaseKey("people", "adult", version, {"unit": None}, ("main.adult",))


def release(ledger, size=4):
    """A release whose noise is random each time it is really drawn; returns the noisy bytes."""
    with ledger.open_release(key(), SHARE) as entry:
        answers = []
        for number in range(QUESTIONS):
            asked = entry.ask({"ask": number})
            known = asked.stored
            if known is None:
                asked.charge(GaussianEvent(60.0, 2))
                known = asked.store([np.frombuffer(os.urandom(8 * size), dtype=np.int64)])
            answers.append(known[0].tobytes())
        entry.close_questions()
        entry.published("adult_synthetic", 3)
    return b"".join(answers)


def check(ledger, most):
    """Spent = sum of the entries <= limit, and every record is sound."""
    ledger.verify()
    shown = ledger.overview()
    (people,) = shown.accounts
    assert people.spent.amount == sum(one.cost.amount for one in shown.releases)
    assert people.spent.delta == sum(one.cost.delta for one in shown.releases)
    assert people.spent.amount <= people.limit.amount
    assert len(shown.releases) <= most
    return shown


class KilledAt:
    """A connection that kills its process before statement number ``step``."""

    def __init__(self, step):
        self.step, self.count, self.connect = step, 0, sqlite3.connect

    def __call__(self, *arguments, **options):
        connection = self.connect(*arguments, **options)
        connection.set_trace_callback(self.before)
        return connection

    def before(self, statement):
        self.count += 1
        if self.count == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


class Forked:
    """``work(say)`` in a child process; ``say`` sends something JSON-ready to the parent."""

    def __init__(self, work):
        self.output, pipe = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(self.output)
            try:
                work(lambda value: os.write(pipe, json.dumps(value).encode() + b"\n"))
                os._exit(0)
            finally:
                os._exit(1)
        os.close(pipe)

    def end(self):
        """What it said, and its status: negative when it was killed."""
        with open(self.output) as output:  # noqa: PTH123
            said = [json.loads(line) for line in output]
        _, status = os.waitpid(self.process, 0)
        return said, os.waitstatus_to_exitcode(status)


def killed_release(path, step):
    """Run a release in a process that dies at ``step``; False when it got to its end before."""

    def work(say):
        sqlite3.connect = KilledAt(step)
        release(SqliteLedger(path))

    _, status = Forked(work).end()
    assert status in (0, -signal.SIGKILL)
    return status != 0


def granted(path):
    with closing(SqliteLedger(path)) as ledger:
        ledger.grant("people", 1, 1e-9)


@pytest.fixture
def path(tmp_path):
    granted(tmp_path / "ledger")
    return tmp_path / "ledger"


def test_killed_at_every_step_the_debit_is_made_once_and_the_rest_resumes(path):
    prefixes = set()
    for step in range(1, 1000):
        copy = shutil.copy(path, path.with_name(f"ledger{step}"))
        with closing(SqliteLedger(copy)) as ledger:
            ledger.moved(with_data=True)
        if not killed_release(copy, step):
            break
        with closing(SqliteLedger(copy)) as ledger:
            shown = check(ledger, most=1)
            stored = [row["content"] for row in ledger._store.all("all_answers")]
            prefixes.add((len(shown.releases), len(stored)))
            noisy = release(ledger)
            assert noisy.startswith(b"".join(stored)) and release(ledger) == noisy
            (only,) = check(ledger, most=1).releases
            assert only.cost == SHARE and only.state == "published"
    assert step > 40
    assert prefixes == {(0, 0), (1, 0), (1, 1), (1, 2)}  # the kills were really spread


def test_killed_while_the_file_is_made_there_is_none_or_a_whole_one(tmp_path):
    """At statements, and where files are made, linked and removed; what was begun goes with the next opening."""
    found = set()
    for step in range(1, 1000):
        folder = tmp_path / f"step{step}"
        folder.mkdir()

        def work(say, folder=folder, step=step):
            sqlite3.connect = killed = KilledAt(step)
            sys.addaudithook(lambda event, _: event in FILE_STEPS and killed.before(event))
            SqliteLedger(folder / "ledger")

        _, status = Forked(work).end()
        files = {path.name: path.stat().st_size for path in folder.iterdir()}
        if "ledger" in files:
            alone = shutil.copy(folder / "ledger", tmp_path / "alone")
            with closing(SqliteLedger(alone, create=False)) as ledger:
                ledger.verify()
        found.add(("ledger" in files, any("dpsyn" in name for name in files)))
        with closing(SqliteLedger(folder / "ledger")) as ledger:
            assert ledger.verify()
            assert {path.name for path in folder.iterdir()} == {"ledger"}
        if status == 0:
            break
    assert status == 0 and step > 50
    assert {(False, True), (True, False), (True, True)} <= found


def test_twenty_processes_that_make_one_new_ledger_share_it(tmp_path):
    def work(say):
        with closing(SqliteLedger(tmp_path / "ledger")) as ledger:
            say(ledger.verify())

    said = raced(work, 20)
    assert len({head for (head,) in said}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["ledger"]


def test_after_a_death_the_main_file_alone_holds_the_debit_and_then_the_answers(path):
    """Somebody who keeps or copies only that file does not get the budget back."""

    def work(say, closed):
        ledger = SqliteLedger(path)
        with ledger.open_release(key(), SHARE) as entry:
            if closed:
                asked = entry.ask({})
                asked.charge(GaussianEvent(60.0, 2))
                asked.store([np.arange(5)])
                entry.close_questions()
            os.kill(os.getpid(), signal.SIGKILL)

    for closed, state in ((False, "debited"), (True, "measured")):
        assert Forked(partial(work, closed=closed)).end()[1] == -signal.SIGKILL
        alone = shutil.copy(path, path.with_name(f"alone-{state}"))
        with closing(SqliteLedger(alone)) as ledger:
            (only,) = check(ledger, most=1).releases
            assert (only.state, only.cost) == (state, SHARE)


def test_a_grant_and_a_publication_are_in_the_main_file(path):
    def work(say):
        ledger = SqliteLedger(path)
        ledger.grant("people", 2, 1e-9)
        say(ledger.overview().head)
        release(ledger)
        say(ledger.overview().head)
        os.kill(os.getpid(), signal.SIGKILL)

    said, _ = Forked(work).end()
    with closing(SqliteLedger(shutil.copy(path, path.with_name("alone")))) as ledger:
        assert ledger.verify(said[0]) == said[1]


def test_somebody_who_reads_the_bytes_of_the_ledger_loses_no_debit(path):
    """A backup or a monitor in one of three processes: closing a file drops all of SQLite's locks on it."""

    def read():
        for beside in [one for one in path.parent.iterdir() if one.name.startswith(path.name)]:
            with suppress(OSError):
                beside.read_bytes()

    def work(say, reads):
        over = threading.Event()

        def reader():
            while not over.is_set():
                read()

        thread = threading.Thread(target=reader)
        if reads:
            thread.start()
        for number in range(20):
            with closing(SqliteLedger(path)) as ledger:
                named = key(f"{os.getpid()}-{number}")
                with ledger.open_release(named, Budget("gdp", 10)) as entry:
                    entry.ask({}).charge(GaussianEvent(1e8, 1))
                    say(named.version)
        over.set()

    ended = [child.end() for child in [Forked(partial(work, reads=number == 0)) for number in range(3)]]
    assert [status for _, status in ended] == [0] * 3
    said = {version for heard, _ in ended for version in heard}
    with closing(SqliteLedger(path)) as ledger:
        shown = check(ledger, most=60)
    assert len(said) == 60 and {one.version for one in shown.releases} == said


def test_killed_at_any_moment(path):
    """Not only between statements: a process that releases in a loop dies at a random time."""

    def work(say):
        ledger = SqliteLedger(path)
        for number in itertools.count():
            with ledger.open_release(key(f"{os.getpid()}-{number}"), Budget("gdp", 10)) as entry:
                for _ in range(3):
                    asked = entry.ask({})
                    asked.charge(GaussianEvent(1e8, 1))
                    asked.store([np.arange(5000)])
            say(number)

    total, delays = 0, [*np.random.default_rng().uniform(0.0, 0.2, size=20)]
    for delay in delays:
        child = Forked(work)
        time.sleep(delay)
        os.kill(child.process, signal.SIGKILL)
        said, _ = child.end()
        total += len(said)
        with closing(SqliteLedger(path)) as ledger:
            shown = check(ledger, most=10**6)
        assert len(shown.releases) >= total  # what was said to be done is kept
        if total == 0 and delay is delays[-1] and len(delays) < 26:
            delays.append(2 * delay + 0.1)  # a busy machine was too slow for all of them
    assert total > 0


def raced(work, processes=4):
    """What processes said that were started together."""
    start = time.time() + 0.2

    def together(say):
        time.sleep(max(0.0, start - time.time()))
        work(say)

    ended = [child.end() for child in [Forked(together) for _ in range(processes)]]
    assert [status for _, status in ended] == [0] * processes
    return [said for said, _ in ended]


def test_four_processes_race_for_the_last_of_the_budget(path):
    """Five shares fit; four processes try five each."""

    def work(say):
        ledger = SqliteLedger(path)
        for number in range(5):
            try:
                with ledger.open_release(key(f"{os.getpid()}-{number}"), SHARE):
                    say("won")
            except PrivacyBudgetExceeded:
                pass

    assert sum(map(len, raced(work))) == 5
    with closing(SqliteLedger(path)) as ledger:
        assert len(check(ledger, most=5).releases) == 5


def test_four_processes_with_one_key_share_one_debit_and_one_transcript(path):
    def work(say):
        ledger = SqliteLedger(path)
        with ledger.open_release(key(), SHARE) as entry:
            for number in range(20):
                asked = entry.ask({"ask": number})
                known = asked.stored
                if known is None:
                    asked.charge(GaussianEvent(300.0, 1))
                    known = asked.store([np.frombuffer(os.urandom(80), dtype=np.int64)])
                say(known[0].tolist())
            entry.close_questions()
            entry.published("adult_synthetic", 3)

    first, *others = raced(work)
    assert len(first) == 20 and others == [first] * 3
    with closing(SqliteLedger(path)) as ledger:
        (only,) = check(ledger, most=1).releases
    assert len(only.published) == 4


def test_a_full_disk_is_a_clear_error_and_loses_nothing(path):
    """Every file-size limit from nothing to enough: each step is done or not."""

    def work(say, limit):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            release(SqliteLedger(path), size=20_000)
            say(None)
        except LedgerError as error:
            say([str(error), error.__context__ is None])

    outcomes, head = [], None
    for limit in (0, 4_000, 30_000, 45_000, 80_000, 200_000, 400_000, 10**7):
        (outcome,), status = Forked(partial(work, limit=limit)).end()
        assert status == 0
        outcomes.append(outcome)
        with closing(SqliteLedger(path)) as ledger:
            head = ledger.verify(head)
            check(ledger, most=1)
    assert outcomes[-1] is None
    failures = [outcome for outcome in outcomes if outcome is not None]
    assert len(failures) >= 2
    assert all("disk is full" in text and clean for text, clean in failures)


def test_a_full_disk_leaves_no_new_ledger_or_a_whole_one(tmp_path):
    def work(say, file, limit):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            SqliteLedger(file)
            say(None)
        except LedgerError as error:
            say([str(error), error.__context__ is None])

    found = set()
    for limit in (0, 4_096, 40_000, 60_000, 90_000, 10**6):
        folder = tmp_path / str(limit)
        folder.mkdir()
        (outcome,), status = Forked(partial(work, file=folder / "ledger", limit=limit)).end()
        assert status == 0
        assert outcome is None or ("disk is full" in outcome[0] and outcome[1])
        assert (folder / "ledger").exists() or list(folder.iterdir()) == []
        found.add((outcome is None, (folder / "ledger").exists()))
        with closing(SqliteLedger(folder / "ledger")) as ledger:
            ledger.verify()
    assert {(False, False), (True, True)} <= found


def test_a_read_only_file_is_a_clear_error_before_anything_is_charged():
    def work(say):
        if os.getuid() == 0:
            os.setuid(65534)  # root may write anything
        try:
            release(SqliteLedger(path))
        except LedgerError as error:
            say(str(error))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        granted(path)
        path.chmod(0o444)
        path.parent.chmod(0o555)
        (outcome,), _ = Forked(work).end()
        path.parent.chmod(0o755)
        assert "read-only" in outcome or "not writable" in outcome
        with closing(SqliteLedger(path)) as ledger:
            assert check(ledger, most=0).accounts[0].spent.amount == 0

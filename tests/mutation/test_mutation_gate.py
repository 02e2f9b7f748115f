"""Every planted fault is killed by its test, and that test passes without it."""

import os
import re
from types import SimpleNamespace

import pytest
from chosen import DRAWN, MOST, VARIABLE, chosen
from faults import FAULTS
from verdicts import ROOT, pool, verdict

CHOSEN = chosen(FAULTS, os.environ.get(VARIABLE, ""))
BY_NAME = {fault.name: fault for fault in CHOSEN}
SOUND = sorted({fault.killed_by.partition("::")[0]: fault.killed_by for fault in reversed(CHOSEN)}.values())
"""One killing test of each file. The suite itself runs all of them; here the plugin shows that it breaks none."""
PROCESSES = 2
SECONDS = 1200

# A test that fails because the fault itself cannot run has found nothing.
CLUMSY = re.compile(
    r"^E +(\w+\.)*(NameError|ImportError|ModuleNotFoundError|SyntaxError|TypeError|AttributeError"
    r"|UnboundLocalError|UsageError)\b",
    re.MULTILINE,
)


def test_every_fault_still_has_its_place():
    """The gate says nothing about code that moved: this fails first, and fast."""
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 10
    for fault in FAULTS:
        for file, old, new in fault.edits:
            assert (ROOT / file).read_text(encoding="utf-8").count(old) == 1, (fault.name, file, old)
            assert old != new
        path, _, test = fault.killed_by.partition("::")
        assert f"def {test.partition('[')[0]}(" in (ROOT / path).read_text(encoding="utf-8"), fault.name


def test_a_run_plants_the_faults_of_changed_files_and_some_drawn_at_random():
    assert chosen(FAULTS, "") == chosen(FAULTS, " ") == list(FAULTS)
    fault = FAULTS[0]
    changed = fault.edits[0][0]
    touched = [one for one in FAULTS if changed in {file for file, _, _ in one.edits}]
    taken = chosen(FAULTS, f"7 {changed} docs/no_such_file.md")
    assert all(one in taken for one in touched)
    assert len(taken) == len(touched) + DRAWN
    assert taken == chosen(FAULTS, f"7 {changed}") != chosen(FAULTS, f"8 {changed}")
    test = fault.killed_by.partition("::")[0]
    killed = [one for one in FAULTS if one.killed_by.startswith(f"{test}::")]
    taken = chosen(FAULTS, f"7 {test}")
    assert len(taken) == len(killed) + DRAWN and all(one in taken for one in killed)


def test_a_change_of_all_files_plants_as_many_as_a_run_has_time_for():
    every = " ".join(file for fault in FAULTS for file, _, _ in fault.edits)
    taken = chosen(FAULTS, f"7 {every}")
    assert len(taken) == MOST < len(FAULTS)
    assert taken == chosen(FAULTS, f"7 {every}") != chosen(FAULTS, f"8 {every}")


def selected(items):
    """What the tests of a run judge: names of faults, and None for no fault."""
    ours = [item for item in items if "verdicts" in item.fixturenames]
    return [item.callspec.params["name"] if hasattr(item, "callspec") else None for item in ours]


def test_a_run_of_one_test_begins_with_its_fault_alone(request):
    one = SimpleNamespace(fixturenames=["verdicts"], callspec=SimpleNamespace(params={"name": "no noise"}))
    sound = SimpleNamespace(fixturenames=["verdicts"])
    assert selected([one, sound, request.node]) == ["no noise", None]


@pytest.fixture(scope="module")
def verdicts(request):
    """A future for each selected fault and, for None, for the first of these tests of each file without one; two
    at a time.

    A process of pytest-xdist, which is given some of the tests only, begins with each when it is asked for.
    """
    with pool(PROCESSES) as workers:

        def begun(name):
            tests = SOUND if name is None else [BY_NAME[name].killed_by]
            return workers.submit(verdict, tests, name)

        names = () if "PYTEST_XDIST_WORKER" in os.environ else selected(request.session.items)
        early = {name: begun(name) for name in names}
        yield lambda name: early.get(name) or begun(name)
        workers.shutdown(cancel_futures=True)


@pytest.mark.slow
@pytest.mark.required
def test_without_a_fault_the_tests_pass(verdicts):
    code, printed = verdicts(None).result(SECONDS)
    assert code == pytest.ExitCode.OK, printed
    assert "PLANTED 0 of 0 edits" in printed


@pytest.mark.slow
@pytest.mark.required
@pytest.mark.parametrize("name", BY_NAME)
def test_every_fault_is_killed(verdicts, name):
    code, printed = verdicts(name).result(SECONDS)
    edits = len(BY_NAME[name].edits)
    assert f"PLANTED {edits} of {edits} edits" in printed, printed
    assert code == pytest.ExitCode.TESTS_FAILED, printed
    assert not CLUMSY.search(printed), printed
    assert re.search(r"^\d+ failed\b", printed, re.MULTILINE), printed
    assert not re.search(r"\b\d+ errors?\b", printed), printed

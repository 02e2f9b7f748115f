"""Other synthesizers in environments of their own: the protocol, the limits, and what a failure leaves alone.

Stand-ins take the place of the peers. Nothing is installed.
"""

import json
import os
import select
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
beside = pytest.importorskip("beside_peers", reason="the benchmarks are not beside the tests")
environments = pytest.importorskip("peer_environments", reason="the benchmarks are not beside the tests")

RUNNER = f"""
import sys
sys.path.insert(0, {str(BENCHMARKS / "runners")!r})
from protocol import serve

def synthesize(request):
    {{body}}

serve(synthesize, ["numpy"])
"""


def task(name="stand-in"):
    rng = np.random.default_rng(1)
    rows = np.stack([rng.integers(0, size, 400) for size in (2, 3, 4)], axis=1)
    return beside.Task(
        name,
        {"a": 2, "b": 3, "c": 4},
        frozenset({"c"}),
        rows,
        rows[:10],
        (1, 2),
        lambda one, copy: {"rows": len(copy)},
    )


def runner(folder, name, body):
    path = folder / f"{name}_runner.py"
    path.write_text(RUNNER.format(body=body))
    return [sys.executable, path]


def ran(command, limit=120):
    return beside.ran(command, "aim", task(), 0.5, 1e-9, limit)


def test_a_runner_gets_the_whole_request_and_its_rows_come_back(tmp_path):
    body = (
        "assert (request.names, request.sizes) == (['a', 'b', 'c'], [2, 3, 4]);"
        "assert (request.epsilon, request.delta, request.mechanism) == (0.5, 1e-9, 'aim');"
        "return request.rows[::-1]"
    )
    made = ran(runner(tmp_path, "good", body))
    assert (made.copy == task().rows[::-1]).all()
    assert made.wall >= 0 and made.processor >= 0 and made.peak > 1
    assert made.versions == f"numpy {np.__version__}"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('no such domain')", "exit code 1: ValueError: no such domain"),
        ("raise ValueError('no such domain\\n\")\\n\")')", "ValueError: no such domain"),
        ("return request.rows + 1", "outside of the declared domain"),
        ("return request.rows - 1", "outside of the declared domain"),
        ("return request.rows[:, :2]", r"rows of the shape \(400, 2\)"),
        ("return request.rows[:0]", r"rows of the shape \(0, 3\)"),
        ("sys.exit(0)", "writes no result"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed by signal 9"),
    ],
)
def test_what_a_runner_does_wrong_is_the_reason(tmp_path, body, reason):
    with pytest.raises(environments.Unavailable, match=reason):
        ran(runner(tmp_path, "bad", body))


def test_a_hanging_peer_is_killed_with_all_that_it_started(tmp_path):
    for limit in (1, 4, 16, 64):  # a busy machine may need more than one to start the second process
        with pytest.raises(environments.Unavailable, match=f"takes more than {limit} s"):
            environments.limited(["sh", "-c", "sleep 1000 & echo $! > started; wait"], limit, tmp_path)
        if (tmp_path / "started").exists() and (tmp_path / "started").read_text().strip():
            break
    assert is_gone(int((tmp_path / "started").read_text()))


def is_gone(process):
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 60)[0])
    finally:
        os.close(handle)


def test_a_peer_sees_no_packages_of_this_project(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(BENCHMARKS))
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    environments.limited(["sh", "-c", 'test -z "$PYTHONPATH$VIRTUAL_ENV" && test -n "$PATH"'], 60, tmp_path)


def test_a_peer_that_fails_is_named_and_stops_nothing(tmp_path, monkeypatch):
    runner(tmp_path, "good", "return request.rows")
    runner(tmp_path, "bad", "raise OSError('broken')")
    monkeypatch.setattr(beside, "RUNNERS", tmp_path)
    monkeypatch.setattr(beside, "PEERS", {name: beside.Peer(name, "x") for name in ("bad", "good")})
    monkeypatch.setattr(beside, "ENVIRONMENTS", dict.fromkeys(("bad", "good")))
    monkeypatch.setattr(beside, "installed", lambda *_: Path(sys.executable))
    file = tmp_path / "kept" / "results.jsonl"

    def compared():
        bounds = (tmp_path, 60.0, 60.0)
        return beside.compared(task(), None, {}, ["bad", "good"], 1.0, 1e-9, 2, beside.Results(file), bounds)

    rows, reasons = beside.table_lines(compared(), ("1-way", "2-way", "rows"))
    assert reasons == {"bad": "exit code 1: OSError: broken"}
    lines = {row[0]: row[1:] for row in rows}
    assert "bad" not in lines
    assert lines["good"] == ["0.0000", "0.0000", "400.000", 2]
    assert lines[beside.REAL] == lines["good"] and float(lines[beside.SHUFFLED][1]) > 0
    kept = file.read_text().splitlines()
    assert len(kept) == 1 + 2 * 4  # what fails is tried once
    monkeypatch.setattr(beside, "installed", lambda *_: pytest.fail("a run that is kept is made again"))
    assert beside.table_lines(compared(), ("1-way", "2-way", "rows"))[0] == rows
    assert file.read_text().splitlines() == kept
    assert {json.loads(line)["epsilon"] for line in kept} == {1.0}


def test_every_peer_has_a_runner_and_an_environment():
    for peer in beside.PEERS.values():
        assert (beside.RUNNERS / f"{peer.runner}_runner.py").is_file()
        assert peer.runner in beside.ENVIRONMENTS

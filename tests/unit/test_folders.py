"""What killed processes leave behind is removed by the next one of the same user, and nothing else is."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dpsyn_sql.common.folders import locked_folder
from dpsyn_sql.engines.instance import private_instance

PREFIX = "made-here-"

CHILD = """
import sys
from dpsyn_sql.engines.instance import private_instance
engine = private_instance()
folder = engine._scratch.path
(folder / "spilled").write_text("rows")
print(folder, flush=True)
sys.stdin.read()
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no such locks on this system")


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_the_scratch_of_a_killed_run_is_removed_by_the_next_and_that_of_a_live_one_is_not(scratch):
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        folder = child.stdout.readline().strip()
        spilled = scratch / Path(folder).name / "spilled"
        assert spilled.exists()
        private_instance().close()
        assert spilled.exists()
        child.kill()
    assert spilled.exists()
    private_instance().close()
    assert list(scratch.iterdir()) == []


def test_folders_of_this_process_and_its_threads_stay(tmp_path):
    others = []
    with locked_folder(tmp_path, PREFIX) as first:
        thread = threading.Thread(target=lambda: others.append(locked_folder(tmp_path, PREFIX)))
        thread.start()
        thread.join()
        with locked_folder(tmp_path, PREFIX) as second:
            assert len({first, second, others[0].path}) == 3
            assert first.is_dir() and others[0].path.is_dir()
            assert stat.S_IMODE(second.stat().st_mode) == 0o700
        assert not second.exists()
        others[0].close()
        assert first.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_a_folder_that_was_left_behind_stays(tmp_path):
    elsewhere, shared = tmp_path / "elsewhere", tmp_path / "shared"
    elsewhere.mkdir()
    shared.mkdir()
    (elsewhere / "kept").write_text("")
    (shared / f"{PREFIX}{'0' * 16}").symlink_to(elsewhere)
    (shared / f"{PREFIX}{'1' * 16}").write_text("")
    (shared / f"{PREFIX}of-somebody").mkdir()
    (shared / f"other-{'2' * 16}").mkdir()
    before = sorted(shared.iterdir())
    left = shared / f"{PREFIX}{'3' * 16}"
    left.mkdir()
    (left / "half").write_text("")
    with locked_folder(shared, PREFIX):
        assert not left.exists()
    assert sorted(shared.iterdir()) == before and (elsewhere / "kept").exists()


def test_a_folder_of_another_user_stays(tmp_path, monkeypatch):
    left = tmp_path / f"{PREFIX}{'0' * 16}"
    left.mkdir()
    another = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: another)
    with locked_folder(tmp_path, PREFIX):
        assert left.exists()
    monkeypatch.undo()
    locked_folder(tmp_path, PREFIX).close()
    assert not left.exists()


def test_a_folder_that_cannot_be_locked_is_not_used(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(24, "too many open files")

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(OSError, match="too many"):
        locked_folder(tmp_path, PREFIX)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []

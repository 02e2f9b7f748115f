"""The command on a real terminal, in a real shell, and stopped by Ctrl-C."""

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import termios

import duckdb
import pytest
from support.commands import search_path

pytestmark = pytest.mark.slow

COLOUR = re.compile(r"\x1b\[[0-9;]*[34][0-9][0-9;]*m")
HOSTILE = "a[red]x[/]\x1b[2J\u202eb"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a release and its ledger; ``dpsyn`` is on the search path."""
    folder = tmp_path_factory.mktemp("terminal")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PATH", search_path(folder))
        make(folder)
        yield folder


def make(folder):
    name = '"' + HOSTILE + '"'
    with duckdb.connect(str(folder / "w.duckdb")) as con:
        con.execute(f"CREATE TABLE t AS SELECT i % 2 = 0 AS b, i % 3 = 0 AS {name} FROM range(300) AS r(i)")
    done = command(folder, "release", "t", "-d", "w.duckdb", "-m", "independent")
    assert done.returncode == 0, done.stderr


def environment(**more):
    left = {"DPSYN_LEDGER", "NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR"}
    return {name: value for name, value in os.environ.items() if name not in left} | {
        "TERM": "xterm-256color", **more,
    }  # fmt: skip


def command(folder, *arguments, **more):
    return subprocess.run(
        ["dpsyn", *arguments],
        cwd=folder, capture_output=True, text=True, check=False, env=environment(**more),
    )  # fmt: skip


def terminal(folder, *arguments, width=100, **more):
    """What a command prints on a terminal of so many columns, and its exit code."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, width))
    process = subprocess.Popen(
        ["dpsyn", *arguments],
        cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(**more),
    )  # fmt: skip
    os.close(theirs)
    printed = b""
    while True:
        ready, _, _ = select.select([ours], [], [], 1.0)
        if ready:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            printed += part
    os.close(ours)
    return printed.decode().replace("\r\n", "\n"), process.wait()


def test_tables_on_a_terminal_and_plain_text_elsewhere(made):
    shown, code = terminal(made, "ledger", "show")
    assert code == 0 and "─" in shown and "main.t#row" in shown and "Account main.t#row" not in shown
    plain = command(made, "ledger", "show", FORCE_COLOR="1")
    assert "Account main.t#row" in plain.stdout and "\x1b" not in plain.stdout
    for arguments in (
        ("marginal", "w.duckdb", "t_synthetic", HOSTILE),
        ("sample", "w.duckdb", "t_synthetic", "-n", "3"),
    ):
        shown, code = terminal(made, *arguments)
        assert code == 0 and "─" in shown and "a[red]x[/]\\x1b[2J\\u202eb" in shown, shown
        assert "\x1b[2J" not in shown and "\u202e" not in shown
    shown, code = terminal(made, "init", "t", "-d", "w.duckdb")
    assert code == 0 and "columns:" in shown and "\x1b" not in shown and "\u202e" not in shown


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_it_is_not_wanted(made, more):
    shown, code = terminal(made, "release", "t", "-d", "w.duckdb", "-m", "independent", **more)
    assert code == 0 and not COLOUR.search(shown), repr(shown)


def test_nothing_is_cut_on_a_narrow_terminal(made):
    shown, code = terminal(made, "ledger", "show", width=30)
    assert code == 0 and "account: main.t#row" in shown and "─" not in shown
    shown, code = terminal(made, "marginal", "w.duckdb", "t_synthetic", "b", width=20)
    assert code == 0 and "b: true" in shown and "basis: measured" in shown
    narrow, code = terminal(made, "sample", "w.duckdb", "t_synthetic", "-n", "1001")
    assert code == 2 and narrow.startswith("Error: --rows 1001 are too many on a terminal")


def test_progress_is_shown_on_a_terminal_only_and_not_when_quiet(made, tmp_path):
    shutil.copy(made / "w.duckdb", tmp_path / "w.duckdb")
    asked = ("release", "t", "-d", "w.duckdb", "-m", "dpsyn", "--new-debit", "--replace")
    shown, code = terminal(tmp_path, *asked)
    assert code == 0 and "count marginals" in shown and "write" in shown, repr(shown)
    assert "Still to come: sample rows, write." in shown
    assert terminal(tmp_path, *asked, "--quiet") == ("", 0)


def test_timings_are_shown_on_a_terminal_after_the_bar_is_gone(made, tmp_path):
    shutil.copy(made / "w.duckdb", tmp_path / "w.duckdb")
    asked = ("release", "t", "-d", "w.duckdb", "-m", "dpsyn", "--new-debit", "--replace", "--timings")
    shown, code = terminal(tmp_path, *asked)
    assert code == 0 and "Still to come" in shown
    table = shown[shown.index("Where the time went (for you alone):") :]
    assert "count marginals" in table and "total" in table and "─" in table and "Still to come" not in table
    quiet, code = terminal(tmp_path, *asked, "--quiet")
    assert code == 0 and quiet.startswith("Where the time went (for you alone):")
    narrow, code = terminal(tmp_path, *asked, "--quiet", width=30)
    assert code == 0 and "phase: sample rows" in narrow and "─" not in narrow, narrow


def test_a_warning_is_shown_while_a_bar_is(made, tmp_path):
    shutil.copy(made / "w.duckdb", tmp_path / "w.duckdb")
    asked = ("release", "t", "-d", "w.duckdb", "-m", "dpsyn", "--new-debit", "--replace", "-e", "0.001")
    shown, code = terminal(tmp_path, *asked)
    assert code == 0 and "Warning: " in shown, repr(shown)


SHELL = """
set -e
complete_script=$(dpsyn --show-completion bash)
eval "$complete_script"
complete -p dpsyn
tried() {
    COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=()
    _dpsyn_completion dpsyn
    echo "$* = ${COMPREPLY[*]}"
}
tried dpsyn sa
tried dpsyn ledger g
tried dpsyn release --eps
tried dpsyn sample --ro
tried dpsyn release --method cop
tried dpsyn audit --method zzz
tried dpsyn sample w.du
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_commands_options_methods_and_leaves_files_to_the_shell(made):
    done = subprocess.run(
        ["bash", "-c", SHELL],
        cwd=made,
        capture_output=True,
        text=True,
        check=False,
        env=environment(
            _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1"
        ),  # the command is no child of bash here
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
    first, *lines = done.stdout.splitlines()
    assert first == "complete -o default -F _dpsyn_completion dpsyn"  # default: files where there is no word
    assert dict(line.split(" = ") if " = " in line else (line.removesuffix(" ="), "") for line in lines) == {
        "dpsyn sa": "sample",
        "dpsyn ledger g": "grant",
        "dpsyn release --eps": "--epsilon",
        "dpsyn sample --ro": "--rows",
        "dpsyn release --method cop": "copula",
        "dpsyn audit --method zzz": "",
        "dpsyn sample w.du": "",
    }


HOOK = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv[0] = 'dpsyn'
from dpsyn_sql.cli.start import main
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
main()
"""

FREE = "Interrupted: this costs nothing, and nothing was written."
UNREAD = "Interrupted: no row was read, and nothing was charged."


@pytest.mark.parametrize(
    ("module", "arguments", "message"),
    [
        ("dpsyn_sql.cli.main", ("ledger", "show"), "Interrupted before anything was done."),
        ("duckdb", ("release", "t", "-d", "w.duckdb", "-m", "dpsyn"), "Interrupted before anything was charged."),
        ("dpsyn_sql.front.load", ("marginal", "w.duckdb", "t_synthetic", "b", "--json"), FREE),
        ("scipy", ("plan", "t", "-d", "w.duckdb"), UNREAD),
        ("opendp", ("audit",), "Interrupted: no row of yours was read, and nothing was charged."),
        (
            "dpsyn_sql.ledger.sqlite",
            ("ledger", "grant", "main.t#row", "-e", "9"),
            "Interrupted: 'dpsyn ledger show' says whether the limit is set. The same command sets it again.",
        ),
    ],
)  # fmt: skip
def test_ctrl_c_ends_every_command_with_one_message(made, module, arguments, message):
    as_json = "--json" in arguments
    done = subprocess.run(
        [sys.executable, "-c", HOOK.format(module=module), *arguments],
        cwd=made, capture_output=True, text=True, check=False, env=environment(),
    )  # fmt: skip
    assert done.returncode == 128 + signal.SIGINT, done.stderr
    if as_json:
        error = {"kind": "Interrupted", "message": message, "exit_code": 130}
        assert json.loads(done.stdout) == {"error": error, "warnings": []} and done.stderr == ""
    else:
        assert done.stderr == message + "\n" and done.stdout == ""

"""``--spark``: what is refused before Spark starts, and what the command passes on. No Java here."""

import sys
from contextlib import contextmanager
from types import ModuleType

import pytest
from support.commands import run

import dpsyn_sql
from dpsyn_sql.engines.spark.guard import started
from dpsyn_sql.errors import InputError

COMMANDS = {
    "init": ("init", "db.t"),
    "plan": ("plan", "db.t", "--into", "db.o"),
    "release": ("release", "db.t", "--into", "db.o"),
}


@pytest.fixture
def no_pyspark(monkeypatch):
    for name in [one for one in sys.modules if one.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--spark", "local[2]"), "pip install 'dpsyn_sql[spark]'"),
        (("--spark", "sc://host:15002"), "Spark Connect"),
        (("--spark", "local[2]", "--database", "w.duckdb"), "leave out the other"),
    ],
)
def test_refusals_are_one_line_and_leave_nothing(no_pyspark, tmp_path, monkeypatch, command, options, words):
    monkeypatch.chdir(tmp_path)
    result = run(*COMMANDS[command], *options)
    assert result.exit_code == 2 and words in result.output
    assert len(result.output.strip().splitlines()) == 1 and result.output.startswith("Error: ")
    assert list(tmp_path.iterdir()) == []


class Builder:
    """Stands in for ``SparkSession.builder``: says what it was asked for."""

    def __init__(self, log, fails):
        self.log, self.fails = log, fails

    def __getattr__(self, name):
        def asked(*values):
            self.log.append((name, *values))
            if name == "getOrCreate":
                if self.fails:
                    raise RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited")
                return Session(self.log)
            return self

        return asked


class Session:
    def __init__(self, log):
        self.log, self.sparkContext = log, self

    def setLogLevel(self, level):
        self.log.append(("level", level))

    def stop(self):
        self.log.append(("stop",))
        raise ConnectionError("it was gone already")


@pytest.fixture
def builder(monkeypatch):
    """pyspark as a module with a builder; ``fails``: no session starts."""

    def made(fails=False):
        log = []
        module = ModuleType("pyspark.sql")
        module.SparkSession = type("SparkSession", (), {"builder": Builder(log, fails)})
        monkeypatch.setitem(sys.modules, "pyspark", ModuleType("pyspark"))
        monkeypatch.setitem(sys.modules, "pyspark.sql", module)
        return log

    return made


def test_no_session_is_our_own_sentence(builder):
    builder(fails=True)
    with pytest.raises(InputError, match=r"Java 17 or later") as caught, started("local[2]"):
        pass
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_a_session_is_silent_uses_this_python_and_is_stopped(builder, monkeypatch):
    log = builder()
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    with started("local[2]"):
        import os

        assert os.environ["PYSPARK_PYTHON"] == sys.executable
        assert ("master", "local[2]") in log and ("level", "OFF") in log
    assert log[-1] == ("stop",)


def test_workers_of_a_cluster_keep_their_own_python(builder, monkeypatch):
    builder()
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    with started("yarn"):
        import os

        assert "PYSPARK_PYTHON" not in os.environ


@pytest.mark.parametrize("command", ["init", "plan"])
def test_the_session_reaches_the_function_and_ends_with_the_command(monkeypatch, command):
    import dpsyn_sql.engines.spark.guard as module

    log = []

    @contextmanager
    def fake(master):
        log.append(master)
        try:
            yield "session"
        finally:
            log.append("stopped")

    def function(con, *_, **__):
        log.append(con)
        raise InputError("as far as this")

    monkeypatch.setattr(module, "started", fake)
    monkeypatch.setattr(dpsyn_sql, command, function)
    assert "as far as this" in run(*COMMANDS[command], "--spark", "yarn").output
    assert log == ["yarn", "session", "stopped"]

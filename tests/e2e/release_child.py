"""Processes that run one release each and may die on the way: forked from one that has imported
everything and never touched a database, because importing takes longer than a small release.

Reads a JSON line with a list of jobs, runs them at the same time, answers with their exit statuses.
"""

import contextlib
import hashlib
import importlib
import json
import logging
import multiprocessing
import os
import resource
import shutil
import signal
import sqlite3
import sys
import threading
import time
import traceback
import warnings
from pathlib import Path

import duckdb

import dpsyn_sql.front.plan  # loaded by the first call otherwise, which is after the fork
import dpsyn_sql.front.release
from dpsyn_sql.common.progress import listening
from dpsyn_sql.engines import builtin, instance
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import DpsynError
from dpsyn_sql.report import certificate
from dpsyn_sql.sqltext import render
from dpsyn_sql.sqltext.fragments import literal
from dpsyn_sql.sqltext.render import templates_folder


class Steps:
    """Counts what changes something outside the process; raises a signal before step ``at``."""

    def __init__(self, job):
        self.at, self.during = job.get("step"), job.get("during")
        self.signal = getattr(signal, job.get("signal", "SIGKILL"))
        self.labels, self.files = [], []
        self.watched = [Path(folder) for folder in job.get("watched", ())]

    def take(self, label):
        self.labels.append(label)
        if self.watched:
            self.files.append(what_lies_in(self.watched))
        if len(self.labels) - 1 == self.at:
            os.kill(os.getpid(), self.signal)
        if label == self.during:
            self.later(0.1)

    def later(self, seconds):
        threading.Timer(seconds, os.kill, (os.getpid(), self.signal)).start()

    def hook(self):
        for name in ("execute", "fetch", "load"):
            self._wrap(DuckDBEngine, name, lambda engine, *_, step, **__: step)
        self._wrap(os, "link", lambda *_: "linking the file")
        self._wrap(Path, "replace", lambda *_: "moving the file")
        self._wrap(shutil, "rmtree", lambda *_, **__: "removing a folder")
        connect = sqlite3.connect

        def traced(*arguments, **options):
            connection = connect(*arguments, **options)
            connection.set_trace_callback(self._ledger)
            return connection

        sqlite3.connect = traced

    def _wrap(self, owner, name, label):
        original = getattr(owner, name)

        def counted(*arguments, **options):
            self.take(label(*arguments, **options))
            return original(*arguments, **options)

        setattr(owner, name, counted)

    def _ledger(self, statement):
        """Reading changes nothing: a death there is a death before the next change."""
        words = [line for line in statement.splitlines() if line and not line.startswith("--")]
        if words and words[0].split()[0] in ("BEGIN", "INSERT", "UPDATE", "COMMIT"):
            self.take(f"ledger: {words[0]}")


def what_lies_in(folders):
    """A digest of all files but the lock beside the ledger, which whoever opens it next takes away."""
    digest = hashlib.sha256()
    for path in sorted(path for folder in folders for path in folder.rglob("*")):
        if not path.name.endswith("-dpsyn-lock"):
            digest.update(f"{path}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes() if path.is_file() else b"").digest())
    return digest.hexdigest()


class DiesInPhase:
    """A progress listener: SIGKILL when a phase begins for the ``times``-th time."""

    def __init__(self, name, times):
        self.name, self.left = name, times

    def begin(self, name, total):
        self.left -= name == self.name
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def advance(self, name, amount):
        pass

    def end(self, name):
        pass


def spilling(limit, encrypted):
    """Instances of ours with so little memory that they spill."""
    made = instance.private_instance

    def small(memory_limit=None):
        engine = made(limit)
        if not encrypted:
            instance.set_option(engine, "temp_file_encryption", literal(False))
        return engine

    instance.private_instance = small


def die_once_spilled(scratch):
    """SIGKILL as soon as something substantial lies in the folder for temporary files."""
    while not any(file.stat().st_size > 2**22 for file in scratch.rglob("*") if file.is_file()):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


def called(module, name, *arguments):
    """Another way to ask, a function of a module of tests."""
    getattr(importlib.import_module(module), name)(*arguments)


def released(connection, job):
    if job.get("database"):
        result = dpsyn_sql.release(connection, **job["options"])
        tables, rows = result.tables.values(), {name: one.rows for name, one in result.tables.items()}
    else:
        result = dpsyn_sql.release(connection, job["source"], **job["options"])
        tables, rows = [result], result.rows
    noisy = b"".join(one.values.tobytes() for table in tables for one in table.measurements)
    return {"noisy": noisy.hex(), "rows": rows, "replayed": result.replayed, "id": result.id}


def run(job):
    os.environ["TMPDIR"] = job["scratch"]
    logging.basicConfig(level=logging.DEBUG)
    warnings.simplefilter("always")
    steps = Steps(job)
    steps.hook()
    if "delay" in job:
        steps.later(job["delay"])
    if "memory" in job:
        spilling(job["memory"], job.get("encrypted", True))
        if job.get("die_once_spilled"):
            threading.Thread(target=die_once_spilled, args=[Path(job["scratch"])], daemon=True).start()
    if "file_size" in job:
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["file_size"], resource.RLIM_INFINITY))
    con = job.get("con")
    connection = duckdb.connect(con) if job.get("connect") else con
    told = {}
    try:
        watched = listening(DiesInPhase(*job["phase"])) if "phase" in job else contextlib.nullcontext()
        with watched:
            if "call" in job:
                called(*job["call"])
            else:
                told = released(connection, job)
    except (DpsynError, KeyboardInterrupt) as error:
        told = {"error": type(error).__name__, "text": "".join(traceback.format_exception(error))}
        told["message"], told["notes"] = str(error), getattr(error, "__notes__", [])
        told["alone"] = error.__cause__ is None and error.__context__ is None
    told["steps"], told["files"] = steps.labels, steps.files
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    if job.get("connect"):
        connection.close()
    Path(job["result"]).write_text(json.dumps(told))


def forked(job):
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        with Path(job["log"]).open("w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        run(job)
        status = 0
    except BaseException:  # noqa: BLE001 - the parent reads it in the log
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(status)


def prepare():
    """What a first release of a process takes time for, done once: most of its time otherwise."""
    for path in templates_folder().rglob("*.sql"):
        render._environment().get_template(path.relative_to(templates_folder()).as_posix())
    with multiprocessing.get_context("fork").Pool(1) as elsewhere:  # no database in this process
        functions = elsewhere.apply(builtin._untouched)
    builtin._untouched = lambda: functions
    certificate.epsilon_from_events = lambda *_: None  # as without the optional second accountant


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
    prepare()
    for line in sys.stdin:
        children = [forked(job) for job in json.loads(line)]
        print(
            json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]), flush=True
        )


if __name__ == "__main__":
    main()

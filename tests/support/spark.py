"""One small Spark session for each test process; without Java or pyspark its tests are skipped, and say so.

A session costs a Java process of about half a gigabyte. So tests share one, and never stop it or change its
settings; what needs another runs in a process of its own. pyspark is imported by whoever needs the session.
"""

import importlib.util
import os
import re
import secrets
import shutil
import subprocess
import sys
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest

import dpsyn_sql
from dpsyn_sql.auditing.testing import RecordingNoise
from dpsyn_sql.private.count.counter import SqlCounter

OLDEST_JAVA = 17
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java that lives for minutes compiles little."""
LOUD = "Spark tests do not run: "


def missing():
    """What Spark needs and is not here, with how to get it; empty if nothing."""
    for module in ("pyspark", "pyarrow"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed: pip install '.[spark]'"
    cure = f"install Java {OLDEST_JAVA} or later (apt-get install openjdk-17-jre-headless)"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if java is None:
        return f"no java on the path or under JAVA_HOME: {cure}"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    if told.returncode or found is None:
        return f"java does not start: {cure}"
    if int(found[1]) < OLDEST_JAVA:
        return f"java is of version {found[1]}: {cure}"
    return ""


def settings(folder, memory="1g"):
    """Of a session of tests: small, silent, all its files below ``folder``."""
    return {
        "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}/derby -Djava.io.tmpdir={folder}/tmp {QUICK}",
        "spark.eventLog.enabled": "false",
        "spark.local.dir": f"{folder}/local",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


@contextmanager
def session_in(folder, master="local[2,4]", **more):
    """A session of its own; only one may live in a process. Its workers are this interpreter without this package.

    ``master``: by default two tasks at a time, each tried four times; or ``cluster_in``, which gives its address.
    """
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    (Path(folder) / "tmp").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", str(worker_in(Path(folder))))
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        conf = SparkConf().setAppName("tests").setAll((settings(folder) | more).items())
        conf = conf.setMaster(master(folder, conf) if callable(master) else master)
        session = SparkSession.builder.config(conf=conf).getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        try:
            yield session
        finally:
            gateway = session.sparkContext._gateway
            session.stop()
            end(gateway)


LACKING = """
import sys

class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "dpsyn_sql":
            raise ModuleNotFoundError("workers have no dpsyn_sql")

sys.meta_path.insert(0, Lacking())
"""


def worker_in(folder):
    """This interpreter as workers have it by the documentation: it has DuckDB and Arrow, and not this package."""
    (folder / "lacking").mkdir()
    (folder / "lacking" / "sitecustomize.py").write_text(LACKING)
    worker = folder / "worker"
    worker.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}/lacking:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    worker.chmod(0o700)
    return worker


def cluster_in(folder, conf):
    """Start a cluster of two workers with a core each in the Java of this process; its address.

    Each calls itself a host of its own, because Spark makes no second attempt on the host of the first.
    """
    from pyspark import SparkContext

    SparkContext._ensure_initialized(conf=conf)
    jvm = SparkContext._jvm
    deploy, java = jvm.org.apache.spark.deploy, jvm.org.apache.spark.SparkConf()
    for name, value in conf.getAll():
        java.set(name, value)
    none = getattr(getattr(jvm.scala, "None$"), "MODULE$")
    started = deploy.master.Master.startRpcEnvAndEndpoint("127.0.0.1", 0, 0, java)
    address = f"spark://127.0.0.1:{started._1().address().port()}"
    masters = SparkContext._gateway.new_array(jvm.String, 1)
    masters[0] = address
    for number in (2, 3):
        deploy.worker.Worker.startRpcEnvAndEndpoint(
            f"127.0.0.{number}", 0, 0, 1, 512, masters, f"{folder}/work", jvm.scala.Some(number), java, none
        )
    return address


def end(gateway):
    """End the Java process behind a session that was stopped: it would stay until Python ends."""
    from pyspark import SparkContext

    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """The session that all tests of this process share."""
    reason = missing()
    if reason:
        pytest.skip(LOUD + reason)
    folder = tmp_path_factory.mktemp("spark")
    with session_in(folder) as session:
        yield session
    shutil.rmtree(folder, ignore_errors=True)


def table_of(spark, name, con, sql, folder, files=3):
    """A table of Spark's catalog, over Parquet files below ``folder`` that hold the rows of DuckDB's ``sql``."""
    folder.mkdir(parents=True)
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE dealt AS SELECT *, row_number() OVER () % {files} AS dealt FROM ({sql})"
    )
    for part in range(files):
        rows = f"SELECT * EXCLUDE (dealt) FROM dealt WHERE dealt = {part}"
        con.execute(f"COPY ({rows}) TO '{folder / f'part-{part}.parquet'}' (FORMAT parquet)")
    con.execute("DROP TABLE dealt")
    spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{folder.as_uri()}'")


def counted(session, domain, queries, **how):
    """Exact counts of the source of a session, PRIVATE, by the counter of releases."""
    counter = SqlCounter(session.engine, session.relation.sql, domain, queries, **how)
    try:
        return counter.count(queries)
    finally:
        counter.close()


def exact_counts(place, source, into, noise, **options):
    """A release whose noise is ``noise``; for each question what the door counted for it."""
    measure = import_module("dpsyn_sql.front.measure")
    recorder = RecordingNoise(noise)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "ExactNoise", lambda: recorder)
        patch.setattr(
            secrets, "randbits", lambda bits: 7
        )  # the same lots decide which of a unit's rows count
        dpsyn_sql.release(place, source, into=into, **options)
    return recorder.calls


def files_under(folder):
    """Every file below a folder, to see that nothing private stays."""
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())

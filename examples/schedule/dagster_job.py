"""Dagster runs ``dpsyn run`` every day. Try it with: dagster job execute -f dagster_job.py -j release

Retries are safe: what was charged before a failure is never charged again.
"""

import json
import os
import subprocess
from pathlib import Path

from dagster import Definitions, Failure, OpExecutionContext, RetryRequested, ScheduleDefinition, job, op

SCHEDULE = Path(os.environ.get("DPSYN_SCHEDULE", Path(__file__).with_name("dpsyn.yml")))
FAILED, LOCKED = 1, 4


@op
def dpsyn_run(context: OpExecutionContext) -> None:
    """Release what is due."""
    done = subprocess.run(
        ["dpsyn", "run", "--json", str(SCHEDULE)], capture_output=True, text=True, check=False
    )
    found = json.loads(done.stdout or "{}")
    for one in found.get("periods", ()):
        context.log.info(f"{one['release']}:{one['period']}: {one['result']}: {one['message']}")
    if done.returncode in (FAILED, LOCKED):
        raise RetryRequested(max_retries=2, seconds_to_wait=300)
    if done.returncode:  # 2: the file is wrong; 3: a budget refused: only people can help
        told = found.get("error", {}).get("message") or done.stderr or "a budget refused a release"
        raise Failure(told, allow_retries=False)


@job
def release() -> None:
    """One run of the schedule."""
    dpsyn_run()


defs = Definitions(jobs=[release], schedules=[ScheduleDefinition(job=release, cron_schedule="10 3 * * *")])

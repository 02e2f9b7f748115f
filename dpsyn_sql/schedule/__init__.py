"""Scheduled releases: what is due by a declared calendar. Each period is released and paid once.

from dpsyn_sql.schedule import run, status
"""

from dpsyn_sql.schedule.previews import Preview, preview
from dpsyn_sql.schedule.records import State, status
from dpsyn_sql.schedule.running import Outcome, Run, run

__all__ = ["Outcome", "Preview", "Run", "State", "preview", "run", "status"]

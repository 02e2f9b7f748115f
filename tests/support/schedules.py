"""Faults of a schedule as its tests see them."""

import pytest

from dpsyn_sql.errors import ScheduleError


def faults_of(read, text):
    """Line and text of each fault that reading the text raises."""
    with pytest.raises(ScheduleError) as error:
        read(text)
    return [fault.rpartition("dpsyn.yml:")[2] for fault in error.value.faults]

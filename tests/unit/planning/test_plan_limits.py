"""Limits: how they are read, and what becomes smaller under one on memory."""

import math

import pytest

from dpsyn_sql.errors import InputError, PlanTooLarge
from dpsyn_sql.planning.limits import LEAST_MEMORY, NO_LIMITS, Limits, read_limits

MAX_CANDIDATE_CELLS = 2**25


@pytest.mark.parametrize(
    ("written", "number"),
    [
        (None, None),
        ("4GB", 4 * 10**9),
        (" 1.5 gib ", 3 * 2**29),
        ("1024 MiB", 2**30),
        ("600000000", 600_000_000),
        (2**30, 2**30),
        ("1tb", 10**12),
    ],
)
def test_read(written, number):
    assert read_limits({"memory": written}) == Limits(number)


@pytest.mark.parametrize(
    "written",
    ["", "lots", "4 GBB", "GB", "-4GB", "80%", "0", "0GB", 0, -1, 1, "511MiB", True, 4e9, b"4GB", "1e9", "∞", "٤GB"],
)  # fmt: skip
def test_refused(written):
    with pytest.raises(InputError, match="limits={'memory': "):
        read_limits({"memory": written})


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, True, "5 s", "", "nan", "-1", [5], 10**400])
def test_no_duration(value):
    with pytest.raises(InputError, match="limits={'time': .*: give a positive number of seconds"):
        read_limits({"time": value})


def test_durations():
    times = [read_limits({"time": value}).time for value in (5, 0.1, "5", "1e3", None)]
    assert times == [5, 0.1, 5, 1000, None]


def test_limits_are_one_mapping_and_memory_alone_makes_another_plan():
    stated = read_limits({"memory": "1GB", "time": 60, "scratch": "plain"})
    assert (stated.memory, stated.time, stated.scratch) == (10**9, 60, "plain") and stated == Limits(10**9)
    assert read_limits(None) == read_limits({}) == NO_LIMITS and NO_LIMITS.scratch == "encrypted"
    with pytest.raises(InputError, match="limits= has the unknown key 'time'. Allowed are memory"):
        read_limits({"time": 60}, taken=("memory",))


def test_no_limit_changes_nothing_and_a_roomy_one_neither():
    for limits in (NO_LIMITS, Limits(8 * 10**9)):
        assert limits.candidate_cells(MAX_CANDIDATE_CELLS) == MAX_CANDIDATE_CELLS
        assert limits.tree_cells(10**6) == 10**6
        limits.check_measured(2**20)
    assert NO_LIMITS.engine is None


@pytest.mark.parametrize("memory", [LEAST_MEMORY, 10**9, 2 * 10**9])
def test_the_parts_fit_into_the_whole(memory):
    limits = Limits(memory)
    ours = 8 * limits.candidate_cells(MAX_CANDIDATE_CELLS) + 256 * limits.tree_cells(4 * 10**6)
    engine = int(limits.engine.removesuffix("MiB")) * 2**20
    assert ours > 0 and ours + engine + 200 * 2**20 < memory
    assert limits.tree_cells(10**6) in (10**6, 2 ** (limits.tree_cells(10**6).bit_length() - 1))


def test_more_measured_cells_than_fit_are_refused_with_the_limit_that_would_do():
    with pytest.raises(PlanTooLarge, match=r"needs limits={'memory': '\d+MB'}") as caught:
        Limits(LEAST_MEMORY).check_measured(2**23)
    enough = str(caught.value).split("'memory': '")[1].split("'")[0]
    read_limits({"memory": enough}).check_measured(2**23)

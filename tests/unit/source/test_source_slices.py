"""Slices: what is accepted and what is refused, before any source is opened."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from dpsyn_sql.errors import InputError
from dpsyn_sql.front.request import OPTIONS, Request
from dpsyn_sql.source.slices import Partition, Window

EDGES = ("2013-01-01", "2013-02-01", "2013-03-01T06:30:00", "2013-04-01", "2013-05-01")


def window(**changes: Any) -> Window:
    given: dict[str, Any] = {"column": "day", "calendar": "month", "edges": EDGES, "index": 1}
    return Window(**{**given, **changes})


def test_a_window_knows_its_own_ends_and_the_edges_before_them() -> None:
    one = window(index=2, span=2)
    assert (one.start, one.end) == (datetime(2013, 3, 1, 6, 30), datetime(2013, 5, 1))
    assert window(index=0).moments == (datetime(2013, 1, 1), datetime(2013, 2, 1))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"column": ""}, "column=''"),
        ({"column": 'a"b\nc'}, "column="),
        ({"calendar": "x\x00"}, "calendar="),
        ({"calendar": None}, "calendar=None"),
        ({"edges": list(EDGES)}, "edges=<list>"),
        ({"edges": EDGES[:1]}, "edges=<tuple>"),
        ({"edges": ("2013-01-01", "soon")}, "'soon'"),
        ({"edges": ("2013-01-01", "2013-02-01T00:00:00+01:00")}, "without a time zone"),
        ({"edges": ("2013-01-01", 5)}, "5"),
        ({"edges": ("2013-01-01", "2013-03-01", "2013-02-01")}, "not ascending"),
        ({"edges": ("2013-01-01", "2013-01-01T00:00:00", "2013-02-01")}, "not ascending"),
        ({"index": -1}, "index=-1"),
        ({"index": True}, "index=True"),
        ({"index": 4}, "needs 6 edges"),
        ({"span": 0}, "span=0"),
        ({"span": 2}, "no multiple"),
        ({"most": 0}, "most=0"),
        ({"most": 1.0}, "most=1.0"),
        ({"labels": ["a", "b", "c", "d"]}, "labels must be a tuple"),
        ({"labels": ("a", "b", "c", "")}, "labels must be a tuple"),
        ({"labels": ("a", "b", "c", 4)}, "labels must be a tuple"),
        ({"labels": ("a", "b", "b", "c")}, "two windows have the same label"),
        ({"labels": ("a", "b", "c")}, "there are 3 labels, but the calendar 'month' has 4 windows"),
    ],
)
def test_a_window_that_cannot_be_used_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match="The window cannot be used") as caught:
        window(**changes)
    assert said in str(caught.value)


def test_a_window_is_called_by_its_label_or_its_edge() -> None:
    assert window().names == EDGES[:-1]
    assert window(labels=("a", "b", "c", "d")).names == ("a", "b", "c", "d")


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        window(column="", index=-1, most=0)
    assert all(fault in str(caught.value) for fault in ("column=", "index=", "most="))


@pytest.mark.parametrize(
    "changes", [{"value": 3}, {"value": "a\x00"}, {"value": "\ud800"}, {"most": 2}, {"most": True}]
)
def test_a_partition_that_cannot_be_used_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="The partition cannot be used"):
        Partition(**{"column": "region", "value": "north", **changes})


def test_a_window_is_for_programs_only() -> None:
    assert not {"window", "series"} & set(OPTIONS)
    with pytest.raises(InputError, match="unknown key"):
        Request.from_mapping({"source": "t", "window": None})
    assert not {"window:", "series:"} & set((Request.__doc__ or "").split("Args:")[1].split())
    with pytest.raises(InputError, match="give a Window, a Partition, or None"):
        Request("t", window="2013").check()  # type: ignore[arg-type]
    Request("t", window=window()).check()
    assert "Window(column='day'" in repr(Request("t", window=window()))

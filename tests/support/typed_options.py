"""What type checkers accept and refuse of the options of a release: ``mypy --strict`` reads it, nothing runs it."""

import dpsyn_sql
from dpsyn_sql import Request

dpsyn_sql.release(None, "t.csv", epsilon="0.5", exclude=["a"], workload={"a": 2, ("a", "b"): 1})
dpsyn_sql.release("t.csv")
dpsyn_sql.release(None, Request("t.csv", rows=3))
seen: dpsyn_sql.Explanation = dpsyn_sql.plan(con=None, source="t.csv", seed=3)

# A comment that hides no error is an error, too.
dpsyn_sql.release(None, "t.csv", epsilom=1)  # type: ignore[call-overload]
dpsyn_sql.release(None, "t.csv", rows="3")  # type: ignore[call-overload]
dpsyn_sql.plan(None, Request("t.csv"), rows=3)  # type: ignore[call-overload]
Request("t.csv", "o.csv")  # type: ignore[call-arg]

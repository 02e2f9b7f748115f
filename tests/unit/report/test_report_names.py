"""What a certificate calls its source: without the owner's folders, and otherwise as it was asked."""

import pytest

from dpsyn_sql.report.certificate import _public_name
from dpsyn_sql.source.relation import Relation
from dpsyn_sql.sqltext.fragments import Fragment


@pytest.mark.parametrize(
    ("kind", "name", "shown"),
    [
        ("parquet", "/home/ann/x.parquet", "x.parquet"),
        (
            "query",
            "SELECT 'k' AS k, a / 2 FROM read_parquet([ '/home/ann/x.parquet', '/home/ann/y' ])",
            "SELECT 'k' AS k, a / 2 FROM read_parquet([ 'x.parquet', 'y' ])",
        ),
        ("query", "SELECT * FROM '/home/ann/x'", "SELECT * FROM 'x'"),
        (
            "query",
            "SELECT * FROM t WHERE c <> '/a name/of it''s' AND d = 'n/a'",
            "SELECT * FROM t WHERE c <> '/a name/of it''s' AND d = 'n/a'",
        ),
        (
            "query",
            "SELECT * FROM t WHERE c IS DISTINCT FROM 'n/a'",
            "SELECT * FROM t WHERE c IS DISTINCT FROM 'n/a'",
        ),
        (
            "query",
            "SELECT * FROM read_csv('/home/ann/y', columns = MAP(['a'], ['T']))",
            "SELECT * FROM read_csv('y', columns = MAP(['a'], ['T']))",
        ),
        (
            "query",
            "SELECT * FROM read_csv('" + "''" * 40 + "', (",
            "SELECT * FROM read_csv('" + "''" * 40 + "', (",
        ),
        ("query", "SELECT * FROM t JOIN '../in/b.csv' USING (k)", "SELECT * FROM t JOIN 'b.csv' USING (k)"),
    ],
)
def test_folders_are_left_out_and_conditions_are_kept(kind, name, shown):
    assert _public_name(Relation(name, kind, Fragment("t"), ())) == shown

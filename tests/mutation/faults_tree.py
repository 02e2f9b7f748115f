"""Faults of a tree of tables: rows that others decide on, weights that grow, and joins that double."""

from planted import fault

COUNTS = "tests/unit/count/test_count_tree.py"
COUPLING = "tests/conformance/test_coupling_tree.py"
KEPT_ROWS = "dpsyn_sql/private/rows/kept.py"
KEPT, TABLE = "sql/encode/kept.sql", "sql/encode/table.sql"
WEIGHT = "parent_weight // n AS w"
FULL = f"{COUNTS}::test_full_families_are_those_of_the_definitions"
ADDS = f"{COUPLING}::test_a_unit_of_full_families_that_shares_keys_with_others"
SHARED = f"{COUNTS}::test_a_key_in_two_units_has_a_copy_in_each"

FAULTS = (
    fault(
        "weights of rows below round up",
        f"{COUNTS}::test_many_children_of_one_parent",
        (KEPT, WEIGHT, "(parent_weight + n - 1) // n AS w"),
    ),
    fault(
        "weights of inner rows round up",
        ADDS,
        (
            KEPT,
            WEIGHT,
            "{% if below %}(parent_weight + n - 1) // n{% else %}parent_weight // n{% endif %} AS w",
        ),
    ),
    fault(
        "the rows of a parent are counted before the bound",
        FULL,
        (
            KEPT,
            "CAST(LEAST(candidates, {{ most }}) AS INTEGER) AS n",
            "CAST(candidates AS INTEGER) AS n",
        ),
    ),
    fault(
        "a leaf weighs as if its parent had no siblings",
        ADDS,
        (KEPT, WEIGHT, "1048576 // n AS w"),
    ),
    fault(
        "a row joins with every row below that it has",
        ADDS,
        (
            TABLE,
            "    SELECT\n        parent,\n        count(*) AS n\n    FROM {{ child.table }}\n    GROUP BY\n        parent\n",
            "    SELECT\n        parent,\n        n\n    FROM {{ child.table }}\n",
        ),
    ),
    fault(
        "the path to the unit joins keys that are there twice",
        f"{COUNTS}::test_discovery_sees_each_row_with_its_units",
        ("sql/encode/tree_units.sql", "SELECT DISTINCT\n", "SELECT\n"),
    ),
    fault(
        "a class is one of the rows of all units",
        ADDS,
        ("sql/encode/classes.sql", "    ON child.parent = up.rowid", "    ON child.parent >= up.rowid"),
    ),
    fault(
        "the rows of a family are those of a key, of any unit",
        ADDS,
        (
            KEPT_ROWS,
            '"parent": Fragment("up.rowid")',
            '"parent": Fragment("min(up.rowid) OVER (PARTITION BY up.key)")',
        ),
    ),
    fault(
        "of a key one row is kept, whatever its unit",
        SHARED,
        (KEPT, "{{ unit }} AS unit", "{% if up %}0{% else %}{{ unit }}{% endif %} AS unit"),
    ),
    fault(
        "duplicates of a key are kept twice",
        f"{COUNTS}::test_a_row_that_is_there_twice_is_kept_once_if_rows_hang_on_it",
        (KEPT, "WHERE copy = 1", "WHERE copy <= {% if up %}2{% else %}1{% endif %}"),
    ),
    fault(
        "a unit that is there twice is kept twice",
        f"{COUNTS}::test_a_row_that_is_there_twice_is_kept_once_if_rows_hang_on_it",
        (KEPT, "WHERE copy = 1", "WHERE copy <= {% if up %}1{% else %}2{% endif %}"),
    ),
    fault(
        "parts of a key run together",
        f"{COUNTS}::test_keys_of_several_columns_are_told_apart",
        (
            "dpsyn_sql/private/rows/codes.py",
            "f\"CAST(strlen({part}) AS VARCHAR) || ':' || {part}\"",
            'f"{part}"',
        ),
    ),
    fault(
        "the row before is one of another parent",
        ADDS,
        (
            "sql/encode/codes.sql",
            "            PARTITION BY\n                parent\n            ORDER BY",
            "            ORDER BY",
        ),
    ),
    fault(
        "classes of two tables share their draws",
        FULL,
        (KEPT_ROWS, "first = self._number(table.name) * _GROUPS", "first = 0"),
    ),
    fault(
        "the rows of a parent count by what all of a unit's rows weigh",
        f"{COUNTS}::test_many_children_of_one_parent",
        ("dpsyn_sql/private/count/sums.py", "rows[2] // (rows[1] - 1)", "1048576 // (rows[1] - 1)"),
    ),
    fault(
        "a table is discovered after another was opened",
        "tests/unit/measure/test_measure_curator.py::test_discovery_goes_from_table_to_table_until_the_domain_is_complete",
        ("dpsyn_sql/private/measure/curator.py", "if self._private_side.counts is not None:", "if False:"),
    ),
    fault(
        "another table is discovered at the noise of the one before",
        "tests/unit/measure/test_measure_curator.py::test_discovery_goes_from_table_to_table_until_the_domain_is_complete",
        (
            "dpsyn_sql/private/measure/curator.py",
            "replace(self._private_side, rows_per_unit=rows_per_unit, unknown=counter)",
            "replace(self._private_side, unknown=counter)",
        ),
    ),
)

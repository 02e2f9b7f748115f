"""Faults of rows that stay together: weights and windows that look beyond a unit's kept rows."""

from planted import fault

COUNTS = "tests/unit/count/test_count_families.py"
KEPT, CODES_SQL = "sql/encode/kept.sql", "sql/encode/codes.sql"
ENCODED = "dpsyn_sql/private/rows/hidden.py"
ADDS = f"{COUNTS}::test_a_unit_adds_at_most_its_weight_and_changes_no_other"
CODES = f"{COUNTS}::test_all_rows_of_units_are_counted_by_their_weights"

FAULTS = (
    fault(
        "weights of a unit round up",
        ADDS,
        (KEPT, "parent_weight // n AS w", "(parent_weight + n - 1) // n AS w"),
    ),
    fault(
        "rows of all units have one weight",
        ADDS,
        (
            KEPT,
            "    CAST(LEAST(candidates, {{ most }}) AS INTEGER) AS n,\n",
            "    CAST(max(LEAST(candidates, {{ most }})) OVER () AS INTEGER) AS n,\n",
        ),
    ),
    fault(
        "the row before is one of another unit",
        CODES,
        (
            CODES_SQL,
            "            PARTITION BY\n                parent\n            ORDER BY",
            "            ORDER BY",
        ),
    ),
    fault(
        "what a unit shares is the least of its codes",
        CODES,
        (
            ENCODED,
            'yield Fragment(f"max(f{place} * {size}',
            'yield Fragment(f"max({size}',
        ),
    ),
    fault(
        "of equally frequent codes of a unit the largest is taken",
        f"{COUNTS}::test_a_unit_has_its_most_frequent_codes_and_says_which_columns_differ",
        (
            ENCODED,
            """{size - 1} - {code}) OVER family_rows AS m{place}")""",
            """{code}) OVER family_rows AS m{place}")""",
        ),
        (
            ENCODED,
            'return Fragment(f"({size - 1} - m{place} % {size})")',
            'return Fragment(f"(m{place} % {size})")',
        ),
    ),
    fault(
        "a code of a unit is as frequent as in all units together",
        ADDS,
        (ENCODED, "(PARTITION BY parent, p{place})", "(PARTITION BY p{place})"),
    ),
    fault(
        "a unit of several values in two columns counts as one of the first",
        f"{COUNTS}::test_a_unit_has_its_most_frequent_codes_and_says_which_columns_differ",
        (
            ENCODED,
            "CASE WHEN {several} > 1 THEN {len(places) + 1} ELSE",
            "CASE WHEN {several} > 1 THEN 1 ELSE",
        ),
    ),
    fault(
        "weights are those of unbounded rows",
        ADDS,
        (
            KEPT,
            "WHERE place <= {{ most }}",
            "WHERE place <= {{ most }} + 1",
        ),
    ),
    fault(
        "discovery counts all rows of a unit, with the noise for one",
        "tests/e2e/test_traces_release.py::test_discovery_counts_one_row_of_a_unit_and_its_noise_hides_one",
        (
            "dpsyn_sql/front/measure.py",
            "decimal=relation.text_decimal, unit=looked\n",
            "decimal=relation.text_decimal, unit=table.source.unit\n",
        ),
    ),
)

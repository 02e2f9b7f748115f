"""Faults of rows that stay together: weights and windows that look beyond a unit's kept rows."""

from planted import fault

COUNTS = "tests/unit/count/test_count_families.py"
SQL = "sql/encode/families.sql"
ADDS = f"{COUNTS}::test_a_unit_adds_at_most_its_weight_and_changes_no_other"
CODES = f"{COUNTS}::test_all_rows_of_units_are_counted_by_their_weights"

FAULTS = (
    fault(
        "weights of a unit round up",
        ADDS,
        (SQL, "CAST({{ weight }} // n AS BIGINT) AS w", "CAST(({{ weight }} + n - 1) // n AS BIGINT) AS w"),
    ),
    fault(
        "rows of all units have one weight",
        ADDS,
        (SQL, "unit_rows AS (PARTITION BY unit)", "unit_rows AS ()"),
    ),
    fault(
        "the row before is one of another unit",
        CODES,
        (SQL, "            PARTITION BY\n                unit\n            ORDER BY", "            ORDER BY"),
    ),
    fault(
        "weights are those of unbounded rows",
        ADDS,
        (
            "sql/encode/encode.sql",
            "WHERE place <= {{ bound.max_rows }}",
            "WHERE place <= {{ bound.max_rows }} + 1",
        ),
    ),
    fault(
        "discovery counts all rows of a unit, with the noise for one",
        "tests/e2e/test_traces_release.py::test_discovery_counts_one_row_of_a_unit_and_its_noise_hides_one",
        ("dpsyn_sql/front/release.py", "csv=csv, unit=looked)", "csv=csv, unit=unit)"),
    ),
)

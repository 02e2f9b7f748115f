"""Faults of pairs of rows and of classes: rows paired with themselves, other units, and draws that are none."""

from planted import fault

PAIRS = "tests/unit/count/test_count_siblings.py"
DOOR = "tests/unit/measure/test_measure_siblings.py"
CLASSES = "tests/unit/count/test_family_classes.py"
ENCODED = "tests/unit/count/test_encoded_classes.py"
SQL = "sql/count/siblings.sql"
SUMS = "dpsyn_sql/private/count/sums.py"
CHUNKS = f"{PAIRS}::test_a_chunk_may_end_in_a_family_and_have_its_rows_in_any_order"
DRAW = "dpsyn_sql/planning/row_labels.py"
ADDS = f"{PAIRS}::test_a_unit_adds_its_weight_at_most_and_nothing_to_that_of_others"
SHARE = "w // (n - 1)"

FAULTS = (
    fault(
        "a row is a sibling of itself",
        f"{PAIRS}::test_a_row_is_no_sibling_of_itself",
        (SQL, "-sum(v) AS n", "0 AS n"),
    ),
    fault(
        "weights of pairs round up",
        ADDS,
        (SQL, SHARE, "(w + n - 2) // (n - 1)"),
    ),
    fault(
        "pairs of any two rows",
        f"{PAIRS}::test_equal_rows_reach_the_sensitivity",
        (SQL, SHARE, "1048576"),
    ),
    fault(
        "pairs of rows of different units",
        ADDS,
        (SQL, "    GROUP BY\n        u,\n        v", "    GROUP BY\n        v"),
    ),
    fault(
        "a product pairs a row with itself",
        f"{PAIRS}::test_a_row_is_no_sibling_of_itself",
        (SUMS, " - _summed(themselves, sums.shape, weights)", ""),
    ),
    fault(
        "weights of products round up",
        ADDS,
        (SUMS, "rows[2] // (rows[1] - 1)", "(rows[2] + rows[1] - 2) // (rows[1] - 1)"),
    ),
    fault(
        "a product is of rows of different units",
        ADDS,
        (SUMS, "family = np.repeat(np.arange(len(sizes)), sizes)", "family = np.repeat(0 * sizes, sizes)"),
    ),
    fault(
        "the last family of a chunk is forgotten",
        CHUNKS,
        (SUMS, "self._open = rows[:, starts[-1] :] if len(starts) else rows", "pass"),
    ),
    fault(
        "rows of a chunk are taken in their order",
        CHUNKS,
        (SUMS, 'np.argsort(rows[0], kind="stable")', "np.arange(rows.shape[1])"),
    ),
    fault(
        "torn families are counted as several",
        f"{PAIRS}::test_families_that_are_torn_and_wrong_codes_are_refused",
        (SUMS, "np.array_equal(np.repeat(sizes, sizes), rows[1])", "True"),
    ),
    fault(
        "kept codes are in another order",
        f"{PAIRS}::test_families_of_several_chunks_follow_one_another",
        ("sql/encode/codes.sql", "ORDER BY\n    u\n", "ORDER BY\n    p0\n"),
    ),
    fault(
        "parts of kept codes tear units",
        f"{PAIRS}::test_rows_in_parts_are_paired_as_in_one_database",
        (
            "dpsyn_sql/private/count/counter.py",
            "if self._engine.in_parts:  # parts of codes that were kept may be any rows",
            "if False:",
        ),
    ),
    fault(
        "a table that is planned over bins too is counted over its codes for both",
        "tests/unit/count/test_count_counter.py::test_what_is_planned_is_counted_over_its_codes_once",
        (
            "dpsyn_sql/private/count/planner.py",
            "for query in queries if not query.maps)",
            "for query in queries)",
        ),
    ),
    fault(
        "one table of pairs is charged",
        f"{DOOR}::test_a_unit_is_charged_for_its_weight_in_each_table",
        (
            "dpsyn_sql/private/measure/questions/tables.py",
            "marginals_event(len(queries), WEIGHT, budget)",
            "marginals_event(1, WEIGHT, budget)",
        ),
    ),
    fault(
        "pairs are charged as rows",
        f"{DOOR}::test_a_unit_is_charged_for_its_weight_in_each_table",
        (
            "dpsyn_sql/private/measure/questions/tables.py",
            "marginals_event(len(queries), WEIGHT, budget)",
            "marginals_event(len(queries), private_side.rows_per_unit, budget)",
        ),
    ),
    fault(
        "the class looks at rows of other units",
        f"{CLASSES}::test_neither_other_units_nor_the_order_of_rows_have_a_say",
        (DRAW, "sum({row}) AS BIGINT)", "sum(sum({row})) OVER () AS BIGINT)"),
    ),
    fault(
        "classes depend on how many rows there are",
        f"{ENCODED}::test_a_unit_changes_tables_with_its_class_by_its_weight_and_no_other_cell",
        (
            "sql/encode/codes.sql",
            "    FROM kept\n    GROUP BY\n        parent\n",
            "    FROM (SELECT * REPLACE ((p2 + count(*) OVER ()) % 7 AS p2) FROM kept) AS kept\n    GROUP BY\n        parent\n",
        ),
    ),
    fault(
        "the most likely class",
        f"{CLASSES}::test_a_class_that_says_little_does_not_tie_independent_coins",
        (DRAW, " + {draw}", ""),
    ),
    fault(
        "all classes of a unit draw one number",
        f"{CLASSES}::test_a_class_is_drawn_with_its_probability",
        (DRAW, "CAST({first + j} AS BIGINT)", "CAST({first} AS BIGINT)"),
    ),
    fault(
        "sums of classes run into each other",
        f"{CLASSES}::test_sums_of_classes_that_share_a_number_keep_apart",
        (DRAW, "(rows * sum(", "(sum("),
    ),
    fault(
        "of no rows no chunk is read",
        f"{PAIRS}::test_the_statements_of_no_rows_are_those_of_a_row",
        ("dpsyn_sql/engines/counting_engine.py", "max(stop, first + 1), ROW_GROUP", "stop, ROW_GROUP"),
    ),
    fault(
        "costs of a row are added in small numbers",
        f"{CLASSES}::test_the_costs_of_a_row_may_pass_an_integer[4-0.05]",
        (DRAW, 'f"CAST({score} AS BIGINT)"', "str(score)"),
    ),
    fault(
        "sums of a class may overflow",
        f"{CLASSES}::test_many_rows_of_largest_costs_do_not_overflow",
        ("dpsyn_sql/planning/row_labels.py", "rows * most + max", "most + max"),
    ),
)

"""Faults of the scores of families."""

from planted import fault

FAMILIES = "tests/unit/measure/test_measure_families.py"
SMALL = f"{FAMILIES}::test_a_row_changes_no_score_of_a_small_table_by_more_than_its_steps"
EXTREME = f"{FAMILIES}::test_a_row_changes_scores_of_extreme_tables_by_just_as_many_steps"
PRICED = f"{FAMILIES}::test_the_most_dependent_child_is_chosen_at_the_price_of_its_sensitivity"
CLIPPED = f"{FAMILIES}::test_tables_of_more_rows_than_there_can_be_are_scored_and_a_row_more_changes_nothing"
SCORES = "dpsyn_sql/private/measure/scores.py"
QUESTION = "dpsyn_sql/private/measure/questions/choices.py"

FAULTS = (
    fault(
        "sensitivity of R for the exchange of a row and a public number of rows",
        f"{EXTREME}[R-0]",
        (SCORES, '"R": lambda bits: 4', '"R": lambda bits: 3'),
    ),
    fault(
        "sensitivity of F for the exchange of a row and a public number of rows",
        f"{SMALL}[F-0-shape0-8]",
        (SCORES, '"F": lambda bits: 2', '"F": lambda bits: 1'),
    ),
    fault(
        "mutual information itself, whose sensitivity grows with the rows",
        f"{EXTREME}[I-4]",
        (SCORES, "_information(joint, _starts(bits))", "_information(joint, _starts(MOST_BITS))"),
    ),
    fault(
        "slopes of mutual information that fall",
        f"{SMALL}[I-4-shape0-8]",
        (
            SCORES,
            "return int((passed * counts - before[passed]).sum())",
            "return int(_starts(8)[-1] * passed.sum())",
        ),
    ),
    fault(
        "rounding each cell of R by itself",
        f"{FAMILIES}::test_a_row_changes_no_score_of_a_random_table_by_more_than_its_steps[R-0]",
        (SCORES, "return int(apart.sum()) // rows", "return int((-(-apart // rows)).sum())"),
    ),
    fault(
        "sums beyond 64 bits",
        CLIPPED,
        (SCORES, "np.minimum(table, _MOST_ROWS // table.size)", "table"),
    ),
    fault(
        "products of R beyond 64 bits",
        f"{FAMILIES}::test_r_of_many_rows_is_exact_beyond_64_bits",
        (SCORES, "joint if rows < _MOST_EXACT else joint.astype(object)", "joint"),
    ),
    fault(
        "a choice of families at the price of a step for each row",
        f"{PRICED}[R-0-3-gdp]",
        (QUESTION, "STEPS[score](bits) * private_side.rows_per_unit", "private_side.rows_per_unit"),
    ),
    fault(
        "a choice of families at the price of a unit of one row",
        "tests/conformance/test_coupling.py::test_scores_of_families_change_by_no_more_than_is_declared"
        "[informing-1e-09-unit]",
        (QUESTION, "STEPS[score](bits) * private_side.rows_per_unit", "STEPS[score](bits)"),
    ),
    fault(
        "F of a child of three values",
        f"{FAMILIES}::test_what_cannot_be_asked_is_refused_before_the_charge[candidates10-children10-F-0]",
        (QUESTION, "shape[axis] != 2 for", "shape[axis] < 2 for"),
    ),
)

"""Faults of fits whose numbers are far apart, of rows that meet what a fit excludes, or a condition."""

from planted import fault

TESTS = "tests/unit/fit/test_fit_extremes.py"
BELIEF = "dpsyn_sql/fit/belief.py"
ELIMINATION = "tests/unit/fit/test_fit_elimination.py"
WHOLE = f"{ELIMINATION}::test_random_graphs_are_as_brute_force_has_them"

OUTPUT, REDRAWING = "tests/sql/test_output.py", "dpsyn_sql/rows/write/staging.py"
LEVELLED = "dpsyn_sql/fit/elimination.py"
ORDERED = (
    "tests/unit/sample/test_sample_families.py"
    "::test_rows_that_meet_what_the_model_excludes_follow_their_own_moment"
)

FAULTS = (
    fault(
        "a plan says nothing of infinity",
        "tests/unit/planning/test_plan_explain.py::test_a_plan_says_what_becomes_of_infinity[True]",
        ("dpsyn_sql/planning/explain.py", 'item.type.family == "float"', "False"),
    ),
    fault(
        "infinite values of an outer range are not named",
        "tests/unit/report/test_report_losses.py::test_losses_in_words_for_people",
        ("dpsyn_sql/report/loss_words.py", '", also infinite ones"', '""'),
    ),
    fault(
        "rows that meet a condition are replaced as a whole",
        f"{OUTPUT}::test_rows_that_meet_a_condition_are_changed_as_little_as_possible",
        (REDRAWING, "for rest in (other_codes, []):", "for rest in ():"),
        (REDRAWING, "    if len(positions) > 1:\n", "    if False:\n"),
    ),
    fault(
        "rows that meet a condition take NULL from others",
        f"{OUTPUT}::test_rows_that_meet_a_condition_are_changed_as_little_as_possible",
        (REDRAWING, "        if attributes[position].nullable\n", "        if False\n"),
    ),
    fault(
        "a condition names every column whose name is in its text",
        f"{OUTPUT}::test_columns_that_a_condition_names_are_whole_identifiers",
        (
            REDRAWING,
            "    return any(\n        (match",
            "    return column.lower() in text.lower() or any(\n        (match",
        ),
    ),
    fault(
        "rows that meet a condition have no other values within their codes",
        f"{OUTPUT}::test_rows_that_meet_a_condition_are_changed_as_little_as_possible",
        (REDRAWING, "WITHIN = 12", "WITHIN = 0"),
    ),
    fault("rows follow a row before that the model excludes", ORDERED, (LEVELLED, "FAR = 0.1", "FAR = 0.0")),
    fault(
        "the last row of a unit is before none",
        ORDERED,
        (LEVELLED, "np.maximum(alone, frequency.reshape(alone.shape))", "np.maximum(alone, 0 * alone)"),
    ),
    fault(
        "a product takes its shape from its two factors",
        WHOLE,
        (
            BELIEF,
            "    shape = tuple(map(max, first.shape, second.shape)) if result is None else result.shape\n",
            "    shape = tuple(map(max, first.shape, second.shape))\n",
        ),
    ),
    fault(
        "pairs of a tree are independent where there are other trees",
        f"{ELIMINATION}::test_pairs_of_a_second_tree_depend_on_each_other",
        (
            "dpsyn_sql/fit/pairs.py",
            "margins[variable] for variable in needed",
            "margins[variable] for variable in margins",
        ),
    ),
    fault(
        "rows follow their own moment because squares vanish",
        f"{ELIMINATION}::test_a_row_follows_what_it_meets_however_seldom_the_model_does",
        (LEVELLED, "1 / (1 + (far / met_at_all) ** 2)", "reach**2 / np.maximum(reach**2 + far**2, _TINY)"),
    ),
    fault(
        "products may vanish", WHOLE, (BELIEF, "        if sums[index] < _FAINT:\n", "        if False:\n")
    ),
    fault(
        "messages to given variables may vanish",
        WHOLE,
        (BELIEF, "float(upward[index].min()) < _FAINTEST", "float(upward[index].min()) < -1"),
    ),
    fault(
        "potentials of tables in conflict grow without a bound",
        f"{TESTS}::test_tables_that_contradict_each_other_leave_other_columns_as_they_are",
        ("dpsyn_sql/fit/estimate.py", "_FAR, _WALL = 60.0, 0.1", "_FAR, _WALL = 60.0, 0.0"),
    ),
    fault(
        "an overflow is a warning",
        f"{TESTS}::test_arithmetic_that_leaves_float64_is_an_error_with_a_name",
        ("dpsyn_sql/fit/arrays.py", 'over="raise", divide="raise", invalid="raise"', 'over="ignore"'),
    ),
    fault(
        "rows of a node are divided by their sum, however small",
        f"{TESTS}::test_a_node_has_distributions_whatever_its_table_sums_to",
        ("dpsyn_sql/fit/network.py", "rows / np.where(highest > 0, highest, 1.0)", "rows * 1.0"),
    ),
    fault(
        "noise that is never there has the deviation 0",
        "tests/unit/measure/test_measure_calibrate.py"
        "::test_noise_that_is_never_there_has_a_deviation_to_divide_by",
        (
            "dpsyn_sql/private/measure/noise.py",
            "max(math.sqrt(2 * decay) / -math.expm1(-1 / event.scale), _LEAST_DEVIATION)",
            "math.sqrt(2 * decay) / -math.expm1(-1 / event.scale)",
        ),
    ),
)

"""Faults of labels: functions of a row that look elsewhere, or that a replay cannot ask for again."""

from planted import fault

COUPLING = "tests/conformance/test_coupling.py::test_labels_change_tables_by_as_much_as_is_declared"
COUNTS = "tests/unit/count/test_count_labels.py"
DOOR = "tests/unit/measure/test_measure_labels.py"
CHECKS = "dpsyn_sql/planning/row_labels.py"
NAMES = "dpsyn_sql/private/measure/counting.py"
NEAREST = "return Fragment(f\"(LEAST({', '.join(ranks)}) % {self.size})\")"

FAULTS = (
    fault(
        "the label looks at another row",
        f"{COUPLING}[row-exact]",
        (
            CHECKS,
            NEAREST,
            "return Fragment(f\"((LEAST({', '.join(ranks)}) + count(*) OVER ()) % {self.size})\")",
        ),
    ),
    fault(
        "ties of a label go by row order",
        f"{COUNTS}::test_ties_go_to_the_least_class_wherever_the_row_lies",
        (
            CHECKS,
            NEAREST,
            "return Fragment(f\"((LEAST({', '.join(ranks)}) + row_number() OVER () % 2) % {self.size})\")",
        ),
    ),
    fault(
        "parameters in place of the stored question",
        f"{DOOR}::test_a_replay_with_other_parameters_asks_the_same_question",
        (NAMES, "[[label.name, label.size] for label in labels]", "repr(labels)"),
    ),
    fault(
        "a label of a size of its own in a replay",
        f"{DOOR}::test_a_replay_with_another_label_is_another_question[size]",
        (NAMES, "[[label.name, label.size] for label in labels]", "[label.name for label in labels]"),
    ),
    fault(
        "labels are not checked",
        f"{DOOR}::test_a_wrong_label_is_refused_before_the_charge",
        ("dpsyn_sql/private/measure/counting.py", "        check_labels(own, self.domain)\n", ""),
    ),
    fault(
        "bins of a map may be of any class",
        f"{DOOR}::test_the_bins_of_a_map_are_plain_numbers",
        (
            "dpsyn_sql/private/measure/counting.py",
            "type(bins) is tuple and set(map(type, bins)) <= {int} for bins in maps",
            "type(bins) is tuple for bins in maps",
        ),
    ),
    fault(
        "references are those of the caller",
        f"{DOOR}::test_what_a_caller_changes_after_the_check_has_no_say",
        (
            "dpsyn_sql/private/measure/counting.py",
            "copies = [table.copy() for table in references]",
            "copies = list(references)",
        ),
    ),
    fault(
        "sums of a label may overflow",
        f"{COUNTS}::test_what_is_no_plain_function_of_one_row_is_refused[sums beyond BIGINT]",
        (CHECKS, "LARGEST_SUM = 2**62", "LARGEST_SUM = 2**70"),
    ),
    fault(
        "scores of a label are added as 32-bit integers",
        f"{COUNTS}::test_the_largest_scores_that_are_accepted_do_not_overflow",
        (CHECKS, 'f"CAST({offset} AS BIGINT)"', "str(offset)"),
    ),
    fault(
        "labels are read before the rows of a unit are bounded",
        f"{COUNTS}::test_labels_count_the_same_rows_of_a_unit_as_other_marginals",
        (
            "dpsyn_sql/private/rows/kept.py",
            "        return cls(unit.column, unit.max_rows,",
            "        return cls(unit.column, 99,",
        ),
    ),
    fault(
        "a declared date that no text is is not told",
        "tests/e2e/test_csv_types.py::test_a_declared_date_that_no_text_is_names_the_cause",
        (
            "dpsyn_sql/report/complaints.py",
            '(unread(attribute) if null and text else "")',
            '""',
        ),
    ),
    fault(
        "learnt types are blamed for missing values",
        "tests/e2e/test_csv_types.py::test_a_learnt_type_is_not_to_blame_for_missing_values",
        ("dpsyn_sql/front/losses.py", ".difference(fitted.types)", ""),
    ),
)

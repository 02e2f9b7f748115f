"""Faults of rows that a release itself must see, and of the comparison that sees them."""

from planted import fault

CHECK = "dpsyn_sql/report/departures.py"
UNIT = "tests/unit/report/test_report_departures.py"
WHOLE = "tests/e2e/test_self_check.py"
VERDICTS = "tests/unit/report/test_report_verdict.py"
HEALTHY = f"{WHOLE}::test_rows_of_the_model_are_good"
FIGURES = f"{UNIT}::test_the_figures_are_those_of_the_formulas"

FAULTS = (
    fault(
        "a sampler ignores what a column was counted with",
        HEALTHY,
        (
            "dpsyn_sql/rows/sample/graphical.py",
            "return self._balanced_codes(codes, sizes, generator)",
            "return generator.permuted(self._balanced_codes(codes, sizes, generator), axis=0)",
        ),
    ),
    fault(
        "a fit moves one cell",
        HEALTHY,
        (
            "dpsyn_sql/fit/denoise.py",
            "return np.asarray(shares)\n\n\ndef working_bins",
            "return np.asarray(shares) + np.eye(shares.size)[0] * 0.03\n\n\ndef working_bins",
        ),
    ),
    fault(
        "rows that depart are written as if they did not",
        f"{WHOLE}::test_a_column_that_moved_is_told_everywhere",
        ("dpsyn_sql/front/losses.py", "        departures=found,\n", ""),
    ),
    fault(
        "a column that is wrong is written",
        f"{WHOLE}::test_a_column_that_is_wrong_ends_the_call_and_the_same_call_goes_on",
        ("dpsyn_sql/front/losses.py", "if gross is not None:", "if False:"),
    ),
    fault(
        "tables of two columns are not compared",
        f"{WHOLE}::test_a_table_that_was_ignored_is_told",
        (
            "dpsyn_sql/methods/adaptive/method.py",
            "takes_families = keeps_pairs = True",
            "takes_families = True",
        ),
    ),
    fault(
        "rows of a person weigh one each",
        f"{UNIT}::test_weights_bins_and_scale_are_those_of_the_answers",
        (CHECK, "np.bincount(flat, drawn.weights, minlength", "np.bincount(flat, None, minlength"),
    ),
    fault(
        "columns that were looked at once are not compared",
        f"{WHOLE}::test_a_column_that_was_looked_at_once_is_compared_with_what_was_counted",
        ("dpsyn_sql/front/measure.py", "            looks=learnt.looks,\n", ""),
    ),
    fault(
        "noise of one cell stands for that of all cells of a code",
        f"{UNIT}::test_rows_are_compared_with_what_one_look_counted",
        (CHECK, "look.sigma * np.sqrt(look.cells)", "np.full(look.cells.size, look.sigma)"),
    ),
    fault(
        "a curve is blamed for what it smooths",
        f"{UNIT}::test_a_curve_may_smooth_what_one_look_counted",
        (CHECK, "            return LOOK_CELL, LOOK_MOVED\n", "            return CELL, MOVED\n"),
    ),
    fault(
        "rows of a period are compared by what is known of the period before",
        "tests/unit/test_drawn.py::test_what_a_row_keeps_of_the_rows_above_is_its_own_code",
        (
            "dpsyn_sql/rows/sample/tables.py",
            "columns = {name: codes[rows.parent] for name, codes in above.items()} | columns",
            "columns |= {name: codes[rows.parent] for name, codes in above.items()}",
        ),
    ),
    fault(
        "codes that share a cell are each blamed for it",
        "tests/unit/test_looked.py::test_codes_that_share_a_cell_are_judged_together",
        (
            "dpsyn_sql/discovery/one_look.py",
            "first = [least if leader == most else leader for leader in first]",
            "pass",
        ),
    ),
    fault(
        "nothing explains what conditions move",
        f"{UNIT}::test_conditions_may_be_why_columns_go_together_otherwise",
        (CHECK, "    if fitted.shape.never:", "    if False:"),
    ),
    fault(
        "noise that adds up along the rows of a person ends the call",
        f"{UNIT}::test_noise_adds_up_along_rows_that_follow_each_other[60-False]",
        ("dpsyn_sql/planning/families.py", "self.written] if self.previous else ()", "0]"),
    ),
    fault(
        "whatever the noise, rows that follow each other are never wrong",
        f"{UNIT}::test_noise_adds_up_along_rows_that_follow_each_other[30-True]",
        (CHECK, " and departure.moved <= GROSS + along * departure.error", ""),
    ),
    fault(
        "rows that conditions replaced are not told",
        f"{WHOLE}::test_rows_that_conditions_replaced_are_counted_in_certificate_and_summary",
        ("dpsyn_sql/front/publish.py", "departures, replaced)", "departures)"),
    ),
    fault(
        "sampling is no reason to depart",
        FIGURES,
        (
            CHECK,
            "answer.sigma**2 + row**2 * _sampled(expected / row, drawn) + _ROUNDING",
            "answer.sigma**2 + _ROUNDING",
        ),
    ),
    fault(
        "few rows are taken to be laid out as evenly as many",
        f"{UNIT}::test_chance_moves_few_rows_of_many_codes_and_nobody_is_blamed[400-200-True]",
        (CHECK, "np.minimum(number, _FEW)", "0.0"),
    ),
    fault(
        "rows that conditions changed are not compared",
        "tests/unit/test_drawn.py::test_rows_that_were_changed_are_chosen_as_often_as_others",
        (
            "dpsyn_sql/rows/sample/tables.py",
            "bits = f\"hash(xor(CAST(s.{ident('row')} AS UBIGINT), "
            "hash({string_literal(f'compared|{seed}')}))) >> 32\"",
            "bits = f\"s.{ident('row')} * {2**32 // 10_000}\"",
        ),
    ),
    fault(
        "rows of a unit that is gone are those of the next one",
        "tests/sql/test_families.py::test_rows_without_hope_become_like_another_of_their_unit",
        ("dpsyn_sql/rows/sample/tables.py", "parent=self.parent[left]", "parent=self.parent[: left.size]"),
    ),
    fault(
        "rows are blamed for answers that contradict each other",
        f"{UNIT}::test_answers_that_contradict_each_other_blame_nobody",
        (CHECK, " and agree(fitted, bound)", ""),
    ),
    fault(
        "the row before a first row is the last one of another person",
        "tests/unit/sample/test_sample_hidden.py::test_numbers_of_rows_the_row_before_and_places",
        ("dpsyn_sql/rows/sample/tables.py", "before[first] = families.domain[name].size - 1\n", "pass\n"),
    ),
    fault(
        "an error of a pair is larger than its codes have rows",
        "tests/unit/fit/test_fit_variances.py::test_no_error_reaches_beyond_what_the_margins_leave",
        (
            "dpsyn_sql/fit/variances.py",
            "np.minimum(rows + MARGIN * first, columns + MARGIN * second)",
            "np.inf",
        ),
    ),
    fault(
        "a noisy count is said to be off by more rows than there are",
        "tests/unit/report/test_report_public.py::test_no_count_is_further_off_than_all_rows",
        ("dpsyn_sql/report/public/accuracy.py", "min(TWO_SIDED * error, most)", "TWO_SIDED * error"),
    ),
    fault(
        "a pair that was counted over groups is called modelled",
        "tests/unit/report/test_report_marginals.py::test_page_and_table_say_the_same_of_how_a_pair_is_known",
        (
            "dpsyn_sql/report/fitted.py",
            'return "grouped" if counted and len(names) > 1',
            'return "modelled" if counted',
        ),
    ),
    fault(
        "a column whose other values are hidden is called constant",
        f"{VERDICTS}::test_what_is_known_to_be_constant_or_null_is_good",
        ("dpsyn_sql/report/verdict.py", "return beyond <= MISSING", "return True"),
    ),
    fault(
        "discovery takes the rows that it did not find for those of the value that it found",
        "tests/unit/test_one_look.py::test_rows_that_may_have_another_value",
        ("dpsyn_sql/discovery/one_look.py", "max(0.0, rows - explained + error) / rows", "error / rows"),
    ),
    fault(
        "a text whose beginning alone is written is good",
        f"{VERDICTS}::test_what_keeps_only_its_beginning_counts_as_lost",
        ("dpsyn_sql/report/complaints.py", "if short is None or not _exceeds(short, MOVED):", "if True:"),
    ),
    fault(
        "pairs that noise hides count as looked at",
        f"{VERDICTS}::test_pairs_that_were_looked_at_are_not_scolded",
        ("dpsyn_sql/report/verdict.py", "self.seen <= OFF * total", "self.seen <= total"),
    ),
    fault(
        "a pair that was seen to go together and not measured counts as harmless",
        f"{VERDICTS}::test_a_pair_that_was_seen_and_is_independent_all_the_same_is_named",
        (
            "dpsyn_sql/report/verdict.py",
            'given_up = "" if tied else',
            'given_up = "" if tied or all_seen else',
        ),
    ),
    fault(
        "pairs that stand out and are not measured are forgotten",
        "tests/unit/methods/test_methods_adaptive.py"
        "::test_pairs_that_stand_out_are_told_whether_they_are_worth_their_budget_or_not",
        (
            "dpsyn_sql/methods/adaptive/measure.py",
            "round_dispersions.typical, within, clear)",
            "round_dispersions.typical, within)",
        ),
    ),
    fault(
        "luck makes a pair stand out",
        "tests/unit/methods/test_methods_adaptive_select.py"
        "::test_noise_alone_makes_a_pair_clear_once_in_a_thousand_times",
        (
            "dpsyn_sql/methods/adaptive/select.py",
            "part = _LUCK / max(1, len(self.distances))",
            "part = _LUCK",
        ),
    ),
    fault(
        "an epsilon that hardly protects is advised",
        f"{VERDICTS}::test_no_epsilon_above_ten_is_advised",
        ("dpsyn_sql/report/verdict.py", "return self.epsilon < MOST_ADVISED", "return True"),
    ),
    fault(
        "NULL of a column that has none is compared with no code",
        "tests/unit/test_looked.py::test_null_of_a_column_that_has_none_is_counted_with_its_first_code",
        (
            "dpsyn_sql/discovery/one_look.py",
            "        of_cell.append(groups[attribute.fallback_code])",
            "        cells.pop()",
        ),
    ),
    fault(
        "a few rows are judged",
        f"{UNIT}::test_fewer_than_a_hundred_rows_are_not_judged[99-False]",
        (CHECK, "_LEAST_ROWS = 100", "_LEAST_ROWS = 0"),
    ),
)

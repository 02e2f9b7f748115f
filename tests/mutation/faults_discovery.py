"""Faults of discovery."""

from planted import fault

DISCOVERY = "tests/unit/measure/test_measure_discovery.py"
TAILS = "tests/unit/accounting/test_accounting_tails.py"
DISCOVERED = "tests/conformance/test_coupling_discover.py"
KEYS = "dpsyn_sql/private/measure/questions/columns.py"
TAIL = "dpsyn_sql/accounting/tails.py"
ACCOUNT = "dpsyn_sql/accounting/account.py"
UNITS_SQL = "sql/discover/units.sql"

FAULTS = (
    # -- discovery -----------------------------------------------------------------------------------
    fault(
        "threshold of a count of zero",
        f"{TAILS}::test_the_bound_is_above_the_exact_tail_and_close",
        (TAIL, "of_one_key = _tail(Decimal(sigma), steps)", "of_one_key = _tail(Decimal(sigma), steps + 1)"),
    ),
    fault(
        "threshold one too low",
        f"{DISCOVERY}::test_the_threshold_itself_is_shown_and_one_less_is_not",
        (KEYS, "steps >= threshold * event.lattice", "steps >= (threshold - 1) * event.lattice"),
    ),
    fault(
        "one key of a unit charged for all",
        f"{TAILS}::test_the_bound_is_above_the_exact_tail_and_close",
        (TAIL, "1 - (1 - of_one_key) ** keys", "1 - (1 - of_one_key) ** min(keys, 1)"),
    ),
    fault(
        "noise of keys for one key a unit",
        f"{DISCOVERY}::test_the_threshold_is_the_least_whose_delta_fits[1-2]",
        (
            KEYS,
            "noise = gaussian_event(keys_per_unit, share)",
            "noise = gaussian_event(1, share)",
        ),
    ),
    fault(
        "all keys of a unit counted",
        f"{DISCOVERED}::test_many_neighbours_show_the_same[unit-gdp]",
        (UNITS_SQL, "WHERE place <= {{ bound.max_rows }}", "WHERE place <= {{ bound.max_rows }} + 9"),
    ),
    fault(
        "a unit of several parts counted in each of them",
        "tests/sql/test_parts.py::test_discovery[unit]",
        (
            "dpsyn_sql/private/count/trees.py",
            "return None if self._bound is None else self._bound.column",
            "return None",
        ),
    ),
    fault(
        "rows counted instead of units",
        f"{DISCOVERED}::test_many_neighbours_show_the_same[unit-gdp]",
        (UNITS_SQL, "SELECT DISTINCT\n", "SELECT\n"),
    ),
    fault(
        "a unit counted for all its types of text at the charge of one",
        f"{DISCOVERED}::test_a_unit_of_k_different_rows_changes_as_much_as_is_declared[gdp]",
        (
            "dpsyn_sql/private/measure/questions/columns.py",
            'grid_event(counted_per_unit("types", private_side.rows_per_unit), budget)',
            "grid_event(1, budget)",
        ),
    ),
    fault(
        "classes of text without rows are left out",
        f"{DISCOVERY}::test_missing_codes_or_floats_never_reach_the_noise",
        (
            "dpsyn_sql/private/measure/questions/columns.py",
            "check_counts(counts, (len(CLASSES),))",
            "counts = counts[counts > 0]",
        ),
    ),
    fault(
        "a unit counted for several steps at the charge of one",
        f"{DISCOVERED}::test_a_unit_of_k_different_rows_changes_as_much_as_is_declared[gdp]",
        (
            "dpsyn_sql/private/count/discovery.py",
            'self._counted("steps", query.value, kind, step)',
            'self._counted("grid", query.value, kind, step)',
        ),
    ),
    fault(
        "a refined grid is not told from another one",
        f"{DISCOVERY}::test_a_replay_that_asks_something_else_stops",
        (
            "dpsyn_sql/private/measure/questions/columns.py",
            "cuts = digest(repr((grid.kind, grid.labels, grid.edges, grid.other, grid.nullable, *together)))",
            'cuts = digest("")',
        ),
    ),
    fault(
        "what follows a found type gets the whole share again",
        "tests/unit/test_discovery.py::test_the_share_of_a_column_without_a_type_pays_for_the_type_and_what_follows",
        (
            "dpsyn_sql/discovery/designs.py",
            "keys = replace(for_keys, delta=share.delta)",
            "keys = share",
        ),
    ),
    fault(
        "the fit takes values of which nothing was found for NULL",
        "tests/unit/test_one_look.py::test_values_of_which_nothing_is_found_are_no_nulls",
        (
            "dpsyn_sql/discovery/one_look.py",
            "null = _null(float(counts[-1]), sigma, total)\n    rows_of_bins =",
            "null = _null(float(counts[-1]), sigma, total) if pieces else total\n    rows_of_bins =",
        ),
    ),
    fault(
        "NULL grows with the values that are not found",
        "tests/unit/test_one_look.py::test_nulls_stay_as_they_were_counted_where_half_of_the_values_are_not_found",
        (
            "dpsyn_sql/discovery/one_look.py",
            "return min(count, total) if count >",
            "return min(1.5 * count, total) if count >",
        ),
    ),
    fault(
        "pairs are asked of a column whose rows are all written alike",
        "tests/unit/test_one_look.py::test_a_column_without_a_found_value_is_in_no_pair",
        (
            "dpsyn_sql/methods/independent.py",
            "attribute.regular and attribute.written > 1",
            "attribute.regular and attribute.size > 1",
        ),
    ),
    fault(
        "octaves alone between stated bounds",
        "tests/unit/test_one_look.py::test_noise_leaves_sixteen_bins_between_stated_bounds",
        (
            "dpsyn_sql/attributes/grids.py",
            "cuts |= set(equal_cuts(kind, least, most, EQUAL_BINS))",
            "cuts |= set(equal_cuts(kind, least, most, 1))",
        ),
    ),
    fault(
        "a column between stated bounds of which nothing stands out is NULL",
        "tests/unit/test_one_look.py::test_between_stated_bounds_noise_hides_bins_but_not_the_column",
        (
            "dpsyn_sql/discovery/one_look.py",
            "column.most is None or rows <= NULL_SIGMAS * sigma",
            "column.most is None or rows <= 20 * sigma",
        ),
    ),
    fault(
        "a long bin of a large table stays one",
        "tests/unit/test_one_look.py::test_bins_of_a_large_table_end_where_equal_ones_between_stated_bounds_do",
        (
            "dpsyn_sql/discovery/attributes.py",
            "for cut in equal if piece.low < cut < piece.high",
            "for cut in equal if piece.low < cut < piece.low",
        ),
    ),
    fault(
        "stated bounds are blamed for what noise hides",
        "tests/unit/report/test_report_verdict.py::test_noise_is_named_and_not_the_bounds_where_the_range_ends_at_them",
        ("dpsyn_sql/report/verdict.py", "0.0 if _ends_at_bounds(column) else", "0.0 if not column else"),
    ),
    fault(
        "cells that are counted together are summed after units were made distinct",
        "tests/sql/test_discover_statements.py::test_cells_that_are_counted_together_are_one_code[unit]",
        (
            "dpsyn_sql/private/count/discovery.py",
            "            code = value_at(owners, code)\n        code",
            "            again = np.array(owners)\n        code",
        ),
        (
            "dpsyn_sql/private/count/discovery.py",
            'return self._summed(tally, grid.size, step="counting units per cell of a grid")',
            'found = self._summed(tally, grid.size, step="")\n'
            "        return scatter([again], found, (grid.size,)) if query.owners else found",
        ),
    ),
    fault(
        "a value that is alone in a cell counts in the wide cell too",
        "tests/sql/test_discover_statements.py::test_every_value_has_exactly_one_code_of_the_grid_of_one_look",
        (
            "dpsyn_sql/private/count/discovery.py",
            "code = value_at(owners, code)",
            "code = value_at([*range(len(owners))], code)",
        ),
    ),
    fault(
        "a bin that is joined has the code of the bin below it",
        "tests/sql/test_discover_statements.py::test_bins_that_are_joined_have_the_codes_of_comparisons",
        ("dpsyn_sql/attributes/bins.py", ".code + 1, 0)", ".code, 0)"),
    ),
    fault(
        "a replay does not see that other cells were counted together",
        "tests/unit/measure/test_measure_discovery.py::test_a_replay_that_asks_something_else_stops",
        (
            "dpsyn_sql/private/measure/questions/columns.py",
            "(question.owners,) if question.owners else ()",
            "()",
        ),
    ),
    fault(
        "years and terms have no cells of their own",
        "tests/unit/test_one_look.py::test_values_that_many_rows_share_are_written_as_they_are",
        (
            "dpsyn_sql/attributes/grids.py",
            "alone = {number * unit for number in special_numbers(strength)}",
            "alone = {number * unit for number in range(-5, 21)}",
        ),
    ),
    fault(
        "what the mixture misses is left out",
        "tests/unit/test_one_look.py::test_what_the_mixture_misses_by_far_is_a_piece_of_its_own",
        (
            "dpsyn_sql/discovery/one_look.py",
            "return {cell: float(left[cell]) for cell in unexplained}",
            "return {cell: float(left[cell]) for cell in unexplained[:0]}",
        ),
    ),
    fault(
        "values that are no multiples do not refute a step",
        "tests/unit/test_one_look.py::test_the_step_that_fits_or_else_whole_numbers",
        ("dpsyn_sql/discovery/attributes.py", "math.inf if refuted else score", "score"),
    ),
    fault(
        "what the number of units cost is spent again by a small table",
        "tests/unit/test_one_look.py::test_a_small_table_is_asked_once_and_never_for_more_than_the_budget",
        (
            "dpsyn_sql/discovery/designs.py",
            "left_of(budget, [number]).split((part, 1 - part))",
            "left_of(budget, []).split((part, 1 - part))",
        ),
    ),
    fault(
        "what the rows in all cost is spent again on one-way tables",
        "tests/unit/methods/test_methods_adaptive.py::test_a_pure_budget_asks_for_rows_first_and_for_pairs_only_if_they_are_enough",
        (
            "dpsyn_sql/methods/adaptive/method.py",
            "left = None, first.amount + for_pairs.amount",
            "left = None, budget.amount",
        ),
    ),
    fault(
        "columns that are asked about once leave the method more than there is",
        "tests/unit/test_one_look.py::test_a_small_table_is_asked_once_and_never_for_more_than_the_budget",
        (
            "dpsyn_sql/discovery/designs.py",
            "budget.amount - sum(look.budget.amount for look in looks))\n\n\ndef few",
            "budget.amount)\n\n\ndef few",
        ),
    ),
    fault(
        "second looks cost more than was planned for them",
        "tests/unit/test_second_looks.py::test_budget_is_divided_in_proportion_to_the_hidden_rows",
        (
            "dpsyn_sql/discovery/learn.py",
            "math.floor(pool * Fraction(hidden_rows) / every)",
            "math.floor(pool)",
        ),
    ),
    fault(
        "each look has the whole threshold delta of its column",
        "tests/unit/test_second_looks.py::test_columns_where_much_is_hidden_are_asked_again_within_the_plan",
        (
            "dpsyn_sql/discovery/designs.py",
            "again[name] = replace(again[name], delta=later.delta)",
            "again[name] = replace(again[name], delta=2 * share.delta)",
        ),
    ),
    fault(
        "a second look that was asked is given to the method too",
        "tests/unit/test_second_looks.py::test_columns_where_much_is_hidden_are_asked_again_within_the_plan",
        (
            "dpsyn_sql/discovery/learn.py",
            "asked += [one.look for one in questions]",
            'asked += [one.look for one in questions if one.look.ask != "again"]',
        ),
    ),
    fault(
        "keys below the threshold in the transcript",
        f"{DISCOVERY}::test_keys_below_the_threshold_reach_neither_answer_nor_transcript",
        (KEYS, "np.flatnonzero(steps >= threshold * event.lattice)", "np.arange(len(keys))"),
    ),
    fault(
        "delta of a threshold not charged",
        f"{DISCOVERY}::test_beyond_amount_or_delta_nothing_is_counted",
        (ACCOUNT, "cost_units(event, kind), delta_units(event))", "cost_units(event, kind), 0)"),
    ),
    fault(
        "budget of pairs spent on the margins of parts too",
        "tests/unit/methods/test_methods_dpcopula.py::test_a_part_is_a_cell_and_never_a_question_of_its_own",
        (
            "dpsyn_sql/methods/papers/dpcopula.py",
            "    return first, second\n",
            "    return first, budget\n",
        ),
    ),
    fault(
        "a value that a unit brings to the public number is shown too often",
        "tests/conformance/test_coupling_discover.py::test_a_value_of_one_unit_alone_is_what_delta_pays_for",
        (
            "dpsyn_sql/private/measure/questions/columns.py",
            "return event.threshold + least_units(event) - 1",
            "return event.threshold",
        ),
    ),
    fault(
        "noise for values of too few units",
        "tests/unit/measure/test_measure_discovery.py"
        "::test_values_of_too_few_units_are_never_shown_whatever_the_noise[1]",
        (
            "dpsyn_sql/private/measure/questions/columns.py",
            "if len(units) and units.min() < least:",
            "if False:",
        ),
    ),
    fault(
        "values of too few units are read",
        "tests/sql/test_discover_statements.py::test_keys_of_too_few_units_are_not_read[row]",
        ("sql/count/reaching.sql", "WHERE n >= {{ least }}", "WHERE n >= 1"),
    ),
    fault(
        "an error of the codec holds the bytes of a row",
        "tests/unit/engines/test_engines_frames.py::test_bytes_that_are_no_text_are_no_key_and_in_no_error",
        (
            "dpsyn_sql/private/count/discovery.py",
            'text = content.decode("utf-8", "replace")',
            "text = content.decode()",
        ),
    ),
    fault(
        "the class of a value says its text",
        "tests/unit/engines/test_engines_frames.py::test_text_of_a_time_asks_no_zone_of_somebody_else",
        (
            "dpsyn_sql/engines/frames.py",
            "        value = _without_zone(value)\n",
            "        pass\n",
        ),
    ),
    fault(
        "a threshold delta charged for each length of prefixes",
        "tests/unit/test_discovery.py::test_each_length_of_prefixes_is_asked_with_its_part_of_the_share",
        (
            "dpsyn_sql/discovery/designs.py",
            'Look("prefixes", column.name, length_share, length)',
            'Look("prefixes", column.name, replace(length_share, delta=share.delta), length)',
        ),
    ),
    fault(
        "nulls of a column that has none are lost",
        "tests/unit/test_one_look.py::test_nulls_of_a_column_that_has_none_are_in_the_code_of_its_least_value",
        (
            "dpsyn_sql/discovery/one_look.py",
            "if not column.nullable and counts[-1] <= missed * sigma:",
            "if not column.nullable:",
        ),
    ),
    fault(
        "dates of a text file that cannot be read are a column of NULL",
        "tests/unit/report/test_report_verdict.py"
        "::test_dates_of_a_text_file_that_cannot_be_read_are_the_cause[1.0]",
        ("dpsyn_sql/report/verdict.py", "unread_text(column) if text else None", "None"),
    ),
    fault(
        "beginnings of rows beyond other labels are the same question",
        f"{DISCOVERY}::test_a_replay_that_asks_something_else_stops[query8-other8]",
        (KEYS, "repr((known.labels, known.prefixes))", "repr(known.prefixes)"),
    ),
    fault(
        "rows without a known label have no code of their own",
        f"{DISCOVERY}::test_beginnings_of_what_is_no_text_are_refused_before_the_charge[wrong1]",
        (KEYS, " or known.other_code is None", ""),
    ),
)

"""Faults of how rows, units and their rows are drawn."""

from planted import fault

LEVELLED = "tests/unit/fit/test_fit_levelled.py"
SAMPLED = "tests/unit/sample/test_sample_families.py"
CHAINS = "tests/unit/sample/test_sample_chain.py"
STAGED = "tests/sql/test_families.py"
OUTPUT = "dpsyn_sql/attributes/output.py"
TREE = "tests/unit/sample/test_sample_tree.py"
GIVEN = "tests/unit/methods/test_methods_given.py"

POOLS = "tests/unit/sample/test_sample_latent_pool.py"
GRAPHICAL, DISTRIBUTIONS = "dpsyn_sql/rows/sample/graphical.py", "dpsyn_sql/rows/sample/systematic.py"
LAID_OUT, SQL = "tests/unit/sample/test_sample_graphical.py", "dpsyn_sql/rows/sample/sql_text.py"
STATEMENTS, IN_SQL = "tests/sql/test_sample_statements.py", "tests/sql/test_families_persisted.py"

FAULTS = (
    fault(
        "a pool that repeats the error of its first pass",
        f"{POOLS}::test_passes_together_vary_no_more_than_rows_with_normals_of_their_own",
        ("dpsyn_sql/rows/sample/copula.py", "factor = _balancing(factor, normals)", "pass"),
    ),
    fault(
        "passes that all join the same rows",
        f"{POOLS}::test_a_row_of_the_next_pass_is_made_of_eight_rows_with_equal_weights",
        (
            "dpsyn_sql/rows/sample/copula.py",
            "generator.integers(0, self.values.shape[1] // 2, STAGES).tolist()",
            "[0] * STAGES",
        ),
    ),
    fault(
        "low variance through a unit",
        f"{SAMPLED}::test_siblings_are_independent_given_their_unit",
        (
            "dpsyn_sql/rows/sample/systematic.py",
            "keys = groups if ranks is None else groups * (int(ranks.max(initial=0)) + 1) + ranks",
            "keys = groups",
        ),
    ),
    fault(
        "units eliminated before their rows",
        f"{LEVELLED}::test_elimination_of_levels_needs_a_fill_edge_that_a_plain_tree_lacks",
        ("dpsyn_sql/fit/graph.py", "[-level for level in levels]", "[0 for level in levels]"),
    ),
    fault(
        "values of a unit that go backwards within a bin",
        f"{SAMPLED}::test_dates_of_a_unit_never_go_backwards_and_lie_in_their_bins[options1]",
        (
            "dpsyn_sql/rows/sample/ticks.py",
            "floor = np.maximum(before, start)",
            "floor = start",
        ),
    ),
    fault(
        "rows of a unit that gather at the end of a bin",
        f"{SAMPLED}::test_rows_in_one_bin_are_spread_over_it",
        (
            "dpsyn_sql/rows/sample/ticks.py",
            "number = first_part(number, left)",
            "number = number + 0 * left",
        ),
    ),
    fault(
        "rows of a unit that SQL gathers at the end of a bin",
        "tests/sql/test_families_persisted.py::test_rows_in_one_bin_are_spread_over_it",
        ("sql/sample/moments.sql", 'own ORDER BY "row" DESC) AS in_bin', 'own, "row") AS in_bin'),
    ),
    fault(
        "moments of a unit that are not sorted",
        f"{SAMPLED}::test_dates_of_a_unit_never_go_backwards_and_lie_in_their_bins[options1]",
        (
            "dpsyn_sql/rows/sample/walk.py",
            "order = np.lexsort((moments[self._moment], people.owners(numbers)[0]))",
            "order = np.arange(numbers.size)",
        ),
    ),
    fault(
        "moments sorted where they follow each other",
        f"{SAMPLED}::test_moments_follow_the_moment_of_the_row_before_as_in_the_model",
        (
            "dpsyn_sql/methods/models/networks.py",
            "FamilySampler(self.network(), families, self._succession(families))",
            "FamilySampler(self.network(), families)",
        ),
    ),
    fault(
        "moments drawn again that do not follow the row before",
        f"{SAMPLED}::test_moments_that_are_drawn_again_follow_the_row_before",
        (
            "dpsyn_sql/rows/sample/moments.py",
            "later = np.full(units.size, -1), np.flatnonzero(ranks > 0)",
            "later = np.full(units.size, -1), np.zeros(0, np.int64)",
        ),
    ),
    fault(
        "a chain that does not know how many rows follow",
        f"{CHAINS}::test_moments_have_the_product_of_their_factors[4194304-3--1]",
        (
            "dpsyn_sql/rows/sample/moments.py",
            "told = (factors * found[left - 1]) @ follow.T",
            "told = np.ones_like(factors)",
        ),
    ),
    fault(
        "a chain that units of some configurations are not fitted to",
        f"{CHAINS}::test_a_fitted_chain_has_the_planted_steps_and_the_moments_of_every_kind_of_unit[1]",
        ("dpsyn_sql/rows/sample/moments.py", "* _correction(goal[left], singles, rows[left])", ""),
    ),
    fault(
        "a chain that follows a table of noise",
        f"{CHAINS}::test_a_model_whose_rows_go_backwards_has_no_succession[0.15-False]",
        (
            "dpsyn_sql/rows/sample/moments.py",
            "if not whole > 0 or back > MOST_BACK * (whole + back):",
            "if not whole > 0:",
        ),
    ),
    fault(
        "moments of large units that are not there yet when the rounds end",
        f"{CHAINS}::test_a_few_large_units_of_a_nearly_constant_moment_have_it_as_often_as_the_others",
        ("dpsyn_sql/rows/sample/moments.py", "range(_MOST_REFINED)", "range(_REFINED)"),
    ),
    fault(
        "a chain that is judged by what was fitted to all units together",
        f"{CHAINS}::test_a_chain_is_judged_by_the_moments_that_are_drawn",
        ("dpsyn_sql/rows/sample/moments.py", "max(apart, off) / 2", "apart / 2"),
    ),
    fault(
        "a chain that is far from its model",
        f"{CHAINS}::test_nothing_is_fitted_to_units_of_one_row_or_too_many_or_where_no_chain_comes_close",
        ("dpsyn_sql/rows/sample/moments.py", "chain if max(apart, off) / 2 <= MOST_FAR else None", "chain"),
    ),
    fault(
        "moments drawn again that lie before those that stay",
        f"{SAMPLED}::test_moments_that_are_drawn_again_never_go_backwards[False]",
        (
            "dpsyn_sql/rows/sample/walk.py",
            "stays = redrawn[self._moment] < least",
            "stays = redrawn[self._moment] < 0",
        ),
    ),
    fault(
        "moments eliminated with their rows",
        f"{SAMPLED}::test_moments_have_the_distribution_of_the_model_for_every_number_of_rows[False]",
        (
            "dpsyn_sql/planning/families.py",
            "known |= {self.order: MOMENT, **dict.fromkeys(self.persons, UNIT)}",
            "known |= dict.fromkeys(self.persons, UNIT)",
        ),
    ),
    fault(
        "moments numbered as they were drawn by SQL",
        "tests/sql/test_families_persisted.py::test_dates_never_go_backwards[iid]",
        ("sql/sample/moments.sql", 'ORDER BY own, "row"', 'ORDER BY "row"'),
    ),
    fault(
        "rows dealt to units at random",
        f"{STAGED}::test_a_unit_has_one_id_its_rows_lie_together_and_share_its_attributes",
        (OUTPUT, 'if role.numbered == "parent" and self.units.persons:', "if False:"),
    ),
    fault(
        "low variance across the families of a unit",
        f"{TREE}::test_rows_of_one_unit_are_independent_also_across_its_families[2]",
        (
            "dpsyn_sql/rows/sample/tables.py",
            "return ranks if self.before is None else np.asarray(self.before[units] + ranks)",
            "return ranks",
        ),
    ),
    fault(
        "low variance across the families of a unit whose rows have an order",
        f"{TREE}::test_first_rows_of_two_families_of_a_unit_are_independent_where_rows_have_an_order",
        (
            "dpsyn_sql/rows/sample/walk.py",
            "in_unit = None if people.before is None else people.in_unit(owners, rank)",
            "in_unit = None",
        ),
    ),
    fault(
        "pairs of attributes above that are asked about",
        f"{GIVEN}::test_no_question_is_asked_about_attributes_above_alone[gaussian]",
        (
            "dpsyn_sql/methods/independent.py",
            "pairs = [pair for pair in pairs if not set(pair) <= set(above)]",
            "pairs = [pair for pair in pairs if pair]",
        ),
    ),
    fault(
        "the weight of rows above divided among none",
        "tests/unit/fit/test_fit_given.py::test_tables_of_given_rows_weigh_them_and_leave_out_the_childless",
        (
            "dpsyn_sql/fit/given.py",
            "present = self.rows > 0",
            "present = self.rows >= 0",
        ),
    ),
    fault(
        "a family that is left out leaves a hole",
        "tests/sql/test_tree_rows.py::test_rows_without_hope_become_like_another_and_lost_families_leave_no_holes",
        ("dpsyn_sql/rows/write/families.py", "        staging.renumber(left)\n", "        pass\n"),
    ),
    fault(
        "a copied row takes the place of another in the family",
        "tests/sql/test_tree_rows.py::test_rows_without_hope_become_like_another_and_lost_families_leave_no_holes",
        ("sql/write/copied.sql", 's.rank + l."row" - l.donor AS rank', "s.rank AS rank"),
    ),
    fault(
        "places without a jitter",
        f"{LAID_OUT}::test_the_first_lines_of_a_group_together_get_their_rows_within_one[place by place]",
        (DISTRIBUTIONS, "counts - generator.random(counts.size)", "counts"),
    ),
    fault(
        "one order of rows for all columns",
        f"{LAID_OUT}::test_what_two_columns_follow_from_is_all_that_they_have_in_common[place by place]",
        (DISTRIBUTIONS, "order = generator.permutation(groups.size)", "order = np.arange(groups.size)"),
    ),
    fault(
        "places that are counted though they do not ascend",
        f"{SAMPLED}::test_units_share_their_attributes_and_rows_follow_the_model_given_the_unit",
        (DISTRIBUTIONS, "if keys is None and ends.size", "if ends.size"),
    ),
    fault(
        "one-way counts that are left to rounding in each configuration",
        f"{LAID_OUT}::test_rows_meet_the_one_way_counts_of_the_model_within_one_row",
        (GRAPHICAL, "met=not before", "met=True"),
    ),
    fault(
        "rows that are moved towards what the tree says of a pair beside it",
        f"{LAID_OUT}::test_rows_marginals_and_stored_tables_say_the_same_of_a_pair_beside_the_tree[6000-262144]",
        (GRAPHICAL, "{pair: self.beside.get(pair, table) for", "{pair: table for"),
    ),
    fault(
        "the first code of every bin",
        "tests/unit/sample/test_sample_redrawn.py"
        "::test_only_the_target_is_drawn_anew_and_its_codes_keep_their_share_of_a_bin",
        (GRAPHICAL, "drawn_lines(ends, drawn, generator)]", 'np.searchsorted(ends, drawn, side="right")]'),
    ),
    fault(
        "exchanges that give both rows one value",
        f"{LAID_OUT}::test_two_way_counts_come_closer_and_one_way_counts_stay[6000-sizes0]",
        ("dpsyn_sql/rows/sample/moves.py", "= b[best], a[best]", "= b[best], b[best]"),
    ),
    fault(
        "nodes of a script that share their random bits",
        f"{STATEMENTS}::test_independent_rows_pass_a_chi_square_test_of_every_pair[star]",
        (SQL, "{node.label}|{purpose}|", "{purpose}|"),
    ),
    fault(
        "rows of a script that follow their own code before the first one",
        f"{IN_SQL}::test_walks_follow_a_planted_chain",
        (SQL, "(CASE WHEN {place} = 0 THEN {none}", "(CASE WHEN {place} < 0 THEN {none}"),
    ),
    fault(
        "values of a script that go backwards within a bin",
        f"{IN_SQL}::test_dates_never_go_backwards[sample]",
        ("dpsyn_sql/rows/sample/ticks.py", "ELSE greatest({start}, tick) END)", "ELSE {start} END)"),
    ),
    fault(
        "rows of a script that do not follow the rows above",
        "tests/sql/test_tables_persisted.py::test_rows_follow_the_model_given_the_rows_above[items-sample]",
        (SQL, "            if variable in self.network.evidence:\n", "            if False:\n"),
    ),
)

"""Faults of how units and their rows are drawn."""

from planted import fault

LEVELLED = "tests/unit/fit/test_fit_levelled.py"
SAMPLED = "tests/unit/sample/test_sample_families.py"
STAGED = "tests/sql/test_families.py"
OUTPUT = "dpsyn_sql/rows/decode/output.py"

FAULTS = (
    fault(
        "low variance through a unit",
        f"{SAMPLED}::test_siblings_are_independent_given_their_unit",
        (
            "dpsyn_sql/rows/sample/lines.py",
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
            "multiples(before[rest], high[rest], self.step)",
            "multiples(start[rest], high[rest], self.step)",
        ),
    ),
    fault(
        "moments of a unit that are not sorted",
        f"{SAMPLED}::test_dates_of_a_unit_never_go_backwards_and_lie_in_their_bins[options1]",
        (
            "dpsyn_sql/rows/sample/families.py",
            "order = np.lexsort((moments[self._moment], people.owners(numbers)[0]))",
            "order = np.arange(numbers.size)",
        ),
    ),
    fault(
        "moments drawn again that lie before those that stay",
        f"{SAMPLED}::test_moments_that_are_drawn_again_never_go_backwards[False]",
        (
            "dpsyn_sql/rows/sample/families.py",
            "stays = found[self._moment] < least",
            "stays = found[self._moment] < 0",
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
        (OUTPUT, "if isinstance(role, Key) or not shape.together:", "if True:"),
    ),
)

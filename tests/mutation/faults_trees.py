"""Faults of trees and of windows over a unit's rows."""

from planted import fault

TREES = "tests/conformance/test_coupling_trees.py"
TREES_ASKED = "tests/unit/measure/test_measure_trees.py"
TREES_COUNTED = "tests/sql/test_trees.py"
TREE_OF_K = f"{TREES}::test_a_unit_of_k_rows_changes_as_much_as_is_declared"
PRIVTREE = "tests/unit/measure/test_splitters_privtree.py"
IMPROVED = "tests/unit/measure/test_splitters_improved.py"
SPLITTERS = "tests/unit/measure/test_splitters_calibrated.py"
CHOICES = "tests/unit/measure/test_splitters_choice.py"
BY_COUNTS = "tests/unit/measure/test_splitters_counts.py"
NEIGHBOUR_TREES = f"{TREES}::test_many_neighbours_show_the_same"
STEPS = "tests/unit/source/test_source_traces.py"
QUERIES = "tests/unit/source/test_source_query_check.py"
DOOR = "dpsyn_sql/private/measure/curator.py"
EVENTS = "dpsyn_sql/accounting/events.py"
KEYED_SQL = "sql/discover/keyed.sql"
TREE = "dpsyn_sql/private/measure/questions/trees.py"
TREE_LEAVES = "dpsyn_sql/private/measure/questions/trees.py"
TREE_ROWS = "dpsyn_sql/private/count/trees.py"
TREE_NOISE = "dpsyn_sql/private/measure/splitters.py"
TRACES = "dpsyn_sql/source/traces.py"
TRACES_READ = "dpsyn_sql/engines/syntax_tree.py"
TRACES_JUDGED = "dpsyn_sql/source/query_words.py"

FAULTS = (
    # -- trees and leaves ----------------------------------------------------------------------------
    fault(
        "all rows of a unit counted in a tree",
        f"{TREE_OF_K}[basic-gdp]",
        (KEYED_SQL, "WHERE place <= {{ bound.max_rows }}", "WHERE place <= {{ bound.max_rows }} + 9"),
    ),
    fault(
        "a unit of several parts counted in each of them in a tree",
        "tests/sql/test_parts.py::test_trees_read_the_source_once[unit]",
        (
            TREE_ROWS,
            "return None if self._bound is None else self._bound.column",
            "return None",
        ),
    ),
    fault(
        "rows of all units drawn together for a tree",
        f"{TREES_COUNTED}::test_rows_are_counted_once_in_their_leaf[numbers-unit]",
        (
            KEYED_SQL,
            "            PARTITION BY\n                unit\n            ORDER BY\n",
            "            ORDER BY\n",
        ),
    ),
    fault(
        "text of nodes compared by the collation of a session",
        f"{TREES_COUNTED}::test_rows_are_counted_once_in_their_leaf[letters-row]",
        (TREE_ROWS, "return _compared(hierarchies[part], own)", "return own"),
        (TREE_ROWS, '_compared(one, Fragment(f"nodes.n{part}"))', 'Fragment(f"nodes.n{part}")'),
    ),
    fault(
        "a row without a key counted in a node",
        f"{TREES_COUNTED}::test_rows_are_counted_once_in_their_leaf[letters or null-row]",
        (KEYED_SQL, "WHEN missing THEN 2\n", "WHEN missing THEN 1\n"),
    ),
    fault(
        "leaves of a unit of k rows charged for one",
        f"{TREE_OF_K}[privtree-gdp]",
        (TREE_LEAVES, "counts_event(rows_per_unit, rows_per_unit**2, share)", "counts_event(1, 1, share)"),
    ),
    fault(
        "leaves that share rows are counted",
        f"{TREES_ASKED}::test_leaves_that_may_share_rows_are_refused_before_the_charge[within]",
        (TREE_LEAVES, "if not disjoint(question.hierarchies, leaves):", "if not len(leaves):"),
    ),
    fault(
        "a tree of units of k rows charged for one",
        f"{TREE_OF_K}[privtree-pure]",
        (TREE_NOISE, "TreeEvent(scale, rows_per_unit, branching)", "TreeEvent(scale, 1, branching)"),
    ),
    fault(
        "the root of direct synthesis is not charged",
        f"{TREE_OF_K}[direct-gdp]",
        (TREE_NOISE, "levels_event(question.depth + 1, ", "levels_event(question.depth, "),
    ),
    fault(
        "choices of parts are not charged",
        f"{TREES_ASKED}::test_a_tree_of_several_parts_charges_its_tests_and_its_choices[gdp]",
        (
            "dpsyn_sql/private/measure/counting.py",
            "return self.event, *self.further",
            "return (self.event,)",
        ),
    ),
    fault(
        "one choice of parts charged for all levels",
        f"{TREE_OF_K}[improved-gdp]",
        (
            TREE,
            "selection_event(question.depth, rows_per_unit, choices)",
            "selection_event(1, rows_per_unit, choices)",
        ),
    ),
    fault(
        "a level of too many nodes is asked all the same",
        f"{TREES_ASKED}::test_levels_of_too_many_nodes_are_not_asked",
        (
            "dpsyn_sql/attributes/growth.py",
            "refined if max(map(len, self._below)) <= self._most else np.zeros_like(refined)",
            "refined",
        ),
        (
            "dpsyn_sql/attributes/growth.py",
            "if not 0 < len(level) <= self._most:",
            "if not len(level):",
        ),
    ),
    # -- splitters -----------------------------------------------------------------------------------
    fault(
        "a quarter of the decay of PrivTree",
        f"{PRIVTREE}::test_deep_trees_come_close_to_the_bound_and_only_these_constants_keep_it[6.0-2-7]",
        (EVENTS, "Fraction(self.scale) * log_above(self.branching)", "Fraction(self.scale) / 4"),
    ),
    fault(
        "PrivTree charged for two tests",
        f"{SPLITTERS}::test_pure_noise_is_that_of_the_claims[2]",
        (EVENTS, "Fraction(2 * self.branching - 1, self.branching - 1)", "Fraction(2)"),
    ),
    fault(
        "values of PrivTree without their lower end",
        f"{PRIVTREE}::test_a_node_is_split_above_threshold_and_decay",
        (
            "dpsyn_sql/private/measure/splitters.py",
            "np.maximum(counts - self._offset, -self._event.decay)",
            "counts - self._offset",
        ),
    ),
    fault(
        "a discount that forgets the threshold",
        f"{IMPROVED}::test_only_this_discount_keeps_the_bound[6.0-7]",
        (EVENTS, "max(1, threshold + math.ceil(", "max(1, math.ceil("),
    ),
    fault(
        "the improved histogram charged for one test",
        f"{SPLITTERS}::test_pure_noise_is_that_of_the_claims[2]",
        (
            EVENTS,
            "Fraction(2 * self.points_per_unit) / Fraction(self.scale)",
            "Fraction(self.points_per_unit) / Fraction(self.scale)",
        ),
    ),
    fault(
        "levels without a discount",
        f"{IMPROVED}::test_uniform_takes_one_row_after_the_other",
        (
            "dpsyn_sql/private/measure/splitters.py",
            "np.clip(self._above[split] - self._off, 0, sums)",
            "np.clip(self._above[split], 0, sums)",
        ),
    ),
    fault(
        "a discount that does not grow with the level",
        f"{IMPROVED}::test_a_row_more_is_a_row_more_on_one_path_or_none",
        (
            "dpsyn_sql/private/measure/splitters.py",
            "np.maximum(counts - self._depth * self._off, 0)",
            "np.maximum(counts - self._off, 0)",
        ),
    ),
    fault(
        "rows drawn at random from the first counts",
        "tests/unit/measure/test_measure_noise.py::test_rows_are_drawn_without_replacement",
        (
            "dpsyn_sql/private/measure/noise.py",
            "drawn += _RANDOM.sample(range(low, high), high - low - wanted if kept[group] else wanted)",
            "drawn += range(low, high - wanted if kept[group] else low + wanted)",
        ),
    ),
    fault(
        "the part of the largest child is chosen without noise",
        f"{CHOICES}::test_choices_have_the_probabilities_of_the_proof",
        (
            TREE,
            "noise.select(largest[node, parts], event.scale, kind, 1)[0]",
            "int(np.argmax(largest[node, parts]))",
        ),
    ),
    fault(
        "a tree stores its exact counts",
        f"{BY_COUNTS}::test_lattice_noise_comes_back_in_whole_rows",
        (
            "dpsyn_sql/private/measure/splitters.py",
            "return add_noise(self._noise, [counts], self._event)[0]",
            "return counts",
        ),
    ),
    fault(
        "exact counts say which nodes the next level has",
        f"{NEIGHBOUR_TREES}[basic-unit-gdp]",
        (TREE, "refined = tree.refined(found[-1])", "refined = tree.refined(counts)"),
    ),
    fault(
        "rows outside of a hierarchy counted without noise",
        f"{NEIGHBOUR_TREES}[basic-unit-gdp]",
        (
            TREE_LEAVES,
            "return private_side.noisy([np.concatenate((counts, others))], event)",
            "return [np.concatenate((private_side.noisy([counts], event)[0], others))]",
        ),
    ),
    fault(
        "units of a tree merged by a collation",
        f"{TREES_COUNTED}::test_rows_are_counted_once_in_their_leaf[numbers-unit]",
        (
            TREE_ROWS,
            "unit=None if bound is None else unit_bytes(bound.column)",
            "unit=None if bound is None else Fragment(f'\"{bound.column}\"')",
        ),
    ),
    # -- windows over one unit's rows ----------------------------------------------------------------
    fault(
        "partitions of a window merged by a collation",
        f"{STEPS}::test_a_units_result_depends_on_its_own_rows_and_not_on_their_place",
        (TRACES, 'Fragment(f"encode(CAST({ident(unit.name)} AS VARCHAR))")', "ident(unit.name)"),
        (
            TRACES_READ,
            "_bytes_of(partitions[0]) if len(partitions) == 1",
            "partitions[0] if len(partitions) == 1",
        ),
    ),
    fault(
        "ties of a window in the order of the table",
        f"{STEPS}::test_a_units_result_depends_on_its_own_rows_and_not_on_their_place",
        (
            TRACES,
            "for number, tie_break in enumerate(WHOLE_ROW):",
            "for number, tie_break in enumerate('00'):",
        ),
        (TRACES_JUDGED, "if not call.whole and", "if False and"),
    ),
    fault(
        "a column that the whole row leaves out beside a window",
        f"{STEPS}::test_a_column_that_the_whole_row_leaves_out_breaks_no_ties",
        (TRACES_READ, "own = [replace(call, whole=False) for call in own]", "own = list(own)"),
    ),
    fault(
        "a window by any column",
        f"{STEPS}::test_any_other_window_is_refused_and_named",
        (TRACES, "return isinstance(node, exp.Column) and not node.table and", "return True or"),
    ),
    fault(
        "a sum over a window",
        f"{STEPS}::test_any_other_window_is_refused_and_named",
        (TRACES, "WINDOW_FUNCTIONS = ORDERED | BY_PEERS", 'WINDOW_FUNCTIONS = ORDERED | BY_PEERS | {"sum"}'),
    ),
    fault(
        "another column under the name of the unit behind a window",
        f"{STEPS}::test_any_other_window_is_refused_and_named",
        (TRACES_READ, "if names != [name]:", "if not names:"),
    ),
    fault(
        "a name that the database makes is taken for the unit",
        f"{STEPS}::test_a_name_that_the_database_makes_is_no_unit",
        (TRACES_READ, " and _keeps(items, name)", ""),
    ),
    fault(
        "other columns under the names of a relation behind a window",
        f"{STEPS}::test_any_other_window_is_refused_and_named",
        (
            TRACES_READ,
            """or {}).get("node") or {}, known)
            return _NOTHING if found is not None and node.get("column_name_alias") else found
""",
            """or {}).get("node") or {}, known)
            return found
""",
        ),
    ),
    fault(
        "rows of other relations behind a window",
        f"{STEPS}::test_any_other_window_is_refused_and_named",
        (
            TRACES_READ,
            "return None if all(found is None for found in below) else _NOTHING",
            "return next((found for found in below if found is not None), None)",
        ),
        (TRACES_READ, 'if source.get("type") not in ("BASE_TABLE", "SUBQUERY"):', "if not source:"),
    ),
    # -- lists in queries ------------------------------------------------------------------------------
    fault(
        "a cast that tells tied rows apart beside a window",
        f"{STEPS}::test_a_cast_that_tells_tied_rows_apart_is_refused_beside_a_window",
        (TRACES_JUDGED, "if syntax.windows else ()", "if not syntax.windows else ()"),
    ),
    fault(
        "the position of a row read by the printed text",
        f"{QUERIES}::test_the_databases_own_parser_tells_columns_that_no_table_has",
        (TRACES_READ, "if not POSITIONAL_COLUMNS.isdisjoint(names):", "if not names:"),
    ),
    fault(
        "any aggregate over a list",
        f"{QUERIES}::test_an_aggregate_of_a_list_is_judged_by_its_name",
        (TRACES_READ, "if name in NAMING_FUNCTIONS:", "if not name:"),
    ),
    fault(
        "a window in a lambda",
        f"{QUERIES}::test_the_databases_own_parser_is_asked_too",
        (TRACES_READ, '"WINDOW_IN_A_LAMBDA" if any(_of_class("WINDOW", node)) else "LAMBDA"', '"LAMBDA"'),
    ),
)

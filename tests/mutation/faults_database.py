"""Faults of the keys and outputs of tables that are tied."""

from planted import fault

JOINED = "tests/sql/test_database.py"
WHOLE = "tests/sql/test_database_outputs.py"
CERTIFICATE = "tests/unit/report/test_report_certificate.py"
KEYS = "dpsyn_sql/attributes/roles.py"
DECLARED = "tests/unit/test_database_tree.py"
TREE = "dpsyn_sql/planning/tree.py"

ROOT = (
    "tests/unit/sample/test_sample_tree.py"
    "::test_rows_of_the_root_are_moved_towards_pairs_that_its_junction_tree_does_not_hold"
)

FAULTS = (
    fault(
        "rows of the root that nobody moves",
        ROOT,
        (
            "dpsyn_sql/methods/models/networks.py",
            "self.sets, self.balance, deadline",
            "self.sets, False, deadline",
        ),
    ),
    fault(
        "a clock that takes evidence apart from what is written",
        ROOT,
        (
            "dpsyn_sql/methods/models/networks.py",
            "NO_DEADLINE if families is not None and families.below else deadline",
            "deadline",
        ),
    ),
    fault(
        "pairs beside the tree that the root never asks",
        "tests/unit/methods/test_methods_adaptive_beside.py"
        "::test_pairs_beside_the_tree_bring_rows_closer_and_marginals_agree",
        (
            "dpsyn_sql/methods/adaptive/model.py",
            "levels = () if families is None or families.by_themselves else families.levels",
            "levels = () if families is None else families.levels",
        ),
    ),
    fault(
        "rows with another owner alone go without a word",
        "tests/unit/planning/test_explain_tree.py::test_the_tree_says_what_belongs_to_what_and_whom_it_protects",
        (
            "dpsyn_sql/planning/explain.py",
            "return not strict.issuperset(table.foreign_key)",
            "return False",
        ),
    ),
    fault(
        "a measured part of a key is made too",
        f"{DECLARED}::test_parts_of_a_key_that_have_a_domain_are_measured",
        (TREE, "if column not in found and column not in table.measured_key:", "if column not in found:"),
    ),
    fault(
        "a key of measured values alone is stated",
        f"{DECLARED}::test_a_key_that_is_measured_whole_is_none_of_the_copy",
        (TREE, "own = set(table.key) - named - table.measured_key", "own = set(table.key) - named"),
    ),
    fault(
        "a key that may be NULL is stated",
        f"{DECLARED}::test_a_key_with_a_reference_that_may_be_null_is_none_of_the_copy",
        (TREE, " and set(table.key) & other <= set(shape.not_null)", ""),
    ),
    fault(
        "a key that rows below name may be NULL",
        f"{DECLARED}::test_rows_without_a_key_are_left_out_so_a_measured_part_of_it_has_no_null",
        (
            "dpsyn_sql/front/tree.py",
            "never = table.measured_key if _named(table, tree) else frozenset[str]()",
            "never = frozenset[str]()",
        ),
    ),
    fault(
        "rows are named by keys that repeat",
        f"{DECLARED}::test_what_is_no_tree_is_refused",
        (
            "dpsyn_sql/front/tree.py",
            "if not table.measured_key or not _named(table, tree) or tree.has_unique_key(table.name):",
            "if True:",
        ),
    ),
    fault(
        "a measured part of a key is not compared",
        "tests/e2e/test_measured_keys.py::test_the_comparison_has_the_measured_part",
        (
            "dpsyn_sql/evaluation/tables.py",
            "*map(fold, table.tied)} - {*map(fold, table.measured_key)}",
            "*map(fold, (*table.tied, *table.key))}",
        ),
    ),
    fault(
        "a row that names another parent",
        f"{JOINED}::test_random_schemas_join[3]",
        (KEYS, 'return Fragment("parent")', 'return Fragment("rank")'),
    ),
    fault(
        "a self-reference to a later row",
        f"{JOINED}::test_random_schemas_join",
        (KEYS, '{_below(bits, ident("row"))}\'', "{_below(bits, str(ties.rows[self.table]))}'"),
    ),
    fault(
        "a public row of another group",
        f"{JOINED}::test_random_schemas_join",
        (KEYS, "starts = [0, *accumulate(sizes[:-1])]", "starts = [0] * len(sizes)"),
    ),
    fault(
        "groups of public rows are called by each other's names",
        "tests/e2e/test_release_database.py"
        "::test_a_reference_to_public_rows_has_their_groups_and_names_each_of_them",
        ("sql/source/public_labels.sql", "ORDER BY code", "ORDER BY code DESC"),
    ),
    fault(
        "the file of a database is refused as that of a table",
        "tests/e2e/test_suggest.py::test_the_file_of_a_database_is_judged_table_by_table[False]",
        ("dpsyn_sql/front/advice.py", "if is_of_tables(domain):", "if False:"),
    ),
    fault(
        "what a release of a database refuses is not told beside its catalog",
        "tests/e2e/test_suggest.py::test_the_file_of_a_database_is_judged_table_by_table[True]",
        ("dpsyn_sql/front/advice.py", "refused = error.faults or (str(error),)", "refused = ()"),
    ),
    fault(
        "a reference is labelled by its codes",
        f"{CERTIFICATE}::test_what_codes_of_a_reference_are_called_is_told_and_decides_no_answer",
        ("dpsyn_sql/report/labels.py", "attribute.named or attribute.labels", "attribute.labels"),
    ),
    fault(
        "another name of a public row is another question",
        f"{CERTIFICATE}::test_what_codes_of_a_reference_are_called_is_told_and_decides_no_answer",
        ("dpsyn_sql/report/certificate.py", 'if key != "named"}', "if key}"),
    ),
    fault(
        "columns of one name that agree in two tables",
        f"{JOINED}::test_tables_have_nothing_in_common_but_their_ties",
        ("dpsyn_sql/rows/sample/tables.py", 'f"{seed} {table}"', 'f"{seed}"'),
    ),
    fault(
        "a folder whose files appear one after another",
        f"{WHOLE}::test_a_killed_writer_leaves_the_target_as_it_was[folder]",
        (
            "dpsyn_sql/rows/write/outputs.py",
            "place = string_literal(str(made / file.path.name))",
            "file.path.parent.mkdir(exist_ok=True)\n            place = string_literal(str(file.path))",
        ),
    ),
    fault(
        "tables of a release that appear without each other",
        f"{WHOLE}::test_a_failure_leaves_everything_as_it_was[schema-False]",
        (
            "dpsyn_sql/rows/write/outputs.py",
            "        for kept in models:\n            persist(engine, database, kept)",
            "        engine.execute('COMMIT', step=_WRITING)\n"
            "        engine.execute('BEGIN TRANSACTION', step=_WRITING)\n"
            "        for kept in models:\n            persist(engine, database, kept)",
        ),
    ),
    fault(
        "the form of a database takes the top of a tree for the persons",
        "tests/unit/planning/test_database_template.py::test_the_top_of_a_tree_is_not_taken_for_the_persons",
        (
            "dpsyn_sql/planning/template.py",
            "guessed = len(reached) == 1 and (names_persons(reached[0]) or self._units() == reached)",
            "guessed = len(reached) == 1",
        ),
    ),
)

"""Faults of kept rows, codes and counts that a law forbids, for a tree of any shape."""

from planted import fault

LAWS = "tests/laws/test_tree_laws.py"
NOBODY = "tests/laws/test_rows_of_nobody.py"
TREE = "dpsyn_sql/private/encode/tree.py"
COUNTER = "dpsyn_sql/private/count/counter.py"
ENCODE, ROOT, ROWS = "sql/encode/encode.sql", "sql/encode/tree_root.sql", "sql/encode/tree_rows.sql"
TOTAL = f"{LAWS}::test_codes_are_total"
ADDS = f"{LAWS}::test_a_unit_moves_counts_by_its_weight_at_most"
ALONE = f"{LAWS}::test_kept_rows_depend_on_their_unit_alone"
EQUAL = f"{LAWS}::test_units_of_equal_rows_keep_the_same_rows_when_one_leaves"
CHOSEN = f"{LAWS}::test_rows_are_chosen_among_those_of_their_parent"
COUNTS = f"{LAWS}::test_counts_are_those_of_the_kept_rows"

FAULTS = (
    fault(
        "text that no label covers has no code",
        TOTAL,
        (
            "dpsyn_sql/private/encode/codes.py",
            "return f\"COALESCE({', '.join(found)}, {attribute.fallback_code})\"",
            "return f\"COALESCE({', '.join(found)}, {attribute.size})\"",
        ),
    ),
    fault(
        "a unit of a tree weighs twice what is charged",
        ADDS,
        (ROOT, "{{ weight }} AS w", "2 * {{ weight }} AS w"),
    ),
    fault(
        "equal rows of all units are numbered together",
        EQUAL,
        (
            ENCODE,
            "            PARTITION BY\n                unit,\n{% for code in codes %}",
            "            PARTITION BY\n{% for code in codes %}",
        ),
    ),
    fault(
        "equal rows of all parents are numbered together",
        EQUAL,
        (
            "sql/encode/tree_leaves.sql",
            "                met.parent{% if codes %},{% endif %}\n",
            "                0{% if codes %},{% endif %}\n",
        ),
    ),
    fault(
        "the lot of a unit of a tree is its number in the table",
        ALONE,
        (
            ROOT,
            '{{ dialect.lot(["key"], "key", secret) }} AS h',
            "hash(row_number() OVER (ORDER BY key)) AS h",
        ),
    ),
    fault(
        "of the rows of one parent fewer are kept than may be",
        CHOSEN,
        (ROWS, "WHERE place <= {{ most }}", "WHERE place < {{ most }}"),
    ),
    fault(
        "a row without rows below has one",
        COUNTS,
        (TREE, 'f"COALESCE(number{number}.n, 0)"', 'f"COALESCE(number{number}.n, 1)"'),
    ),
    fault(
        "single rows are numbered",
        f"{LAWS}::test_single_rows_are_projected_and_counted",
        (ENCODE, "FROM coded\n{% endif %}", "FROM coded\nQUALIFY row_number() OVER () > 0\n{% endif %}"),
    ),
    fault(
        "the source is encoded anew for each question",
        f"{LAWS}::test_the_source_is_read_once",
        (COUNTER, "        if self._encoding is None:\n", "        if True:\n"),
        (COUNTER, "        if self._encoded:\n            return\n", ""),
    ),
    fault(
        "rows of the root without a key are one unit",
        f"{NOBODY}::test_rows_without_a_key_or_a_parent_are_dropped_with_all_below_them",
        (ROOT, "WHERE key IS NOT NULL", "WHERE TRUE"),
    ),
    fault(
        "rows without a key of a table with rows below are kept",
        f"{NOBODY}::test_rows_without_a_key_or_a_parent_are_dropped_with_all_below_them",
        (ROWS, "WHERE coded.key IS NOT NULL", "WHERE TRUE"),
    ),
    fault(
        "rows without a person are those of one",
        f"{NOBODY}::test_rows_without_a_person_do_not_count_and_empty_text_is_a_person",
        (ENCODE, "WHERE unit IS NOT NULL", "WHERE TRUE"),
    ),
    fault(
        "of a unit that is there twice any row is kept",
        f"{NOBODY}::test_a_key_of_the_root_that_is_there_twice_is_one_unit_of_the_least_codes",
        (ROOT, "{{ code }}{% if not loop.last %}", "{{ code }} DESC{% if not loop.last %}"),
    ),
)

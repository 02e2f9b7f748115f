"""Faults of kept rows, codes and counts that a law forbids, for a tree of any shape."""

from planted import fault

LAWS = "tests/laws/test_tree_laws.py"
NOBODY = "tests/laws/test_rows_of_nobody.py"
KEPT_ROWS = "dpsyn_sql/private/rows/kept.py"
COUNTER = "dpsyn_sql/private/count/counter.py"
ENCODE, KEPT = "sql/encode/encode.sql", "sql/encode/kept.sql"
TOTAL = f"{LAWS}::test_codes_are_total"
ADDS = f"{LAWS}::test_a_unit_moves_counts_by_its_weight_at_most"
ALONE = f"{LAWS}::test_kept_rows_depend_on_their_unit_alone"
EQUAL = f"{LAWS}::test_units_of_equal_rows_keep_the_same_rows_when_one_leaves"
KEYED = f"{LAWS}::test_rows_with_rows_below_are_chosen_by_their_keys"
CHOSEN = f"{LAWS}::test_rows_are_chosen_among_those_of_their_parent"
COUNTS = f"{LAWS}::test_counts_are_those_of_the_kept_rows"

ATTRIBUTE, BINS = "dpsyn_sql/attributes/attribute.py", "dpsyn_sql/attributes/bins.py"
KINDS = "tests/unit/attributes/test_kinds.py"
ROUND = f"{KINDS}::test_a_written_value_has_the_code_that_it_is_written_for"
ENDS = f"{KINDS}::test_codes_ascend_with_values_and_a_missing_value_has_its_own"

FAULTS = (
    fault(
        "NULL has the code of all other values",
        ROUND,
        (ATTRIBUTE, "self.regular + self.other if self.nullable", "self.regular if self.nullable"),
    ),
    fault("NaN is the largest number", ENDS, (ATTRIBUTE, " OR isnan({column})", "")),
    fault(
        "an edge belongs to the bin below it",
        ENDS,
        (BINS, "tick) for tick in ticks[1:-1]]", "tick + 1) for tick in ticks[1:-1]]"),
    ),
    fault(
        "a number is written that rounding took out of its bin",
        ROUND,
        (BINS, "[_previous(kind, piece.high) for", "[piece.high for"),
    ),
    fault(
        "a kind is asked for by what it looks like",
        f"{KINDS}::test_a_roman_numeral_is_a_kind_of_column",
        ("dpsyn_sql/attributes/kinds.py", "form = attribute.form or (", "form = ("),
    ),
    fault(
        "text that no label covers has no code",
        TOTAL,
        (
            "dpsyn_sql/attributes/labels.py",
            "code = f\"COALESCE({', '.join(sought)}, {attribute.fallback_code})\"",
            "code = f\"COALESCE({', '.join(sought)}, {attribute.size})\"",
        ),
    ),
    fault(
        "a unit of a tree weighs twice what is charged",
        ADDS,
        (KEPT_ROWS, '"weight": WEIGHT,', '"weight": 2 * WEIGHT,'),
    ),
    fault(
        "equal rows of all units are numbered together",
        EQUAL,
        (
            KEPT,
            "PARTITION BY counted.parent{% for",
            "PARTITION BY {% if up %}counted.parent{% else %}0{% endif %}{% for",
        ),
    ),
    fault(
        "equal rows of all parents are numbered together",
        EQUAL,
        (
            KEPT,
            "PARTITION BY counted.parent{% for",
            "PARTITION BY {% if up %}0{% else %}counted.parent{% endif %}{% for",
        ),
    ),
    fault(
        "the lot of a unit of a tree is its number in the table",
        ALONE,
        (
            KEPT,
            '{{ lot(["coded.key"], seed, secret) }} AS h',
            '{% if up %}{{ lot(["coded.key"], seed, secret) }}'
            "{% else %}hash(row_number() OVER (ORDER BY coded.key)){% endif %} AS h",
        ),
    ),
    fault(
        "rows that have rows below are drawn by their codes",
        KEYED,
        (
            KEPT,
            '{{ lot(["coded.key"], seed, secret) }}',
            '{{ lot(["coded.p0"], seed, secret) }}',
        ),
        (KEPT, "lot{% if below %}, key{% else %}", "lot{% if below %}{% else %}"),
    ),
    fault(
        "of the rows of one parent fewer are kept than may be",
        CHOSEN,
        (KEPT, "WHERE place <= {{ most }}", "WHERE place < {{ most }}"),
    ),
    fault(
        "a row without rows below has one",
        COUNTS,
        (KEPT_ROWS, 'f"COALESCE(number{number}.n, 0)"', 'f"COALESCE(number{number}.n, 1)"'),
    ),
    fault(
        "single rows are numbered",
        f"{LAWS}::test_single_rows_are_projected_and_counted",
        (ENCODE, "FROM coded", "FROM coded\nQUALIFY row_number() OVER () > 0"),
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
        (
            KEPT,
            "WHERE coded.key IS NOT NULL",
            "WHERE {% if up %}coded.key IS NOT NULL{% else %}TRUE{% endif %}",
        ),
    ),
    fault(
        "rows without a key of a table with rows below are kept",
        f"{NOBODY}::test_rows_without_a_key_or_a_parent_are_dropped_with_all_below_them",
        (
            KEPT,
            "WHERE coded.key IS NOT NULL",
            "WHERE {% if up %}TRUE{% else %}coded.key IS NOT NULL{% endif %}",
        ),
    ),
    fault(
        "rows without a person are those of one",
        f"{NOBODY}::test_rows_without_a_person_do_not_count_and_empty_text_is_a_person",
        (KEPT, "WHERE coded.owner IS NOT NULL", "WHERE TRUE"),
    ),
    fault(
        "of a unit that is there twice any row is kept",
        f"{NOBODY}::test_a_key_of_the_root_that_is_there_twice_is_one_unit_of_the_least_codes",
        (KEPT, "{{ column }}{% if not loop.last %}", "{{ column }} DESC{% if not loop.last %}"),
    ),
)

"""Faults of what is read: sources, codes, units."""

from planted import fault

COUPLING = "tests/conformance/test_coupling.py"
K_EQUAL_ROWS = f"{COUPLING}::test_a_unit_of_k_equal_rows_uses_the_whole_debit[independent-1e-09]"
CLOCK = "tests/unit/methods/test_methods_clock.py::test_the_questions_are_the_same_whatever_the_clock_does"
RELEASE = "dpsyn_sql/front/release.py"
LAST_FIT = "dpsyn_sql/methods/adaptive/model.py"
KEPT = "sql/encode/kept.sql"
ENGINE = "dpsyn_sql/engines/duckdb_engine.py"
CATALOG = "dpsyn_sql/engines/catalog.py"
BUILTIN = "dpsyn_sql/engines/builtin.py"
PATHS = "dpsyn_sql/source/names.py"
HOSTILE = "tests/e2e/test_hostile_catalog.py"
FOLDERS = "dpsyn_sql/common/folders.py"
LEFT_BEHIND = "tests/unit/test_folders.py"
LINKS = "tests/e2e/test_paths_through_links.py"
THREADS = "tests/e2e/test_threads_and_files.py"
COMMITTED = "tests/sql/test_committed.py"
OUTPUTS = "dpsyn_sql/rows/write/outputs.py"

UNIT = "tests/e2e/test_unit_stated.py"

FAULTS = (
    fault(
        "a connection without a table sees nothing",
        "tests/sql/test_attach.py::test_a_file_is_released_where_there_is_no_table",
        ("sql/attach/seen.sql", "coalesce(json_group_array", "nullif(json_group_array"),
    ),
    fault(
        "conditions without columns are no mapping",
        "tests/unit/attributes/test_domain_roles.py::test_conditions_alone_are_told_to_stand_beside_columns",
        ("dpsyn_sql/attributes/document.py", '"never" in document and "columns" not in document', "False"),
    ),
    fault(
        "a name that YAML changed is no text in a database's file",
        "tests/unit/attributes/test_database_file.py::test_each_fault_is_named",
        ("dpsyn_sql/attributes/database_file.py", 'hint = f": {word}" if word else ""', 'hint = ""'),
    ),
    fault(
        "a name that YAML changed is no text in a schedule",
        "tests/unit/schedule/test_schedule_file.py::test_a_column_that_is_called_no_is_to_be_quoted",
        ("dpsyn_sql/schedule/reading.py", 'hint = f": {word}" if word else ""', 'hint = ""'),
    ),
    fault(
        "source left within reach",
        "tests/e2e/test_no_second_access.py::test_a_database_file_is_detached_before_anything_is_sampled",
        (RELEASE, "    job.session.release_source()", "    pass"),
    ),
    fault(
        "the clock stops fits between rounds",
        f"{CLOCK}[runs away]",
        (LAST_FIT, "return last and deadline.over(", "return deadline.over("),
        (LAST_FIT, "deadline.running() if last else nullcontext()", "deadline.running()"),
    ),
    fault(
        "an engine's message passed on",
        "tests/unit/engines/test_engines_duckdb.py::test_failures_carry_no_engine_text",
        (ENGINE, "kind = type(error).__name__", "kind = str(error)"),
    ),
    fault(
        "a view that takes the place of a table is read",
        "tests/unit/engines/test_engines_slices.py::"
        "test_a_callers_table_that_is_replaced_is_noticed[query-a view of its name]",
        (
            "dpsyn_sql/engines/counting_engine.py",
            "in self._defined.items() if self._definition(one) != was",
            "in self._defined.items() if False",
        ),
    ),
    fault(
        "an evaluation does not say what it left out",
        "tests/unit/evaluation/test_evaluation_session.py"
        "::test_what_a_release_excluded_is_left_out_and_named",
        (
            "dpsyn_sql/evaluation/session.py",
            "lacking = [column.name for column in relations",
            "lacking = [column.name for column in () and relations",
        ),
    ),
    fault(
        "an evaluation takes a reference that was left out for a key",
        "tests/unit/evaluation/test_evaluation_database.py"
        "::test_what_a_release_of_a_database_excluded_is_left_out_and_named",
        (
            "dpsyn_sql/evaluation/tables.py",
            "if released.issuperset(map(fold, reference.columns))",
            "if released",
        ),
    ),
    # -- what our SQL would call, or read, instead of what it means ----------------------------------
    fault(
        "registered overloads of built-in functions called",
        f"{HOSTILE}::test_a_registered_overload_of_a_built_in_function_is_refused[least-t]",
        (CATALOG, "changed = changed_builtins(self._function_rows)", "changed: list[str] = []"),
    ),
    fault(
        "built-in functions that were made again called",
        "tests/unit/engines/test_engines_builtin.py"
        "::test_a_function_that_is_made_again_is_younger_than_all_that_duckdb_brings",
        (BUILTIN, " | _made_again(rows))", ")"),
    ),
    fault(
        "another file charged than the one that is meant",
        f"{LINKS}::test_what_is_read_is_what_is_charged[parquet]",
        (PATHS, "os.path.realpath(Path(*components[:after]))", "os.path.normpath(Path(*components[:after]))"),
    ),
    # -- what stays on the disk ------------------------------------------------------------------------
    fault(
        "spilled rows of killed runs left where they are",
        f"{LEFT_BEHIND}::test_the_scratch_of_a_killed_run_is_removed_by_the_next_and_that_of_a_live_one_is_not",
        (FOLDERS, "    _remove_left_behind(parent, prefix)\n    while", "    while"),
    ),
    fault(
        "folders of live runs removed",
        f"{LEFT_BEHIND}::test_folders_of_this_process_and_its_threads_stay",
        (FOLDERS, "                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n", ""),
    ),
    fault(
        "folders of other users removed",
        f"{LEFT_BEHIND}::test_a_folder_of_another_user_stays",
        (FOLDERS, "if os.fstat(lock).st_uid == os.geteuid():", "if os.fstat(lock).st_uid >= 0:"),
    ),
    fault(
        "a prefix that is listed twice doubles rows",
        "tests/sql/test_encode.py::test_text_that_is_not_listed_has_the_code_of_its_longest_prefix"
        "[prefixes2-False--400]",
        (
            "dpsyn_sql/attributes/labels.py",
            "yield _join(attribute.stems(length), f",
            "yield _join(attribute.stems(length) * 2, f",
        ),
    ),
    fault(
        "a row is in every code that begins before it",
        "tests/sql/test_leaves.py::test_codes_of_points_are_those_of_the_last_leaf_that_begins_before[400-False]",
        (
            "dpsyn_sql/sqltext/fragments.py",
            'f"ASOF LEFT JOIN ({numbered})',
            'f"LEFT JOIN ({numbered})',
        ),
    ),
    fault(
        "a row outside of a hierarchy is left out",
        "tests/sql/test_leaves.py::test_codes_of_points_are_those_of_the_last_leaf_that_begins_before[400-False]",
        (
            "dpsyn_sql/sqltext/fragments.py",
            'f"ASOF LEFT JOIN ({numbered})',
            'f"ASOF JOIN ({numbered})',
        ),
    ),
    fault(
        "codes of text follow the collation of the session",
        "tests/sql/test_leaves.py::test_codes_of_text_do_not_depend_on_a_collation[NOCASE-6]",
        (
            "dpsyn_sql/attributes/leaves.py",
            "{text_bytes(key) if hierarchy.text else key} AS",
            "{key} AS",
        ),
        (
            "dpsyn_sql/attributes/leaves.py",
            "str(text_bytes(literal(start))) if hierarchy.text",
            "str(literal(start)) if hierarchy.text",
        ),
    ),
    # -- threads and files --------------------------------------------------------------------------
    fault(
        "a renamed database is read under another ledger",
        f"{THREADS}::test_a_database_that_is_no_longer_at_its_path_is_refused_before_the_debit[t-renamed]",
        (
            "dpsyn_sql/engines/identities.py",
            "    except OSError:\n        return False\n",
            "    except OSError:\n        return True\n",
        ),
    ),
    fault(
        "a replaced database is read under another ledger",
        f"{THREADS}::test_a_database_that_is_no_longer_at_its_path_is_refused_before_the_debit[t-replaced]",
        (
            "dpsyn_sql/engines/identities.py",
            "                return True\n    return False\n",
            "                return True\n    return True\n",
        ),
    ),
    fault(
        "each cursor has a ledger in memory",
        f"{THREADS}::test_cursors_of_a_database_in_memory_share_one_ledger",
        (
            "dpsyn_sql/engines/connections.py",
            "    return names[0] if names else None\n",
            "    return None\n",
        ),
    ),
    fault(
        "threads that begin at once name an instance twice",
        f"{THREADS}::test_threads_that_begin_at_once_have_one_ledger_in_memory",
        (
            "dpsyn_sql/engines/connections.py",
            "    with _marking:\n",
            "    with contextlib.nullcontext():\n",
        ),
    ),
    fault(
        "a busy connection called closed",
        f"{THREADS}::test_a_connection_that_another_thread_uses_is_refused_in_one_sentence",
        (
            "dpsyn_sql/engines/connections.py",
            "            if failure.kind == _BUSY:\n",
            "            if failure.kind == '':\n",
        ),
    ),
    fault(
        "a transaction that was crossed is not tried again",
        f"{COMMITTED}::test_it_is_tried_again_until_the_other_transaction_has_ended",
        (OUTPUTS, "if failure.kind not in CONFLICTS or pause is None:", "if failure.kind or pause is None:"),
    ),
    fault(
        "releases of two threads write at once",
        f"{COMMITTED}::test_releases_of_one_process_write_one_after_another",
        (
            OUTPUTS,
            "            with _one_writer, engine.transaction():\n",
            "            with engine.transaction():\n",
        ),
    ),
    fault(
        "a crossed transaction called a name that has appeared",
        f"{COMMITTED}::test_a_transaction_that_is_crossed_each_time_says_so_and_leaves_nothing",
        (
            OUTPUTS,
            '    if failure.kind in CONFLICTS:\n        raise PublishError(crossed(f"The {shown}',
            '    if not failure.kind:\n        raise PublishError(crossed(f"The {shown}',
        ),
    ),
    # -- the bound on a unit's rows ------------------------------------------------------------------
    fault(
        "a unit torn between parts, each with its own bound",
        "tests/sql/test_parts.py::test_every_marginal_in_one_pass[unit]",
        (
            "dpsyn_sql/private/rows/kept.py",
            "unit = next(iter(table.foreign_key), None)",
            "unit = None",
        ),
    ),
    fault(
        "one row of a unit too many",
        K_EQUAL_ROWS,
        (KEPT, "WHERE place <= {{ most }}", "WHERE place <= {{ most }} + 1"),
    ),
    fault(
        "one bound for all units",
        "tests/statistical/test_units.py::test_one_unit_changes_only_its_own_rows",
        (
            KEPT,
            "            PARTITION BY\n                parent\n            ORDER BY\n",
            "            ORDER BY\n",
        ),
    ),
    fault(
        "a release does not ask whom to protect where a plan says that it would",
        f"{UNIT}::test_a_release_asks_whom_to_protect_and_charges_nothing",
        ("dpsyn_sql/front/prepare.py", "if untold and not explaining:", "if untold and explaining:"),
    ),
    fault(
        "a key of a table of persons asks whom to protect",
        f"{UNIT}::test_what_is_said_or_is_a_key_of_the_table_is_released",
        (
            "dpsyn_sql/attributes/unit.py",
            "return not column.unique and names_a_person(column.name)",
            "return names_a_person(column.name)",
        ),
    ),
    fault(
        "what check calls serious is not told before a release",
        f"{UNIT}::test_what_check_calls_serious_stands_in_the_plan_and_before_a_release",
        ("dpsyn_sql/front/prepare.py", "            for text in serious:", "            for text in ():"),
    ),
    fault(
        "a JSON path of several steps means what the printer takes it for",
        "tests/e2e/test_hostile_queries.py::test_what_can_mix_rows_is_refused_and_the_construct_is_named",
        (
            "dpsyn_sql/source/query_tree.py",
            "and len(node.expressions) != 2:",
            "and len(node.expressions) < 1:",
        ),
    ),
)

"""Faults of charges, the ledger, slices and totals."""

from planted import fault

CURATOR = "tests/unit/measure/test_measure_curator.py"
LEDGER = "tests/unit/ledger/test_ledger_release.py"
DAMAGE = "tests/unit/ledger/test_ledger_damage.py"
DOOR = "dpsyn_sql/private/measure/curator.py"
LOOKUP = "dpsyn_sql/front/ledger_lookup.py"
BOOK = "dpsyn_sql/front/ledger_lookup.py"
ENTRIES = "dpsyn_sql/ledger/entries.py"
TRANSCRIPT = "dpsyn_sql/ledger/questions.py"
ACCOUNTS = "dpsyn_sql/ledger/accounts.py"
APPEAR = "dpsyn_sql/ledger/creation.py"
STORE = "dpsyn_sql/ledger/store.py"
LOCK = "dpsyn_sql/ledger/creation.py"
SIDE = "tests/unit/ledger/test_ledger_side_lock.py"
SQLITE = "dpsyn_sql/ledger/sqlite.py"
NAMES = "tests/e2e/test_one_name_one_account.py"
SLICES = "tests/sql/test_slices.py"
PANELLED = "tests/unit/ledger/test_ledger_panels.py"
SLICE = "dpsyn_sql/private/rows/relations.py"
SLICE_SQL = "sql/encode/slice.sql"
PANELS = "dpsyn_sql/accounting/account.py"
IN_LEDGER = "dpsyn_sql/ledger/ties.py"
RUNNING = "dpsyn_sql/planning/running.py"
TOTALS = "dpsyn_sql/front/totals.py"
TOTALS_PLAN = "tests/unit/planning/test_planning_running.py"
SUMS = (
    "tests/e2e/test_running_totals.py"
    "::test_totals_are_the_sums_of_stored_answers_and_cost_the_budget_once[170-2-tree-4]"
)
BY_SQL = "tests/sql/test_attach.py"
ATTACHED = "dpsyn_sql/front/attach.py"
CALLED_SQL = "sql/attach/answer.sql"
DBT = "tests/unit/test_dbt_model.py"
DBT_MODEL = "dpsyn_sql/front/dbt.py"
SCHEDULED = "tests/e2e/test_schedule_runs.py"
REFUND = """
        entry = self._open(key, budget, new_debit)
        try:
            yield entry
        except BaseException:
            file = self._store._connection
            for (trigger,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                file.execute(f'DROP TRIGGER "{trigger}"')
            file.execute("UPDATE account SET spent_amount = 0")
            file.execute("DELETE FROM entry")
            raise
"""

UNITS = "tests/e2e/test_database_units.py"
ORIGINS = "tests/unit/source/test_source_origins.py"
STOPS = "tests/unit/ledger/test_ledger_stops.py"
STOPPED = "dpsyn_sql/ledger/stops.py"

AFTER = "tests/e2e/test_after_the_debit.py"
STAYS = f"{AFTER}::test_an_error_says_what_stays_and_the_same_call_goes_on"
ENDED = "dpsyn_sql/report/progress_bar.py"

FAULTS = (
    fault(
        "an error after a debit does not say what stays",
        STAYS,
        ("dpsyn_sql/report/progress_bar.py", "return after_debit(error, charge_words)", "return error"),
    ),
    fault(
        "the text of an error of Python is passed on",
        STAYS,
        (
            ENDED,
            'return InternalError(f"{unexpected(error)} {charge_words} {_MENDED}")',
            'return InternalError(f"{error} {charge_words} {_MENDED}")',
        ),
    ),
    fault(
        "an error of Python is chained to ours",
        STAYS,
        ("dpsyn_sql/errors.py", "            error.__cause__ = error.__context__ = None\n", ""),
    ),
    fault(
        "after a debit an error says that nothing was charged",
        STAYS,
        (ENDED, "if isinstance(error, InputError | PrivacyBudgetExceeded):", "if error is None:"),
    ),
    fault(
        "a traceback on the command line",
        f"{AFTER}::test_the_command_shows_no_traceback",
        (
            "dpsyn_sql/cli/main.py",
            "            if _is_end(error):\n                raise\n",
            "            raise\n",
        ),
    ),
    fault(
        "a debit without a record of its ties",
        f"{UNITS}::test_a_view_that_changed_is_no_way_to_go_on_with_another_unit",
        (ENTRIES, "    record_ties(store, account.name, release, key)\n", ""),
    ),
    fault(
        "a view is tied by its own names",
        f"{UNITS}::test_a_view_or_a_query_ties_its_base_table",
        (
            "dpsyn_sql/engines/source_session.py",
            'if self.relation.kind not in ("query", "view"):',
            "if columns:",
        ),
    ),
    fault(
        "a continued debit is not tied",
        f"{UNITS}::test_a_view_that_changed_is_no_way_to_go_on_with_another_unit",
        (ENTRIES, "refuse_other_ties(store, recorded.account.account_id, name, key)", "pass"),
    ),
    fault(
        "a base table of two owners",
        f"{UNITS}::test_one_base_table_of_two_owners_in_one_release_is_refused",
        (
            LOOKUP,
            "if ties.setdefault(source, tie) != tie:",
            "if ties.update({source: tie}):",
        ),
    ),
    fault(
        "the second branch of a UNION has no owner",
        f"{ORIGINS}::test_one_table_of_two_owners_is_refused",
        ("dpsyn_sql/source/origins.py", "return [(name, first | second) for", "return [(name, first) for"),
    ),
    fault(
        "any cast keeps the unit",
        f"{ORIGINS}::test_anything_else_is_like_no_column",
        (
            "dpsyn_sql/source/origins.py",
            "if all(self._types.get(origin) in _WRITTEN_ONE_WAY for origin in below if not _is_away(origin)):",
            "if below:",
        ),
    ),
    fault(
        "a branch whose unit is of a public table has no owner",
        f"{ORIGINS}::test_a_branch_whose_unit_comes_from_elsewhere_is_another_owner",
        (
            "dpsyn_sql/source/origins.py",
            "origins | _away(read - _places([(name, origins)]), here)",
            "origins",
        ),
    ),
    fault(
        "units of a public table are one owner in all queries",
        f"{ORIGINS}::test_units_of_a_public_table_are_those_of_one_query",
        ("dpsyn_sql/engines/identities.py", "= IN_SELECT in text and not trusted", "= trusted"),
    ),
    fault(
        "tables of one name in two schemas are one",
        f"{ORIGINS}::test_a_table_is_told_from_one_of_the_same_name_in_another_schema",
        ("dpsyn_sql/source/origins.py", "label[-len(table) :] == table", "label[-1:] == table[-1:]"),
    ),
    # -- releases that stop ------------------------------------------------------------------------------
    fault(
        "a rest that pays twice",
        f"{STOPS}::test_parts_are_taken_until_nothing_is_left_of_the_oldest_first[file]",
        (STOPPED, 'row["amount"] - row["spent_amount"]', 'row["amount"]'),
    ),
    fault(
        "threshold deltas of a rest that pay twice",
        f"{STOPS}::test_within_a_limit_the_rest_fits_to_the_last_unit[memory]",
        (STOPPED, "min(delta, stop.budget.delta)", "delta"),
    ),
    fault(
        "a release that went on hands on",
        f"{STOPS}::test_a_question_that_was_reserved_before_is_not_handed_on[memory]",
        (STOPPED, 'row["last"] >= json.loads(row["stop"])["after"]', "False"),
    ),
    fault(
        "a question after something was handed on",
        f"{STOPS}::test_a_release_that_handed_something_on_asks_nothing_more[memory-before]",
        (STOPPED, 'if takeover.state == "debited":', 'if takeover.state == "stopped":'),
        (
            "dpsyn_sql/ledger/questions.py",
            "        self.refuse_after_handing_on()\n        if state",
            "        if state",
        ),
    ),
    fault(
        "a rest taken over by a pure release that has a price of its own",
        f"{STOPS}::test_accounts_and_kinds_keep_to_themselves",
        (
            "dpsyn_sql/accounting/account.py",
            "if taken_over is None or budget.kind != self._kind:",
            "if taken_over is None:",
        ),
    ),
    fault(
        "what was handed on not recounted",
        f"{STOPS}::test_a_changed_row_of_what_was_handed_on_is_found_before_anything_is_charged[amount = 0]",
        (
            "dpsyn_sql/ledger/verify.py",
            '        self._same(row, {"event": handed_text(to), "amount": amount, "delta": delta}, "event")\n',
            "",
        ),
    ),
    fault(
        "what stopped is in the way of the next release",
        f"{STOPS}::test_a_stopped_release_is_in_nobodys_way[memory]",
        (ENTRIES, '(row for row in same_name if row["entry_id"] not in stopped)', "iter(same_name)"),
    ),
    fault(
        "a release that was named stops",
        "tests/e2e/test_stopped_release.py::test_who_names_the_method_goes_on_under_the_same_debit",
        ("dpsyn_sql/front/job.py", "method_of(self.request.method).name == DEFAULT\n", "True\n"),
    ),
    fault(
        "a release that went on stops again",
        "tests/e2e/test_stopped_release.py::test_who_names_the_method_goes_on_under_the_same_debit",
        (
            "dpsyn_sql/front/losses.py",
            "        if left is None:\n            return\n",
            "        left = left or table.plan.budget\n",
        ),
    ),
    fault(
        "a release that stops where noise hides everything",
        "tests/unit/planning/test_planning_stopping.py::test_it_stops_where_many_columns_show_nothing_and_pairs_are_not_worth_it",
        ("dpsyn_sql/planning/limits.py", "return clear and len", "return len"),
    ),
    fault(
        "a plan that forgets what learning takes",
        "tests/unit/planning/test_planning_foresight.py::test_what_learning_takes_is_not_there_for_tables",
        ("dpsyn_sql/planning/foresight.py", "float(1 - spends.learning(units, budget))", "1.0"),
    ),
    fault(
        "a plan that takes every table for a large one",
        "tests/unit/planning/test_planning_foresight.py"
        "::test_a_plan_reckons_with_what_discovery_of_a_table_of_so_many_rows_spends[10000-True]",
        (
            "dpsyn_sql/discovery/designs.py",
            "    if few_units(shape, unit, budget, rows):\n        return",
            "    if False:\n        return",
        ),
    ),
    # -- the ledger ------------------------------------------------------------------------------------
    fault(
        "charge after the count",
        f"{CURATOR}::test_an_overdrawn_question_is_not_counted",
        (
            DOOR,
            "            self._entry.charge([(question, handle.parts.events) for question, handle in fresh])\n"
            "            self._count(fresh)\n",
            "            self._count(fresh)\n"
            "            self._entry.charge([(question, handle.parts.events) for question, handle in fresh])\n",
        ),
    ),
    fault(
        "refund on error",
        "tests/e2e/test_no_second_access.py"
        "::test_a_failure_in_the_private_part_keeps_the_debit_and_writes_nothing",
        (SQLITE, "        yield self._open(key, budget, new_debit)\n", REFUND),
    ),
    fault(
        "questions beyond the debit",
        f"{LEDGER}::test_questions_are_charged_within_the_debit",
        (TRANSCRIPT, "if cost.amount > left[0] or cost.delta > left[1]:", "if cost.delta > left[1]:"),
    ),
    fault(
        "limit not looked at",
        f"{LEDGER}::test_a_release_of_what_was_granted_fits_exactly_once",
        (ACCOUNTS, "if not account.balance.admits(cost):", "if account is None:"),
    ),
    fault(
        "sum of an account believed",
        f"{DAMAGE}::test_a_debit_recounts_what_is_spent_and_charges_nothing_if_it_differs[spent_amount - 1]",
        (ACCOUNTS, "    _refuse_other_sum(store, account)\n", ""),
    ),
    fault(
        "threshold deltas not recounted",
        f"{DAMAGE}::test_the_sum_of_an_account_that_became_approximate_is_recounted[spent_delta = 1]",
        (ACCOUNTS, "cost != account.balance.spent:", "cost.amount != account.balance.spent.amount:"),
    ),
    fault(
        "debit in the -wal file alone",
        "tests/e2e/test_ledger_crash.py"
        "::test_after_a_death_the_main_file_alone_holds_the_debit_and_then_the_answers",
        (STORE, '"PRAGMA journal_mode = DELETE"', '"PRAGMA journal_mode = WAL"'),
    ),
    fault(
        "lock beside the ledger taken away",
        f"{SIDE}::test_a_transaction_is_alone_even_when_the_locks_of_sqlite_are_gone[released]",
        (
            LOCK,
            "    descriptor = None if fcntl is None else _waited(lock_of(file), seconds, reading=reading)\n",
            "    descriptor = None\n",
        ),
    ),
    fault(
        "looks at the ledger without the lock",
        f"{SIDE}::test_a_transaction_is_alone_even_when_the_locks_of_sqlite_are_gone[overview]",
        (
            STORE,
            "        with self._alone():\n            return list(",
            "        if True:\n            return list(",
        ),
        (
            STORE,
            "            with self._alone():\n                self._connection.execute(begin)\n",
            "            from contextlib import nullcontext\n\n"
            "            with nullcontext() if begin == 'BEGIN' else self._alone():\n"
            "                self._connection.execute(begin)\n",
        ),
    ),
    fault(
        "lock outlives its process in a forked child",
        f"{SIDE}::test_a_child_that_was_forked_meanwhile_does_not_keep_the_lock",
        (LOCK, "    os.register_at_fork(after_in_child=_forget_in_child)\n", "    pass\n"),
    ),
    fault(
        "backup that was not made called made",
        "tests/unit/ledger/test_ledger_backup.py::test_a_backup_never_overwrites",
        ("dpsyn_sql/ledger/guard.py", "        if not created:\n", "        if created is None:\n"),
    ),
    fault(
        "a new ledger put over one that is there",
        "tests/unit/ledger/test_ledger_store.py"
        "::test_a_file_that_came_to_stand_there_meanwhile_is_not_overwritten[link]",
        (APPEAR, "        os.link(temporary, file)\n", "        temporary.replace(file)\n"),
    ),
    fault(
        "the last answer wins",
        f"{LEDGER}::test_the_first_answer_wins_and_the_loser_uses_it",
        (TRANSCRIPT, 'stored or {**row, "content": content}', '{**row, "content": content}'),
    ),
    fault(
        "one number for the questions of two doors",
        f"{LEDGER}::test_numbers_are_the_entrys_so_that_two_doors_of_a_release_never_answer_one_question",
        (ENTRIES, "number, self._asked = self._asked, self._asked + 1", "number = self._asked"),
    ),
    fault(
        "a replay measures again",
        f"{CURATOR}::test_a_stored_answer_is_replayed_without_counting",
        (DOOR, "            if handle.stored is None:\n", "            if True:\n"),
    ),
    fault(
        "of questions asked together the first is charged",
        f"{CURATOR}::test_questions_asked_together_are_all_charged_before_one_is_counted",
        (
            DOOR,
            "self._entry.charge([(question, handle.parts.events) for question, handle in fresh])",
            "self._entry.charge([(question, handle.parts.events) for question, handle in fresh[:1]])",
        ),
    ),
    fault(
        "what fails together is charged in part",
        f"{CURATOR}::test_of_questions_asked_together_that_cost_too_much_none_is_charged_or_counted",
        (
            "dpsyn_sql/ledger/store.py",
            "            if self._connection.in_transaction:\n                yield\n",
            '            if self._connection.in_transaction:\n                yield\n                self._connection.execute("COMMIT")\n                self._connection.execute(begin)\n',
        ),
    ),
    fault(
        "another letter case is another account",
        f"{NAMES}::test_a_table_created_anew_in_another_case_keeps_its_account",
        (
            "dpsyn_sql/source/names.py",
            "display_name(fold(schema), fold(name))",
            "display_name(schema, name)",
        ),
    ),
    fault(
        "a ledger that was moved is believed",
        f"{NAMES}::test_a_ledger_that_was_moved_is_refused_until_somebody_says_how",
        (
            "dpsyn_sql/ledger/ties.py",
            "actual == recorded:\n        return\n    raise",
            "recorded:\n        return\n    raise",
        ),
    ),
    fault(
        "rows of a result charged as rows of a table",
        f"{NAMES}::test_rows_of_results_do_not_mix_with_rows",
        ("dpsyn_sql/source/relation.py", "return ROW_OF_RESULT if self.relation.multiplies else", "return"),
    ),
    fault(
        "paid twice for one more output",
        f"{NAMES}::test_the_same_settings_to_another_output_are_not_paid_twice",
        (
            ENTRIES,
            "self.elsewhere is not None and not key.named:",
            "self.elsewhere is not None and not key.name:",
        ),
    ),
    fault(
        "an output over the ledger",
        f"{NAMES}::test_an_output_never_overwrites_the_ledger[]",
        (LOOKUP, "        if os.path.realpath(path) in taken:", "        if str(path) in ():"),
    ),
    fault(
        "a window has its end too",
        f"{SLICES}::test_a_window_has_its_start_and_not_its_end_in_every_kind_of_source[TIMESTAMP]",
        (SLICE, 'AND {value} < {end}"', 'AND {value} <= {end}"'),
    ),
    fault(
        "the bound across windows counts rows",
        f"{SLICES}::test_a_row_counts_in_the_first_windows_of_its_unit",
        (SLICE_SQL, "            SELECT DISTINCT\n", "            SELECT\n"),
    ),
    fault(
        "one window more than the bound",
        f"{SLICES}::test_no_unit_counts_in_more_windows_than_the_bound_while_late_rows_arrive",
        (SLICE_SQL, "<= {{ bound.most }}\n", "<= {{ bound.most }} + 1\n"),
    ),
    fault(
        "the bound across windows sees the window alone",
        f"{SLICES}::test_a_row_counts_in_the_first_windows_of_its_unit",
        (SLICE_SQL, "WHERE {{ bound.before }}", "WHERE {{ inside }}"),
    ),
    fault(
        "the bound across windows looks at all units",
        f"{SLICES}::test_a_unit_more_changes_no_row_of_another_unit",
        (SLICE_SQL, "                PARTITION BY\n                    {{ bound.a_unit }}\n", ""),
    ),
    fault(
        "partitions are compared with a collation",
        f"{SLICES}::test_a_partition_has_the_rows_of_one_value[VARCHAR-values0-a-wanted0-a]",
        (
            SLICE,
            'f"{text_bytes(value)} = {text_bytes(literal(wanted))}"',
            'f"{value} = {literal(wanted)}"',
        ),
    ),
    fault(
        "a panel costs its dearest slice",
        f"{PANELLED}::test_the_first_windows_are_charged_and_later_ones_cost_nothing",
        (PANELS, "nlargest(self.most, costs)", "nlargest(1, costs)"),
    ),
    fault(
        "deltas of a panel are those of one slice in any number",
        f"{PANELLED}::test_the_price_is_what_the_unluckiest_unit_can_lose_and_never_falls",
        (
            PANELS,
            "costs: _Costs = (cost.amount, cost.delta, *by_kind)",
            "costs: _Costs = (cost.amount, 0, *by_kind)",
        ),
    ),
    fault(
        "a late window is charged as if in order",
        f"{PANELLED}::test_a_window_released_after_a_later_one_is_charged_in_full_for_units_and_not_for_rows",
        (PANELS, "slot.number >= self.last", "slot.number != self.last"),
    ),
    fault(
        "a calendar may change",
        f"{PANELLED}::test_a_calendar_with_other_edges_is_charged_in_full",
        (PANELS, "        if self.edges[:shared] != slot.edges[:shared]:\n            return False\n", ""),
    ),
    fault(
        "an unfinished window holds up nothing",
        f"{PANELLED}::test_an_unfinished_window_holds_up_the_next_one_of_its_series",
        (ACCOUNTS, "    refuse_unfinished(debited_before, charge.place)\n", ""),
    ),
    fault(
        "a unit without a bound has one",
        f"{PANELLED}::test_without_a_bound_every_window_is_charged",
        (
            IN_LEDGER,
            'if slice_facts is None or slice_facts["most"] is None:\n        return None',
            'if slice_facts is None:\n        return None\n    slice_facts = {**slice_facts, "most": slice_facts["most"] or 1}',
        ),
    ),
    fault(
        "a bound on partitions of units is believed",
        f"{SLICES}::test_a_bound_that_nothing_enforces_is_refused",
        (SLICE, "if unit.column is not None and isinstance(wanted, Partition):", "if unit.max_rows < 0:"),
    ),
    fault(
        "another time zone makes no other panel",
        "tests/e2e/test_sliced_release.py::test_another_time_zone_makes_other_windows",
        (BOOK, "if conventions and sliced.slice.most is not None:", "if sliced.slice.most == 0:"),
    ),
    # -- running totals ----------------------------------------------------------------------------
    fault(
        "every node has the whole share of its level",
        f"{TOTALS_PLAN}::test_no_unit_costs_more_than_the_budget_and_some_unit_costs_all_that_is_charged",
        (RUNNING, "share.amount // level.charged", "share.amount // 1"),
    ),
    fault(
        "a unit counts in too few nodes of a level",
        f"{TOTALS_PLAN}::test_no_unit_costs_more_than_the_budget_and_some_unit_costs_all_that_is_charged",
        (RUNNING, "return Level(span, nodes, min(self.windows, nodes)", "return Level(span, nodes, 1"),
    ),
    fault(
        "the noise of long nodes is for the rows of one window",
        SUMS,
        (TOTALS, "domain, source.unit.max_rows)", "domain, _total(job).running.rows)"),
    ),
    fault(
        "a running total states the epsilon of one node",
        SUMS,
        ("dpsyn_sql/front/publish.py", "claim_of(series.whole,", "claim_of(series.budget,"),
    ),
    fault(
        "missing periods are left out, and measured after later ones",
        SUMS,
        (TOTALS, "missing = tuple(range(period + 1,", "missing = tuple(range(_total(job).period,"),
    ),
    # -- releases by SQL ---------------------------------------------------------------------------
    fault(
        "a query is charged for every release that it names",
        f"{BY_SQL}::test_a_query_is_charged_for_one_release_at_most_and_the_next_query_goes_on",
        ("dpsyn_sql/front/attach.py", "        if self._charged:\n", "        if not name:\n"),
    ),
    fault(
        "the function behind the macro can be called",
        f"{BY_SQL}::test_the_function_behind_the_macro_is_no_way_around",
        (ATTACHED, "if function in call.text.lower():", "if function in ():"),
    ),
    fault(
        "what a query finds makes a call",
        f"{BY_SQL}::test_a_call_per_row_is_refused_before_anything_is_charged"
        "[FROM dpsyn_release((SELECT max(name) FROM numbers))]",
        (CALLED_SQL, "FROM repeat(\n            json_object(", "FROM (\n            SELECT json_object("),
        (
            CALLED_SQL,
            "            ),\n            1\n        ) AS called",
            "            )\n        ) AS called",
        ),
    ),
    fault(
        "an empty build of dbt is charged",
        f"{DBT}::test_an_empty_build_charges_nothing_and_tells_public_columns",
        (
            DBT_MODEL,
            'if call["empty"]:\n            return {"columns": _columns(_shape_of(job, call))}',
            'if not call:\n            return {"columns": _columns(_shape_of(job, call))}',
        ),
    ),
    fault(
        "dbt clean deletes a ledger",
        f"{DBT}::test_a_ledger_that_would_be_deleted_is_refused[target-name: p]",
        (DBT_MODEL, "if ledger.is_relative_to(folder):", "if not folder:"),
    ),
    fault(
        "a schedule forgets the limit of a year",
        f"{SCHEDULED}::test_a_yearly_limit_stops_a_series_until_the_next_year",
        (
            "dpsyn_sql/schedule/running.py",
            "_over_limit(schedule, item, items, now)\n        if",
            '"", None\n        if',
        ),
    ),
)

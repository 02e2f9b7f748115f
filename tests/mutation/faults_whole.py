"""Faults of a whole release of tables that are tied: budgets, events, seeds and rows of another table."""

from planted import fault

MEASURE = "dpsyn_sql/front/measure.py"
PUBLISH = "dpsyn_sql/front/publish.py"
RELEASE = "dpsyn_sql/front/release.py"
DOOR = "tests/e2e/test_database_door.py"
LEDGER = "tests/e2e/test_database_ledger.py"
EVENTS = f"{DOOR}::test_each_event_is_of_one_table_and_counts_what_a_unit_weighs"
REACH = f"{DOOR}::test_after_the_last_question_the_source_is_out_of_reach"

FAULTS = (
    fault(
        "questions about rows of a family are of no table",
        EVENTS,
        (
            MEASURE,
            "with self._of(table), self._counter(plan, families, rows, siblings=True):",
            "with self._counter(plan, families, rows, siblings=True):",
        ),
    ),
    fault(
        "a table has the events of all tables before it",
        EVENTS,
        (MEASURE, "+= range(before, self.door.events)", "+= range(self.door.events)"),
    ),
    fault(
        "a certificate has the first events of the release",
        EVENTS,
        (
            PUBLISH,
            "[events[place] for place in one.table.events]",
            "[*events[: len(one.table.events)]]",
        ),
    ),
    fault(
        "a table of a tree has the noise for one row",
        EVENTS,
        (
            MEASURE,
            "self.door.open(counter, plan.domain, plan.source.unit.sensitivity)",
            "self.door.open(counter, plan.domain, 1)",
        ),
    ),
    fault(
        "questions about rows of a family take nothing from the rest",
        EVENTS,
        (MEASURE, "return _more(rest, unspent.amount)", "return budget"),
    ),
    fault(
        "discovery takes nothing from the rest",
        f"{DOOR}::test_discovery_counts_one_row_of_a_unit_in_every_table",
        (MEASURE, "_more(table.rest, learnt.unspent)", "table.plan.budget"),
    ),
    fault(
        "the tables are written while the source is within reach",
        REACH,
        (RELEASE, "job.session.release_source()  #", "pass  #"),
    ),
    fault(
        "questions may follow the last one",
        REACH,
        (RELEASE, "entry.close_questions()", "pass"),
    ),
    fault(
        "tables are drawn from one seed",
        f"{DOOR}::test_places_in_bins_are_drawn_for_each_table_by_itself",
        (PUBLISH, "table_seed(seed, one.name)", "seed"),
    ),
    fault(
        "rows below are told from rows of the units",
        f"{DOOR}::test_rows_below_follow_the_rows_right_above_them",
        (
            PUBLISH,
            "above = None if leg.table.parent is None else rows[leg.table.parent]",
            "above = None if leg.table.parent is None else rows[ready[0].name]",
        ),
    ),
    fault(
        "a table is no source of its release",
        f"{LEDGER}::test_another_unit_of_a_table_is_refused",
        (
            "dpsyn_sql/engines/database_session.py",
            "stores = tuple(dict.fromkeys(table for one in sessions for table in one.tables))",
            "stores = sessions[0].tables",
        ),
    ),
    fault(
        "a replay reads the rows again",
        f"{LEDGER}::test_the_same_call_replays_byte_for_byte_whatever_the_data_are_now",
        (
            "dpsyn_sql/private/encode/tree.py",
            "            self._kept[table.name] = made\n",
            "            self._kept[table.name] = made\n        self.keep()\n",
        ),
    ),
)

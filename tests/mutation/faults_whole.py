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
            "with self._of(table), self._opened(table, families.domain, rows):",
            "with self._opened(table, families.domain, rows):",
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
            "tuple(events[place] for place in table.events)",
            "events[: len(table.events)]",
        ),
    ),
    fault(
        "a table of a tree has the noise for one row",
        EVENTS,
        (
            MEASURE,
            "self.door.open(opening, domain, table.source.unit.sensitivity)",
            "self.door.open(opening, domain, 1)",
        ),
    ),
    fault(
        "questions about rows of a family take nothing from the rest",
        EVENTS,
        (MEASURE, "return replace(rest, amount=rest.amount + unspent.amount)", "return budget"),
    ),
    fault(
        "discovery takes nothing from the rest",
        f"{DOOR}::test_discovery_counts_one_row_of_a_unit_in_every_table",
        (MEASURE, "left_of(table.plan.budget, learnt.asked)", "table.plan.budget"),
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
        (PUBLISH, "table_seed(self.seed, table.name) if job.request.several else self.seed", "self.seed"),
    ),
    fault(
        "rows below are told from rows of the units",
        f"{DOOR}::test_rows_below_follow_the_rows_right_above_them",
        (
            PUBLISH,
            "above=None if parent is None else self._rows[parent]",
            "above=None if parent is None else next(iter(self._rows.values()))",
        ),
    ),
    fault(
        "a table is no source of its release",
        f"{LEDGER}::test_another_unit_of_a_table_is_refused",
        (
            "dpsyn_sql/engines/source_session.py",
            "return _all(source.private_sources(home) for source in self.private.values())",
            "return self.first.private_sources(home)",
        ),
    ),
    fault(
        "a replay reads the rows again",
        f"{LEDGER}::test_the_same_call_replays_byte_for_byte_whatever_the_data_are_now",
        (
            "dpsyn_sql/private/rows/kept.py",
            "            self._tables[table.name] = made\n",
            "            self._tables[table.name] = made\n        self.keep()\n",
        ),
    ),
)

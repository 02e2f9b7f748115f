"""Faults of panels: joins that reach another unit, and budgets that are not divided."""

from planted import fault

CODES = "tests/sql/test_panel_codes.py"
BRUTE = f"{CODES}::test_the_joined_rows_are_those_of_a_brute_force"
ONE = f"{CODES}::test_a_unit_has_one_row_and_changes_no_other"
SQL = "sql/encode/panel.sql"
PLAN = "dpsyn_sql/planning/panel.py"
PLANNED = "tests/unit/planning/test_planning_panel.py"
SERIES = "dpsyn_sql/schedule/calendar.py"
RUNNING = "tests/e2e/test_panel_schedules.py"

SAMPLED = "tests/unit/sample/test_sample_families.py::test_what_a_person_keeps_decides_what_follows_from_it"
KEEPS = "tests/e2e/test_panels.py::test_who_stays_keeps_what_is_of_one_value_per_person"
NEVER = "tests/e2e/test_panels.py::test_no_row_meets_a_condition_of_what_its_person_keeps"

FAULTS = (
    fault(
        "who stays gets another value of what it keeps",
        KEEPS,
        (
            "dpsyn_sql/attributes/output.py",
            "CASE WHEN stays THEN {kept[name]}",
            "CASE WHEN FALSE THEN {kept[name]}",
        ),
    ),
    fault(
        "conditions are checked without what a person keeps",
        NEVER,
        (
            "dpsyn_sql/front/panels.py",
            "    if output.shape.never:\n        parents",
            "    if False:\n        parents",
        ),
    ),
    fault(
        "rows of persons who stay get other values until their codes alone meet no condition",
        NEVER,
        ("dpsyn_sql/attributes/output.py", "first, bits, kept.columns)", "first, bits)"),
    ),
    fault(
        "what a person keeps is drawn all the same",
        SAMPLED,
        (
            "dpsyn_sql/rows/sample/walk.py",
            "np.where(retained < 0, columns[variable], retained)",
            "np.where(retained < 0, columns[variable], columns[variable])",
        ),
    ),
    fault(
        "what follows from what a person keeps may be drawn before it",
        SAMPLED,
        (
            "dpsyn_sql/planning/families.py",
            "known |= dict.fromkeys(self.kept, MOMENT)",
            "known |= dict.fromkeys(self.kept, ROW)",
        ),
    ),
    fault(
        "the period before is that of another unit",
        ONE,
        (SQL, "        ON present.parent = past.parent", "        ON present.parent <= past.parent"),
    ),
    fault(
        "units that leave are forgotten",
        BRUTE,
        (SQL, "{% if everybody %}FULL{% else %}LEFT{% endif %}", "LEFT"),
    ),
    fault(
        "several rows of a unit count in a period",
        ONE,
        ("dpsyn_sql/private/rows/relations.py", "Bound(unit, 1, key)", "Bound(unit, 2, key)"),
    ),
    fault(
        "who joins has no code of absence",
        BRUTE,
        ("dpsyn_sql/private/rows/relations.py", "{attribute.size - 1}) AS", "{attribute.size - 2}) AS"),
    ),
    fault(
        "each period may spend the whole budget",
        f"{PLANNED}::test_periods_have_equal_parts_of_the_budget",
        (
            PLAN,
            "        return Budget(self.whole.kind, self.whole.amount // self.periods, delta)",
            "        return Budget(self.whole.kind, self.whole.amount, delta)",
        ),
    ),
    fault(
        "thresholds are paid in each period",
        f"{PLANNED}::test_periods_have_equal_parts_of_the_budget",
        (PLAN, "delta = 0 if self.follows else self.whole.delta", "delta = self.whole.delta"),
    ),
    fault(
        "a schedule takes a period of a panel for a release of its own budget",
        "tests/unit/schedule/test_schedule_panels.py::test_a_period_costs_its_part",
        (SERIES, "part = self.total(period) or self._panel_at(period)", "part = self.total(period)"),
    ),
    fault(
        "a schedule goes on after a period of a panel that failed",
        f"{RUNNING}::test_a_month_whose_month_before_failed_is_not_tried",
        (
            SERIES,
            "return self.divided or self.windows_per_unit is not None",
            "return self.cumulative or self.windows_per_unit is not None",
        ),
    ),
    fault(
        "a schedule goes on after a period of a panel that a limit refused",
        f"{RUNNING}::test_a_yearly_limit_that_refuses_a_month_ends_the_panel_too",
        (
            "dpsyn_sql/schedule/running.py",
            "if outcome.result == REFUSED and item.releases.divided:",
            "if outcome.result == REFUSED and item.releases.cumulative:",
        ),
    ),
)

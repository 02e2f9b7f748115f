"""A pytest plugin that plants one named fault in the package before the tests are collected.

    DPSYN_FAULT=name PYTHONPATH=tests/mutation pytest -p planted_faults tests/...

Each fault is one a careless change could make. ``KILLED_BY`` names the test that must fail.
"""

import dataclasses
import math
import os

import numpy as np

from dpsyn_sql.accounting import events
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.count import counter
from dpsyn_sql.engines import source_session
from dpsyn_sql.fit import copula
from dpsyn_sql.ledger import entries
from dpsyn_sql.measure import calibrate, curator, noise

KILLED_BY = {
    "sensitivity halved": "tests/unit/measure/test_measure_curator.py::test_several_rows_a_unit_scale_the_sensitivity",
    "square root forgotten": "tests/unit/measure/test_measure_calibrate.py::test_gaussian_scale_fits_its_share_by_both_accountants",
    "variance used for sigma": "tests/unit/measure/test_measure_noise.py::test_chi_square_against_the_exact_probabilities",
    "score sensitivity halved": "tests/unit/measure/test_measure_select.py::test_scale_and_cost",
    "repeated marginals counted once": "tests/unit/measure/test_measure_curator.py::test_a_repeated_marginal_counts_each_time",
    "empty cells skipped": "tests/unit/measure/test_measure_curator.py::test_missing_cells_or_floats_never_reach_the_noise",
    "true number of rows used": "tests/e2e/test_e2e_release.py::test_a_total_below_zero_writes_an_empty_table",
    "domain from the rows": "tests/e2e/test_no_second_access.py::test_plan_reads_nothing_and_charges_nothing",
    "refund on error": "tests/e2e/test_no_second_access.py::test_a_failure_in_the_private_part_keeps_the_debit_and_writes_nothing",
    "seeded noise": "tests/unit/measure/test_measure_noise.py::test_there_is_no_seed",
    "charged after counting": "tests/unit/measure/test_measure_curator.py::test_an_overdrawn_question_is_not_counted",
    "source left within reach": "tests/e2e/test_no_second_access.py::test_a_database_file_is_detached_before_anything_is_sampled",
    "costs rounded down": "tests/unit/accounting/test_accounting_budget.py::test_costs_round_up_and_add_up",
}


def _sensitivity_halved():
    original = calibrate.marginals_event
    curator.marginals_event = lambda tables, rows, share: original(tables, max(1, rows // 2), share)


def _square_root_forgotten():
    """The scale of one table used for all m: the L2 sensitivity forgotten."""
    original = calibrate._gaussian

    def forgetful(l2_squared, share):
        return dataclasses.replace(original(1, share), l2_squared=l2_squared)

    calibrate._gaussian = forgetful


def _variance_used_for_sigma():
    original = noise.gaussian_mechanism
    noise.gaussian_mechanism = lambda sigma: original(math.sqrt(sigma))


def _score_sensitivity_halved():
    original = calibrate.selection_event

    def halved(rows, share):
        event = original(rows, share)
        return dataclasses.replace(event, scale=event.scale / 2)

    calibrate.selection_event = curator.selection_event = halved


def _repeated_marginals_counted_once():
    original = curator.LocalCurator.measure

    def once(self, queries, budget):
        distinct = list(dict.fromkeys(queries))
        tables = dict(zip(distinct, original(self, distinct, budget), strict=True))
        return [tables[query] for query in queries]

    curator.LocalCurator.measure = once


def _empty_cells_skipped():
    curator.LocalCurator._check_shapes = lambda self, queries, counts: None


def _true_number_of_rows_used():
    """The model's total taken from the exact counts, as if n were public."""
    exact = {}
    count = counter.SqlCounter.count

    def counted(self, queries):
        tables = count(self, queries)
        exact["rows"] = float(tables[0].sum())
        return tables

    counter.SqlCounter.count = counted
    fitted = copula.CopulaModel
    fitted.total = property(lambda self: exact["rows"], lambda self, value: None)


def _domain_from_the_rows():
    resolve = source_session._resolve

    def learning(engine, *rest):
        session = resolve(engine, *rest)
        if session is not None:
            engine.fetch(f"SELECT 1 AS one FROM {session.relation.sql} GROUP BY ALL", step="learning")
        return session

    source_session._resolve = learning


def _refund_on_error():
    charge = entries.SqliteEntry.charge

    def refunding(self, event):
        charge(self, event)
        self._store._connection.execute("DROP TRIGGER IF EXISTS entry_delete")
        for (name,) in self._store._connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            self._store._connection.execute(f'DROP TRIGGER "{name}"')
        self._store._connection.execute("PRAGMA foreign_keys = OFF")
        self._store._connection.execute("DELETE FROM entry")

    entries.SqliteEntry.charge = refunding


def _seeded_noise():
    def seeded(values, scale):
        return values + np.random.default_rng(7).normal(0, scale, len(values)).round().astype(np.int64)

    noise.OpenDPNoise.gaussian = lambda self, values, sigma: seeded(values, sigma)


def _charged_after_counting():
    def late(self, question, event, ask):
        sequence, self._asked = self._asked, self._asked + 1
        stored = self._entry.stored(sequence, question)
        if stored is not None:
            return stored
        answer = ask()
        self._entry.charge(event)
        return self._entry.store(sequence, question, answer)

    curator.LocalCurator._answer = late


def _source_left_within_reach():
    source_session.SourceSession.release_source = lambda self: None


def _costs_rounded_down():
    events.cost_units = lambda event, kind: math.floor(event.cost(kind) * 10**15)
    for module in (calibrate, events):
        module.cost_units = events.cost_units


def pytest_configure(config):
    fault = os.environ.get("DPSYN_FAULT")
    if fault:
        assert fault in KILLED_BY, fault
        assert Budget("zcdp", 1).amount == 1
        globals()["_" + fault.replace(" ", "_")]()

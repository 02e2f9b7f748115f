"""Faults that would break the privacy claim, how each is planted, and the test that kills it.

An edit replaces a text that occurs once in a file of the package. The files are not touched: the
changed text is loaded in their place, in a process of its own (see ``planting.py``).
"""

from dataclasses import dataclass

COUPLING = "tests/conformance/test_coupling.py"
K_EQUAL_ROWS = f"{COUPLING}::test_a_unit_of_k_equal_rows_uses_the_whole_debit[independent-1e-09]"
K_EQUAL_ROWS_PURE = f"{COUPLING}::test_a_unit_of_k_equal_rows_uses_the_whole_debit[independent-0]"
SCORES = f"{COUPLING}::test_a_score_changes_by_as_much_as_is_declared[1e-09]"
RESIDUALS = (
    "tests/statistical/test_residuals.py::test_residuals_have_the_ledgered_variance_and_nothing_in_common"
)
FRESH_NOISE = "tests/statistical/test_residuals.py::test_two_releases_of_one_table_share_no_noise"
CLOCK = "tests/unit/methods/test_methods_clock.py::test_the_questions_are_the_same_whatever_the_clock_does"
CURATOR = "tests/unit/measure/test_measure_curator.py"
CALIBRATE = "tests/unit/measure/test_measure_calibrate.py"
LEDGER = "tests/unit/ledger/test_ledger_release.py"
DAMAGE = "tests/unit/ledger/test_ledger_damage.py"
SECOND_ACCESS = (
    "tests/e2e/test_no_second_access.py::test_rows_are_read_between_debit_and_closing_only"
    "[connection-independent]"
)


@dataclass(frozen=True)
class Fault:
    """``edits``: (file below the repository, text that occurs once, what stands there instead)."""

    name: str
    killed_by: str
    edits: tuple[tuple[str, str, str], ...]


def fault(name, killed_by, *edits):
    return Fault(name, killed_by, edits)


DISCOVERY = "tests/unit/measure/test_measure_discovery.py"
DELTA = "tests/unit/accounting/test_accounting_delta.py"
EXACT = "tests/unit/accounting/test_accounting_gdp.py"
TAILS = "tests/unit/accounting/test_accounting_tails.py"
DISCOVERED = "tests/conformance/test_coupling_discover.py"

GDP_PRICES = "tests/unit/accounting/test_gdp_prices.py"
GDP_CHOICES = (
    "tests/unit/measure/test_measure_select.py::test_a_gdp_account_gets_the_mechanism_of_a_bounded_range"
)

NOISE = "dpsyn_sql/measure/noise.py"
SCALE = "dpsyn_sql/measure/calibrate.py"
DOOR = "dpsyn_sql/measure/curator.py"
COUNTS = "dpsyn_sql/measure/counting.py"
MARGINALS = "dpsyn_sql/measure/questions/marginals.py"
DISTANCES = "dpsyn_sql/measure/questions/distances.py"
RESIDUAL = "dpsyn_sql/measure/questions/residuals.py"
RESIDUAL_TESTS = "tests/unit/measure/test_measure_residuals.py"
CHOICE = "dpsyn_sql/measure/questions/choice.py"
KEYS = "dpsyn_sql/measure/questions/keys.py"
EVENTS = "dpsyn_sql/accounting/events.py"
ZCDP = "dpsyn_sql/accounting/zcdp.py"
GDP = "dpsyn_sql/accounting/gdp.py"
LOSS = "dpsyn_sql/accounting/pld.py"
RELEASE = "dpsyn_sql/pipeline.py"
PREPARATION = "dpsyn_sql/preparation.py"
BOOK = "dpsyn_sql/book.py"
CERTIFICATE = "dpsyn_sql/report/certificate.py"
LAST_FIT = "dpsyn_sql/methods/adaptive/known.py"
ROUNDS = "dpsyn_sql/methods/adaptive/rounds.py"
ENCODE = "sql/encode/encode.sql"
ENTRIES = "dpsyn_sql/ledger/entries.py"
TRANSCRIPT = "dpsyn_sql/ledger/questions.py"
ACCOUNTS = "dpsyn_sql/ledger/accounts.py"
APPEAR = "dpsyn_sql/ledger/appear.py"
SQLITE = "dpsyn_sql/ledger/sqlite.py"
NAMES = "tests/e2e/test_one_name_one_account.py"
ENGINE = "dpsyn_sql/engines/duckdb_engine.py"
CATALOG = "dpsyn_sql/engines/catalog.py"
BUILTIN = "dpsyn_sql/engines/builtin.py"
PATHS = "dpsyn_sql/source/paths.py"
HOSTILE = "tests/e2e/test_hostile_catalog.py"
FOLDERS = "dpsyn_sql/folders.py"
LEFT_BEHIND = "tests/unit/test_folders.py"
LINKS = "tests/e2e/test_paths_through_links.py"

SLICES = "tests/sql/test_slices.py"
PANELLED = "tests/unit/ledger/test_ledger_panels.py"
SLICE = "dpsyn_sql/encode/slices.py"
SLICE_SQL = "sql/encode/slice.sql"
PANELS = "dpsyn_sql/accounting/panels.py"
IN_LEDGER = "dpsyn_sql/ledger/panels.py"

RUNNING = "dpsyn_sql/planning/running.py"
TOTALS = "dpsyn_sql/totals.py"
TOTALS_PLAN = "tests/unit/planning/test_planning_running.py"
SUMS = (
    "tests/e2e/test_running_totals.py"
    "::test_totals_are_the_sums_of_stored_answers_and_cost_the_budget_once[170-2-tree-4]"
)
BY_SQL = "tests/sql/test_attach.py"
ATTACHED = "dpsyn_sql/attached.py"
CALLED_SQL = "sql/attach/answer.sql"
DBT = "tests/unit/test_dbt_model.py"
DBT_MODEL = "dpsyn_sql/dbt_model.py"
SCHEDULED = "tests/e2e/test_schedule_runs.py"

BUDGET = "dpsyn_sql/accounting/budget.py"
TAIL = "dpsyn_sql/accounting/tails.py"
ACCOUNT = "dpsyn_sql/accounting/account.py"
UNITS_SQL = "sql/discover/units.sql"

DRAW_GAUSSIAN = "return _invoke(gaussian_mechanism(sigma), values)"
DRAW_LAPLACE = "return _invoke(laplace_mechanism(scale), values)"
GAUSSIAN_SCALE = "sigma = math.sqrt(l2_squared / (2 * float(share.fraction)) + smoothing)"
SECOND_OPINION_GAUSSIAN = " and rho <= share.fraction"
SECOND_OPINION_SELECTION = " and map_cost <= share.fraction"
CLOSE = "    entry.close_questions()\n"
COUNT_ROWS = (
    '    true = int(job.session.engine.fetch(f"SELECT count(*) AS n FROM {job.plan.source.relation.sql}",'
    ' step="counting rows")["n"][0])\n'
)
PLAN = "    plan, rest = _planned(method, source, shape, budget, terms, total)\n"
LABELS_SEEN = """
    from dataclasses import replace

    def seen(attribute):
        sql = f'SELECT DISTINCT CAST("{attribute.name}" AS VARCHAR) AS v FROM {source.relation.sql}'
        found = {str(value) for value in session.engine.fetch(sql, step="looking for labels")["v"]}
        return replace(attribute, labels=tuple(one for one in attribute.labels if str(one) in found))

    narrowed = [seen(one) if getattr(one, "labels", ()) else one for one in shape.measured]
    shape = replace(shape, measured=tuple(narrowed))
"""
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

FAULTS = (
    # -- exact Gaussian accounting ------------------------------------------------------------------
    fault(
        "loss distribution of whole counts for noise on sixteenths",
        "tests/unit/accounting/test_gdp_pld.py"
        "::test_the_distribution_of_a_certificate_is_that_of_the_noise_on_its_lattice",
        (LOSS, "event.sigma * event.lattice, sensitivity=event.lattice", "event.sigma, sensitivity=1"),
    ),
    fault(
        "keys compared after rounding",
        f"{DISCOVERY}::test_a_key_one_sixteenth_below_the_threshold_is_not_rounded_up_to_it",
        (
            KEYS,
            "np.flatnonzero(steps >= threshold * event.lattice)",
            "np.flatnonzero(whole_rows(steps, event.lattice) >= threshold)",
        ),
    ),
    fault(
        "permute-and-flip in a GDP account",
        GDP_CHOICES,
        (NOISE, 'dp.max_divergence() if kind == "pure" else', 'dp.max_divergence() if kind != "zcdp" else'),
    ),
    fault(
        "pure release of a GDP account priced by zCDP",
        f"{GDP_PRICES}::test_a_pure_release_costs_no_less_than_its_parts_wherever_they_fall",
        (ACCOUNT, "math.ceil(pure_cost(budget.fraction) * RHO_UNITS)", "math.ceil(budget.rho * RHO_UNITS)"),
    ),
    # -- sensitivities and scales, wrong in noise and ledger alike ------------------------------
    fault(
        "sensitivity halved",
        K_EQUAL_ROWS,
        (MARGINALS, "tables * rows_per_unit**2, share)", "tables * rows_per_unit**2 // 4, share)"),
    ),
    fault(
        "rows of a unit not squared",
        K_EQUAL_ROWS,
        (MARGINALS, "tables * rows_per_unit**2, share)", "tables * rows_per_unit, share)"),
    ),
    fault(
        "Laplace noise for the L2 sensitivity",
        K_EQUAL_ROWS_PURE,
        (MARGINALS, "counts_event(tables * rows_per_unit,", "counts_event(int(tables**0.5) * rows_per_unit,"),
    ),
    fault(
        "sqrt(2) forgotten",
        K_EQUAL_ROWS,
        (GDP, "Fraction(l2_squared) / (2 * smooth)", "Fraction(l2_squared) / (4 * smooth)"),
        (EVENTS, "(2 * Fraction(self.sigma) ** 2)", "(4 * Fraction(self.sigma) ** 2)"),
        (SCALE, GAUSSIAN_SCALE, GAUSSIAN_SCALE.replace("2 * float", "4 * float")),
        (SCALE, SECOND_OPINION_GAUSSIAN, ""),
    ),
    fault(
        "residuals charged as the whole table, in rows",
        f"{RESIDUAL_TESTS}::test_a_row_changes_residuals_by_exactly_the_declared_length",
        (
            RESIDUAL,
            "math.prod(size * (size - 1) for size in shape)",
            "math.prod((size - 1) ** 2 for size in shape)",
        ),
    ),
    fault(
        "rows of a unit not squared in residuals",
        f"{RESIDUAL_TESTS}::test_a_unit_changes_residuals_by_at_most_the_declared_length_and_equal_rows_attain_it",
        (RESIDUAL, "one_row * rows_per_unit**2", "one_row * rows_per_unit"),
    ),
    fault(
        "several residuals charged as the largest",
        f"{RESIDUAL_TESTS}::test_several_tables_and_repeated_ones_add_up",
        (RESIDUAL, "one_row = sum(", "one_row = max("),
    ),
    fault(
        "repeated residuals charged once",
        f"{RESIDUAL_TESTS}::test_several_tables_and_repeated_ones_add_up",
        (
            RESIDUAL,
            "shapes = tuple(query.shape(counts.domain) for query in queries)",
            "shapes = tuple(query.shape(counts.domain) for query in set(queries))",
        ),
    ),
    fault(
        "residuals that overflow",
        f"{RESIDUAL_TESTS}::test_counts_that_no_database_holds_do_not_overflow",
        (
            RESIDUAL,
            "= np.minimum(counts, _LARGEST // math.prod(2 * size for size in counts.shape))",
            "= counts",
        ),
    ),
    fault(
        "several distances charged as one",
        "tests/unit/measure/test_measure_distance.py::test_distances_are_l1_and_charged_together",
        (DISTANCES, "distances * rows_per_unit**2, share)", "rows_per_unit**2, share)"),
    ),
    fault(
        "score sensitivity halved",
        SCORES,
        (
            CHOICE,
            "    price = float(share.fraction) / number\n",
            "    price, rows_per_unit = float(share.fraction) / number, (rows_per_unit + 1) // 2\n",
        ),
    ),
    fault(
        "several choices charged as one",
        SCORES,
        (EVENTS, "return self.number * (epsilon", "return 1 * (epsilon"),
        (CHOICE, "    price = float(share.fraction) / number\n", "    price = float(share.fraction)\n"),
        (CHOICE, SECOND_OPINION_SELECTION, ""),
    ),
    fault(
        "Gumbel noise of half its scale",
        "tests/unit/measure/test_measure_select.py::test_several_choices_are_peeled_one_after_the_other[2-zcdp]",
        (
            NOISE,
            "selection_mechanism(scale, kind, number), scores",
            "selection_mechanism(scale / 2, kind, number), scores",
        ),
    ),
    fault(
        "scores taken for monotonic ones",
        SCORES,
        (EVENTS, "Fraction(2 * self.sensitivity)", "Fraction(self.sensitivity)"),
        (CHOICE, "2 * rows_per_unit / epsilon", "rows_per_unit / epsilon"),
        (CHOICE, SECOND_OPINION_SELECTION, ""),
    ),
    fault(
        "sigma^2 for sigma",
        f"{CALIBRATE}::test_gaussian_scale_fits_its_share_by_both_accountants",
        (SCALE, GAUSSIAN_SCALE, "sigma = l2_squared / (2 * float(share.fraction)) + smoothing"),
    ),
    fault(
        "repeated marginals charged once",
        f"{CURATOR}::test_a_repeated_marginal_counts_each_time",
        (
            MARGINALS,
            "event = marginals_event(len(queries),",
            "event = marginals_event(len(set(queries)),",
        ),
    ),
    fault(
        "rho rounded up",
        "tests/unit/accounting/test_accounting_zcdp.py::test_the_rho_is_within_and_the_next_is_not",
        (ZCDP, "    return low\n", "    return high\n"),
    ),
    fault(
        "mu^2 / 2 rounded up",
        f"{EXACT}::test_the_amount_is_within_and_the_next_is_not",
        (GDP, "    while fits(near + 1):\n        near += 1\n    return near\n", "    return near + 1\n"),
    ),
    fault(
        "nothing kept for the lattice",
        f"{EXACT}::test_the_amount_is_within_and_the_next_is_not",
        (GDP, "_KEPT = Fraction(1, 10**9)", "_KEPT = Fraction(0)"),
    ),
    fault(
        "noise on a lattice priced as if it were continuous",
        f"{EXACT}::test_gaussian_noise_is_priced_by_what_smoothing_leaves_of_its_variance",
        (
            GDP,
            "smooth = Fraction(sigma) ** 2 - Fraction(SMOOTHING, lattice**2)",
            "smooth = Fraction(sigma) ** 2",
        ),
    ),
    fault(
        "a choice priced as in zCDP",
        f"{EXACT}::test_a_choice_costs_the_worst_place_of_its_range",
        (GDP, "    return pure_cost(eta / 2)\n", "    return eta**2 / 8\n"),
    ),
    fault(
        "noise of a row on counts in sixteenths",
        "tests/unit/measure/test_measure_noise.py::test_counts_get_sixteenths_and_come_back_in_rows",
        (NOISE, "noise.gaussian(steps, event.sigma * event.lattice)", "noise.gaussian(steps, event.sigma)"),
    ),
    fault(
        "costs rounded down",
        "tests/unit/accounting/test_accounting_budget.py::test_costs_round_up_and_add_up",
        (EVENTS, "math.ceil(event.cost(kind) * RHO_UNITS)", "math.floor(event.cost(kind) * RHO_UNITS)"),
    ),
    fault(
        "conversion at the whole of delta",
        f"{DELTA}::test_what_thresholds_leave_of_delta_pays_for_the_conversion",
        (
            BUDGET,
            "bought(exact_epsilon, conversion)",
            "bought(exact_epsilon, exact_delta)",
        ),
    ),
    fault(
        "shares of delta rounded up",
        f"{DELTA}::test_the_shares_are_at_most_delta_and_lose_less_than_a_unit",
        (
            BUDGET,
            "int(delta * THRESHOLD_SHARE * DELTA_UNITS)",
            "math.ceil(delta * THRESHOLD_SHARE * DELTA_UNITS)",
        ),
        (BUDGET, "> delta:", "> delta + 1:"),
    ),
    fault(
        "a stated delta below the charged one",
        f"{DELTA}::test_the_text_of_a_stated_delta_is_not_below_it",
        (BUDGET, "stated if exact_number", "stated if True or exact_number"),
    ),
    # -- noise that is not what was charged ------------------------------------------------------
    fault(
        "sigma taken for a variance",
        f"{RESIDUALS}[gaussian]",
        (NOISE, DRAW_GAUSSIAN, "return _invoke(gaussian_mechanism(sigma**0.5), values)"),
    ),
    fault(
        "noise of half the scale",
        f"{RESIDUALS}[laplace]",
        (NOISE, DRAW_LAPLACE, "return _invoke(laplace_mechanism(scale / 2), values)"),
    ),
    fault("no noise", f"{RESIDUALS}[laplace]", (NOISE, DRAW_LAPLACE, "return values")),
    fault(
        "one draw for all cells",
        f"{RESIDUALS}[gaussian]",
        (NOISE, DRAW_GAUSSIAN, "return values + _invoke(gaussian_mechanism(sigma), values[:1] * 0)"),
    ),
    fault(
        "seeded noise",
        f"{FRESH_NOISE}[1e-09]",
        (
            NOISE,
            DRAW_GAUSSIAN,
            "return values + np.rint(np.random.default_rng(1).normal(0, sigma, len(values))).astype(np.int64)",
        ),
    ),
    fault(
        "empty cells skipped",
        K_EQUAL_ROWS,
        (NOISE, "np.split(noisy, ends)", "np.split(np.where(flat == 0, 0, noisy), ends)"),
    ),
    fault(
        "missing cells and fractions let through",
        f"{CURATOR}::test_missing_cells_or_floats_never_reach_the_noise",
        (COUNTS, "counts.shape != shape or counts.dtype != np.int64", "counts is None"),
    ),
    # -- things that depend on the rows beside the door --------------------------------------------
    fault(
        "true n used",
        K_EQUAL_ROWS,
        (RELEASE, CLOSE, CLOSE + COUNT_ROWS),
        (RELEASE, "rows_wanted(made) if job.request.rows is None", "true if job.request.rows is None"),
    ),
    fault(
        "seed made from the rows",
        K_EQUAL_ROWS,
        (RELEASE, CLOSE, CLOSE + COUNT_ROWS),
        (RELEASE, "_seed_of(entry.release_id) if job", "_seed_of(str(true)) if job"),
    ),
    fault("SELECT DISTINCT domain", K_EQUAL_ROWS, (PREPARATION, PLAN, LABELS_SEEN + PLAN)),
    fault(
        "rows counted in the key of the ledger",
        K_EQUAL_ROWS,
        (
            BOOK,
            '        "method": plan.method,\n',
            '        "method": plan.method,\n        "rows": int(self._session.engine.fetch('
            'f"SELECT count(*) AS n FROM {plan.source.relation.sql}", step="counting")["n"][0]),\n',
        ),
    ),
    fault(
        "a duration in the certificate",
        K_EQUAL_ROWS,
        (
            CERTIFICATE,
            '        "method": plan.method,\n',
            '        "seconds": __import__("time").perf_counter(),\n',
        ),
    ),
    fault("second access in post-processing", SECOND_ACCESS, (RELEASE, CLOSE, CLOSE + COUNT_ROWS)),
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
        "the fit before the triples taken for the last",
        f"{CLOCK}[runs away]",
        (ROUNDS, "last=not triples)", "last=True)"),
    ),
    fault(
        "an engine's message passed on",
        "tests/unit/engines/test_engines_duckdb.py::test_failures_carry_no_engine_text",
        (ENGINE, "kind = type(error).__name__", "kind = str(error)"),
    ),
    # -- what our SQL would call, or read, instead of what it means ----------------------------------
    fault(
        "registered overloads of built-in functions called",
        f"{HOSTILE}::test_a_registered_overload_of_a_built_in_function_is_refused[least-t]",
        (CATALOG, "changed = changed_builtins(self._function_rows)", "changed: list[str] = []"),
    ),
    fault(
        "built-in functions that were made again called",
        f"{HOSTILE}::test_a_built_in_function_that_was_taken_away_or_made_again_is_refused",
        (BUILTIN, " | _made_again(rows))", ")"),
    ),
    fault(
        "another file charged than the one that is meant",
        f"{LINKS}::test_what_is_read_is_what_is_charged[parquet]",
        (PATHS, "os.path.realpath(Path(*parts[:behind]))", "os.path.normpath(Path(*parts[:behind]))"),
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
            "dpsyn_sql/encode/codes.py",
            "yield _join(attribute.stems(length), f",
            "yield _join(attribute.stems(length) * 2, f",
        ),
    ),
    # -- the bound on a unit's rows ------------------------------------------------------------------
    fault(
        "one row of a unit too many",
        K_EQUAL_ROWS,
        (ENCODE, "WHERE place <= {{ bound.max_rows }}", "WHERE place <= {{ bound.max_rows }} + 1"),
    ),
    fault(
        "one bound for all units",
        "tests/statistical/test_units.py::test_the_property_holds_where_the_faults_break_it",
        (
            ENCODE,
            "            PARTITION BY\n                unit\n            ORDER BY\n",
            "            ORDER BY\n",
        ),
    ),
    # -- discovery -----------------------------------------------------------------------------------
    fault(
        "threshold of a count of zero",
        f"{TAILS}::test_the_bound_is_above_the_exact_tail_and_close",
        (TAIL, "one = _tail(Decimal(sigma), steps)", "one = _tail(Decimal(sigma), steps + 1)"),
    ),
    fault(
        "threshold one too low",
        f"{DISCOVERY}::test_the_threshold_itself_is_shown_and_one_less_is_not",
        (KEYS, "steps >= threshold * event.lattice", "steps >= (threshold - 1) * event.lattice"),
    ),
    fault(
        "one key of a unit charged for all",
        f"{TAILS}::test_the_bound_is_above_the_exact_tail_and_close",
        (TAIL, "1 - (1 - one) ** keys", "1 - (1 - one) ** min(keys, 1)"),
    ),
    fault(
        "noise of keys for one key a unit",
        f"{DISCOVERY}::test_the_threshold_is_the_least_whose_delta_fits[1-2]",
        (
            KEYS,
            "noise = gaussian_event(keys_per_unit, share, ",
            "noise = gaussian_event(1, share, ",
        ),
    ),
    fault(
        "all keys of a unit counted",
        f"{DISCOVERED}::test_neighbours_show_the_same[unit-zcdp]",
        (UNITS_SQL, "WHERE place <= {{ bound.max_rows }}", "WHERE place <= {{ bound.max_rows }} + 9"),
    ),
    fault(
        "rows counted instead of units",
        f"{DISCOVERED}::test_neighbours_show_the_same[unit-zcdp]",
        (UNITS_SQL, "SELECT DISTINCT\n", "SELECT\n"),
    ),
    fault(
        "a unit counted for all its types of text at the charge of one",
        f"{DISCOVERED}::test_a_unit_of_k_different_rows_changes_as_much_as_is_declared[zcdp]",
        (
            "dpsyn_sql/measure/questions/types.py",
            'grid_event(things_per_unit("types", behind.rows_per_unit), budget)',
            "grid_event(1, budget)",
        ),
    ),
    fault(
        "classes of text without rows are left out",
        f"{DISCOVERY}::test_missing_codes_or_floats_never_reach_the_noise",
        (
            "dpsyn_sql/measure/questions/types.py",
            "check_counts(counts, (len(CLASSES),))",
            "counts = counts[counts > 0]",
        ),
    ),
    fault(
        "a unit counted for several steps at the charge of one",
        f"{DISCOVERED}::test_a_unit_of_k_different_rows_changes_as_much_as_is_declared[zcdp]",
        (
            "dpsyn_sql/count/discovery.py",
            'self._counted("steps", query.value, kind, step)',
            'self._counted("grid", query.value, kind, step)',
        ),
    ),
    fault(
        "steps that no value fits are left out",
        f"{DISCOVERY}::test_missing_codes_or_floats_never_reach_the_noise",
        (
            "dpsyn_sql/measure/questions/steps.py",
            "check_counts(counts, (len(steps) + 1,))",
            "counts = counts[counts > 0]",
        ),
    ),
    fault(
        "a refined grid is not told from another one",
        f"{DISCOVERY}::test_a_replay_that_asks_something_else_stops",
        (
            "dpsyn_sql/measure/questions/grid.py",
            "cuts = digest(repr((grid.kind, grid.labels, grid.edges, grid.other, grid.nullable)))",
            'cuts = digest("")',
        ),
    ),
    fault(
        "what follows a found type gets the whole share again",
        "tests/unit/test_discovery.py::test_the_share_of_a_column_without_a_type_pays_for_the_type_and_what_follows",
        (
            "dpsyn_sql/planning/discovery.py",
            "keys = Budget(rest.kind, rest.amount, share.delta)",
            "keys = Budget(share.kind, share.amount, share.delta)",
        ),
    ),
    fault(
        "keys below the threshold in the transcript",
        f"{DISCOVERY}::test_keys_below_the_threshold_reach_neither_answer_nor_transcript",
        (KEYS, "np.flatnonzero(steps >= threshold * event.lattice)", "np.arange(len(keys))"),
    ),
    fault(
        "delta of a threshold not charged",
        f"{DISCOVERY}::test_beyond_amount_or_delta_nothing_is_counted",
        (ACCOUNT, "cost_units(event, kind), delta_units(event))", "cost_units(event, kind), 0)"),
    ),
    fault(
        "budget of pairs spent on the margins of parts too",
        "tests/unit/methods/test_methods_dpcopula.py::test_a_part_is_a_cell_and_never_a_question_of_its_own",
        (
            "dpsyn_sql/methods/dpcopula.py",
            "    return first, second\n",
            "    return first, budget\n",
        ),
    ),
    fault(
        "a value that a unit brings to the public number is shown too often",
        "tests/conformance/test_coupling_discover.py::test_a_value_of_one_unit_alone_is_what_delta_pays_for",
        (
            "dpsyn_sql/measure/questions/keys.py",
            "return event.threshold + least_units(event) - 1",
            "return event.threshold",
        ),
    ),
    fault(
        "noise for values of too few units",
        "tests/unit/measure/test_measure_discovery.py"
        "::test_values_of_too_few_units_are_never_shown_whatever_the_noise[1]",
        (
            "dpsyn_sql/measure/questions/keys.py",
            "if len(units) and units.min() < least:",
            "if False:",
        ),
    ),
    fault(
        "values of too few units are read",
        "tests/sql/test_discover_statements.py::test_keys_of_too_few_units_are_not_read[row]",
        ("sql/discover/units.sql", "HAVING count(*) >= {{ least }}", "HAVING count(*) >= 1"),
    ),
    fault(
        "an error of the codec holds the bytes of a row",
        "tests/unit/engines/test_engines_frames.py::test_bytes_that_are_no_text_are_no_key_and_in_no_error",
        (
            "dpsyn_sql/count/exact.py",
            'text = content.decode("utf-8", "replace")',
            "text = content.decode()",
        ),
    ),
    fault(
        "the class of a value says its text",
        "tests/unit/engines/test_engines_frames.py::test_text_of_a_time_asks_no_zone_of_somebody_else",
        (
            "dpsyn_sql/engines/frame_columns.py",
            "        value = _without_zone(value)\n",
            "        pass\n",
        ),
    ),
    fault(
        "a threshold delta charged for each length of prefixes",
        "tests/unit/test_discovery.py::test_each_length_of_prefixes_is_asked_with_its_part_of_the_share",
        (
            "dpsyn_sql/planning/discovery.py",
            'DiscoveryStep("prefixes", column.name, own, length)',
            'DiscoveryStep("prefixes", column.name, Budget(own.kind, own.amount, share.delta), length)',
        ),
    ),
    fault(
        "beginnings of rows beyond other labels are the same question",
        f"{DISCOVERY}::test_a_replay_that_asks_something_else_stops[query7-other7]",
        (KEYS, "repr((known.labels, known.prefixes))", "repr(known.prefixes)"),
    ),
    fault(
        "rows without a known label have no code of their own",
        f"{DISCOVERY}::test_beginnings_of_what_is_no_text_are_refused_before_the_charge[wrong1]",
        (KEYS, " or known.other_code is None", ""),
    ),
    # -- the ledger ------------------------------------------------------------------------------------
    fault(
        "charge after the count",
        f"{CURATOR}::test_an_overdrawn_question_is_not_counted",
        (
            DOOR,
            "            asked.charge(inquiry.event)\n            stored = asked.store(inquiry.noisy())\n",
            "            noisy = inquiry.noisy()\n            asked.charge(inquiry.event)\n"
            "            stored = asked.store(noisy)\n",
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
        (ACCOUNTS, "    refuse_other_sum(store, account)\n", ""),
    ),
    fault(
        "threshold deltas not recounted",
        f"{DAMAGE}::test_the_sum_of_an_account_that_became_approximate_is_recounted[spent_delta = 1]",
        (ACCOUNTS, ") != account.balance.spent:", ").amount != account.balance.spent.amount:"),
    ),
    fault(
        "debit in the -wal file alone",
        "tests/e2e/test_ledger_crash.py"
        "::test_after_a_death_the_main_file_alone_holds_the_debit_and_then_the_answers",
        (
            SQLITE,
            "        self._store.checkpoint()  # before anything is read",
            "        # before anything is read",
        ),
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
        (TRANSCRIPT, 'known or {**row, "content": content}', '{**row, "content": content}'),
    ),
    fault(
        "one number for the questions of two doors",
        f"{LEDGER}::test_numbers_are_the_entrys_so_that_two_doors_of_a_release_never_answer_one_question",
        (ENTRIES, "number, self._asked = self._asked, self._asked + 1", "number = self._asked"),
    ),
    fault(
        "a replay measures again",
        f"{CURATOR}::test_a_stored_answer_is_replayed_without_counting",
        (DOOR, "        if stored is None:\n", "        if True:\n"),
    ),
    fault(
        "another letter case is another account",
        f"{NAMES}::test_a_table_created_anew_in_another_case_keeps_its_account",
        (
            "dpsyn_sql/source/ledger_names.py",
            "display_name(fold(schema), fold(name))",
            "display_name(schema, name)",
        ),
    ),
    fault(
        "a ledger that was moved is believed",
        f"{NAMES}::test_a_ledger_that_was_moved_is_refused_until_somebody_says_how",
        (
            "dpsyn_sql/ledger/homes.py",
            "found == place:\n        return\n    if",
            "place:\n        return\n    if",
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
            "if self.elsewhere is not None and not key.named:",
            "if self.elsewhere is not None and not key.name:",
        ),
    ),
    fault(
        "an output over the ledger",
        f"{NAMES}::test_an_output_never_overwrites_the_ledger[]",
        (PREPARATION, "        if os.path.realpath(path) in taken:", "        if str(path) in ():"),
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
            'f"{dialect.text_bytes(value)} = {dialect.text_bytes(literal(wanted))}"',
            'f"{value} = {literal(wanted)}"',
        ),
    ),
    fault(
        "a panel costs its dearest slice",
        f"{PANELLED}::test_the_first_windows_are_charged_and_later_ones_cost_nothing",
        (PANELS, "nlargest(self.most, amounts)", "nlargest(1, amounts)"),
    ),
    fault(
        "deltas of a panel are those of its dearest slice",
        f"{PANELLED}::test_the_price_is_what_the_unluckiest_unit_can_lose_and_never_falls",
        (PANELS, "nlargest(self.most, deltas)", "nlargest(1, deltas)"),
    ),
    fault(
        "a late window is charged as if in order",
        f"{PANELLED}::test_a_window_released_after_a_later_one_is_charged_in_full_for_units_and_not_for_rows",
        (PANELS, "place.number >= self.last", "place.number != self.last"),
    ),
    fault(
        "a calendar may change",
        f"{PANELLED}::test_a_calendar_with_other_edges_is_charged_in_full",
        (PANELS, "        if self.edges[:shared] != place.edges[:shared]:\n            return False\n", ""),
    ),
    fault(
        "an unfinished window holds up nothing",
        f"{PANELLED}::test_an_unfinished_window_holds_up_the_next_one_of_its_series",
        (ACCOUNTS, "    refuse_unfinished(known, charge.place)\n", ""),
    ),
    fault(
        "a unit without a bound has one",
        f"{PANELLED}::test_without_a_bound_every_window_is_charged",
        (
            IN_LEDGER,
            'if told is None or told["most"] is None:\n        return None',
            'if told is None:\n        return None\n    told = {**told, "most": told["most"] or 1}',
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
        (TOTALS, "plan.domain, unit.max_rows, entry", "plan.domain, _total(job).running.rows, entry"),
    ),
    fault(
        "a running total states the epsilon of one node",
        SUMS,
        ("dpsyn_sql/writing.py", "claim_of(job.total.whole,", "claim_of(job.total.budget,"),
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
        (ATTACHED, "                if self._charged:\n", "                if not request:\n"),
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
        (DBT_MODEL, 'if call["empty"]:', "if not call:"),
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

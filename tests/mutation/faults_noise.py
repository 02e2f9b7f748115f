"""Faults of prices, noise and counts."""

from planted import fault

COUPLING = "tests/conformance/test_coupling.py"
K_EQUAL_ROWS = f"{COUPLING}::test_a_unit_of_k_equal_rows_uses_the_whole_debit[independent-1e-09]"
K_EQUAL_ROWS_PURE = f"{COUPLING}::test_a_unit_of_k_equal_rows_uses_the_whole_debit[independent-0]"
SCORES = f"{COUPLING}::test_a_score_changes_by_as_much_as_is_declared[1e-09]"
RESIDUALS = (
    "tests/statistical/test_residuals.py::test_residuals_have_the_ledgered_variance_and_nothing_in_common"
)
FRESH_NOISE = "tests/statistical/test_residuals.py::test_two_releases_of_one_table_share_no_noise"
PRODUCTS = "tests/unit/count/test_count_products.py"
STAGE = "tests/unit/measure/test_measure_stage.py"
LAW = "dpsyn_sql/private/measure/stage.py"
CURATOR = "tests/unit/measure/test_measure_curator.py"
CALIBRATE = "tests/unit/measure/test_measure_calibrate.py"
SECOND_ACCESS = (
    "tests/e2e/test_no_second_access.py::test_rows_are_read_between_debit_and_closing_only"
    "[connection-independent]"
)
DISCOVERY = "tests/unit/measure/test_measure_discovery.py"
DELTA = "tests/unit/accounting/test_accounting_delta.py"
EXACT = "tests/unit/accounting/test_accounting_gdp.py"
GDP_PRICES = "tests/unit/accounting/test_gdp_prices.py"
GDP_CHOICES = (
    "tests/unit/measure/test_measure_select.py::test_a_gdp_account_gets_the_mechanism_of_a_bounded_range"
)
NOISE = "dpsyn_sql/private/measure/noise.py"
SCALE = "dpsyn_sql/private/measure/noise.py"
COUNTS = "dpsyn_sql/private/measure/counting.py"
MARGINALS = "dpsyn_sql/private/measure/questions/tables.py"
DISTANCES = "dpsyn_sql/private/measure/questions/tables.py"
RESIDUAL = "dpsyn_sql/private/measure/questions/tables.py"
RESIDUAL_TESTS = "tests/unit/measure/test_measure_residuals.py"
CHOICE = "dpsyn_sql/private/measure/questions/choices.py"
KEYS = "dpsyn_sql/private/measure/questions/columns.py"
EVENTS = "dpsyn_sql/accounting/events.py"
GDP = "dpsyn_sql/accounting/gdp.py"
LOSS = "dpsyn_sql/accounting/pld.py"
RELEASE = "dpsyn_sql/front/release.py"
PREPARATION = "dpsyn_sql/front/prepare.py"
BOOK = "dpsyn_sql/front/ledger_lookup.py"
CERTIFICATE = "dpsyn_sql/report/certificate.py"
BUDGET = "dpsyn_sql/accounting/budget.py"
ACCOUNT = "dpsyn_sql/accounting/account.py"
DRAW_GAUSSIAN = "return _sums(values, drawn(gaussian_law(sigma), len(values)))"
DRAW_LAPLACE = "return _sums(values, drawn(laplace_law(scale), len(values)))"
DRAWING = "dpsyn_sql/private/measure/drawing.py"
LAWS = "dpsyn_sql/private/measure/laws.py"
DRAWING_TESTS = "tests/unit/measure/test_measure_drawing.py"
LAWS_TESTS = "tests/unit/measure/test_measure_laws.py"
CHI_SQUARE = f"{DRAWING_TESTS}::test_chi_square_of_every_value"
ENTRIES = f"{LAWS_TESTS}::test_every_entry_of_a_table_is_the_floor_of_its_probability"
GAUSSIAN_SCALE = "sigma = math.sqrt(l2_squared / (2 * float(share.fraction)) + SMOOTHING / lattice**2)"
SECOND_OPINION_GAUSSIAN = " and rho <= share.fraction"
SECOND_OPINION_SELECTION = " and map_cost <= share.fraction"
CLOSE = "            entry.close_questions()\n"
COUNT_ROWS = (
    "            true = int(job.session.engine.fetch("
    'f"SELECT count(*) AS n FROM {job.only.plan.source.relation.sql}",'
    ' step="counting rows")["n"][0])\n'
)
DESIGNS = "        designs = self._designs()\n"
LABELS_SEEN = """
        def seen(attribute):
            sql = f'SELECT DISTINCT CAST("{attribute.name}" AS VARCHAR) AS v FROM {source.relation.sql}'
            found = {str(value) for value in self.session.engine.fetch(sql, step="looking for labels")["v"]}
            return replace(attribute, labels=tuple(one for one in attribute.labels if str(one) in found))

        source, shape = designs[0].source, designs[0].shape
        narrowed = [seen(one) if getattr(one, "labels", ()) else one for one in shape.measured]
        designs = (replace(designs[0], shape=replace(shape, measured=tuple(narrowed))),)
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
        (NOISE, 'max_divergence() if kind == "pure" else', "max_divergence() if kind else"),
    ),
    fault(
        "pure release of a GDP account priced at half its square",
        f"{GDP_PRICES}::test_a_pure_release_costs_no_less_than_its_parts_wherever_they_fall",
        (
            ACCOUNT,
            "math.ceil(pure_cost(budget.fraction) * AMOUNT_UNITS)",
            "math.ceil(budget.rho * AMOUNT_UNITS)",
        ),
    ),
    # -- sensitivities and scales, wrong in noise and ledger alike ------------------------------
    fault(
        "sensitivity halved",
        K_EQUAL_ROWS,
        (MARGINALS, "tables * rows_per_unit**2, share)", "tables * rows_per_unit**2 // 4, share)"),
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
        "repeated residuals charged once",
        f"{RESIDUAL_TESTS}::test_several_tables_and_repeated_ones_add_up",
        (
            RESIDUAL,
            "shapes = tuple(query.shape(counts.domain) for query in queries)",
            "shapes = tuple(query.shape(counts.domain) for query in set(queries))",
        ),
    ),
    fault(
        "a claim that rests on an estimate of rounding",
        "tests/unit/report/test_report_certificate.py::test_a_loss_distribution_is_a_second_opinion_and_no_claim",
        (
            "dpsyn_sql/report/certificate.py",
            "for bound in (self.gdp, self.pure) if",
            "for bound in self.bounds.values() if",
        ),
    ),
    fault(
        "residuals that overflow",
        f"{RESIDUAL_TESTS}::test_counts_that_no_database_holds_do_not_overflow",
        (
            RESIDUAL,
            "= np.minimum(counts, largest_count(counts.shape))",
            "= counts",
        ),
    ),
    fault(
        "residuals of many units are cut",
        f"{RESIDUAL_TESTS}::test_a_cell_of_many_weighted_units_is_whole",
        (
            "dpsyn_sql/planning/queries.py",
            "return largest_count(shape) >= _UNITS_IN_A_CELL * sensitivity",
            "return largest_count(shape) >= _UNITS_IN_A_CELL",
        ),
    ),
    fault(
        "the door asks residuals that cut counts",
        f"{RESIDUAL_TESTS}::test_residuals_that_would_cut_counts_of_units_are_refused",
        (
            RESIDUAL,
            "if not all(holds_residuals(shape, private_side.rows_per_unit) for shape in shapes):",
            "if not shapes:",
        ),
    ),
    fault(
        "large tables of units are asked for as residuals",
        "tests/unit/methods/test_methods_adaptive.py::test_tables_that_residuals_cannot_hold_are_asked_for_whole",
        (
            "dpsyn_sql/methods/adaptive/measure.py",
            "as_residuals = budget.gaussian and holds_residuals(shape, task.unit.sensitivity)",
            "as_residuals = budget.gaussian",
        ),
    ),
    fault(
        "what is asked after the first look may be anything",
        f"{STAGE}::test_a_marginal_beyond_what_was_reserved_is_neither_charged_nor_counted[narrow]",
        (LAW, "within = all(any(", "within = True or all(any("),
    ),
    fault(
        "further marginals have more cells in all than were reserved",
        f"{STAGE}::test_all_that_is_asked_for_stays_within_what_was_reserved",
        (LAW, "        self._cells += fresh\n", ""),
    ),
    fault(
        "a marginal with labels is counted once for all labels of its name",
        f"{STAGE}::test_marginals_with_labels_count_each_time",
        (LAW, "repeated=not labels)", "repeated=True)"),
    ),
    fault(
        "later questions cost more than was reserved",
        f"{STAGE}::test_no_more_is_spent_than_was_reserved",
        (LAW, "        self._left -= asked.budget.amount\n", ""),
    ),
    fault(
        "pairs of rows are asked about that nobody reserved",
        f"{STAGE}::test_pairs_of_rows_are_asked_about_where_they_were_reserved",
        (LAW, "if not any(reserve.pairs_of_rows for reserve in reserves):", "if False:"),
    ),
    fault(
        "a look does not end what may be asked freely",
        f"{STAGE}::test_nothing_is_reserved_after_the_first_look",
        ("dpsyn_sql/private/measure/curator.py", "            self._stage.look()\n", "            pass\n"),
    ),
    fault(
        "what is counted can change after it was priced",
        f"{STAGE}::test_what_is_admitted_and_priced_is_what_is_counted",
        (
            "dpsyn_sql/private/measure/questions/__init__.py",
            "tuple(map(replace, getattr(known, name)))",
            "getattr(known, name)",
        ),
    ),
    fault(
        "looks at columns are free of what was reserved",
        f"{STAGE}::test_what_is_learnt_of_a_table_costs_no_more_than_its_budget",
        (LAW, "        self._left -= asked.budget.amount\n", ""),
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
        "tests/unit/measure/test_measure_select.py::test_several_choices_are_peeled_one_after_the_other[2-gdp]",
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
        f"{CALIBRATE}::test_noise_on_sixteenths_fits_its_share_by_both_accountants",
        (SCALE, GAUSSIAN_SCALE, "sigma = l2_squared / (2 * float(share.fraction)) + SMOOTHING / lattice**2"),
    ),
    fault(
        "repeated marginals charged once",
        f"{CURATOR}::test_a_repeated_marginal_counts_each_time",
        (
            MARGINALS,
            "event = marginals_event(len(queries), private_side",
            "event = marginals_event(len(set(queries)), private_side",
        ),
    ),
    fault(
        "a pure release beside others priced as a coin of half its odds",
        "tests/unit/accounting/test_gdp_beside_pure.py::test_the_epsilon_is_enough_and_a_hair_less_is_not",
        (
            GDP,
            "(2 * _decimal(amount)).sqrt(), _decimal(pure)",
            "(2 * _decimal(amount)).sqrt(), _decimal(pure) / 2",
        ),
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
        "a choice priced at an eighth of its square",
        f"{GDP_PRICES}::test_no_mechanism_of_a_bounded_range_needs_more",
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
        (EVENTS, "math.ceil(event.cost(kind) * AMOUNT_UNITS)", "math.floor(event.cost(kind) * AMOUNT_UNITS)"),
    ),
    fault(
        "conversion at the whole of delta",
        f"{DELTA}::test_what_thresholds_leave_of_delta_pays_for_the_conversion",
        (
            BUDGET,
            "half_mu_squared(exact_epsilon, conversion)",
            "half_mu_squared(exact_epsilon, exact_delta)",
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
        (NOISE, DRAW_GAUSSIAN, DRAW_GAUSSIAN.replace("(sigma)", "(sigma**0.5)")),
    ),
    fault(
        "noise of half the scale",
        f"{RESIDUALS}[laplace]",
        (NOISE, DRAW_LAPLACE, DRAW_LAPLACE.replace("(scale)", "(scale / 2)")),
    ),
    fault("no noise", f"{RESIDUALS}[laplace]", (NOISE, DRAW_LAPLACE, "return values")),
    fault(
        "one draw for all cells",
        f"{RESIDUALS}[gaussian]",
        (NOISE, DRAW_GAUSSIAN, "return _sums(values, np.repeat(drawn(gaussian_law(sigma), 1), len(values)))"),
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
    # -- noise that is not of the law that was charged -----------------------------------------------
    fault(
        "an entry of the table counted one word early",
        f"{DRAWING_TESTS}::test_words_beside_every_entry_of_a_table",
        (DRAWING, "floors[found + (step - 1)] < words", "floors[found + (step - 1)] <= words"),
    ),
    fault(
        "words that do not decide taken as they are",
        f"{DRAWING_TESTS}::test_more_bits_decide_at_the_entry_of_a_longer_table",
        (DRAWING, "        found[index] = _block(law, int(words[index]), bits)\n", "        pass\n"),
    ),
    fault(
        "a tail that ends with the table",
        f"{DRAWING_TESTS}::test_the_tail_has_no_end",
        (
            DRAWING,
            "    return found\n\n\ndef _kept",
            "    return min(found, 9)\n\n\ndef _kept",
        ),
    ),
    fault(
        "zero with two signs",
        f"{CHI_SQUARE}[gaussian-0.4-1]",
        (LAWS, "halves = int(law.doublings == 0)", "halves = 0"),
    ),
    fault(
        "zero of a block with two signs",
        f"{DRAWING_TESTS}::test_a_proposal_is_a_block_a_place_a_sign_and_a_look_at_the_weight",
        (DRAWING, "    kept &= (magnitudes > 0) | (second & 1 == 0)\n", ""),
    ),
    fault(
        "noise of one sign",
        f"{CHI_SQUARE}[gaussian-5.0-15]",
        (DRAWING, "1 - 2 * (words & 1)", "1 - 2 * (words & 0)"),
    ),
    fault(
        "the sign of a word that chose the block",
        f"{DRAWING_TESTS}::test_small_scales_need_two_words_and_refuse_nothing",
        (
            DRAWING,
            "_signed(_blocks(law, table, first, bits), second)",
            "_signed(_blocks(law, table, first, bits), first)",
        ),
    ),
    fault(
        "places of a block alike",
        f"{DRAWING_TESTS}::test_places_of_a_block_have_the_weights_of_the_law",
        (DRAWING, "kept = _kept(law, table, blocks, places, third, bits)", "kept = third == third"),
    ),
    fault(
        "place and its weight by one word",
        f"{CHI_SQUARE}[laplace-90.0-300]",
        (
            DRAWING,
            "_kept(law, table, blocks, places, third, bits)",
            "_kept(law, table, blocks, places, second, bits)",
        ),
    ),
    fault(
        "places of too few bits",
        f"{DRAWING_TESTS}::test_places_of_the_largest_blocks_are_uniform_and_magnitudes_scale",
        (DRAWING, ".astype(np.int64)\n    magnitudes", ".astype(np.int64) & ~7\n    magnitudes"),
    ),
    fault(
        "the square of an exponent forgotten",
        f"{DRAWING_TESTS}::test_bounds_in_words_hold_the_exponential_function",
        (
            DRAWING,
            "    high = np.uint64(2**32 + 1) - x + (x * x >> np.uint64(33))\n",
            "    high = np.uint64(2**32 + 1) - x\n",
        ),
    ),
    fault(
        "a comparison of words rounded to one side",
        f"{DRAWING_TESTS}::test_a_comparison_is_that_of_real_numbers",
        (DRAWING, "if (word + 1) << _GUARD <= low:", "if word << _GUARD <= low:"),
    ),
    fault(
        "a table rounded up",
        ENTRIES,
        (LAWS, "found.append(floor)", "found.append(min(last, floor + 1))"),
    ),
    fault(
        "a scale rounded before its law is made",
        f"{LAWS_TESTS}::test_the_law_is_that_of_the_float_as_it_stands",
        (LAWS, "    return Fraction(scale)\n", "    return Fraction(scale).limit_denominator(1000)\n"),
    ),
    fault(
        "a series without what is left of it",
        f"{LAWS_TESTS}::test_bounds_of_the_exponential_function_hold",
        (LAWS, "max(0, low - term_high), min(one, high + term_high)", "max(0, low), min(one, high)"),
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
        (
            RELEASE,
            "            return write_release(job, ",
            "            from dataclasses import replace\n\n"
            "            job = replace(job, request=replace(job.request, rows=true))\n"
            "            return write_release(job, ",
        ),
    ),
    fault("SELECT DISTINCT domain", K_EQUAL_ROWS, (PREPARATION, DESIGNS, DESIGNS + LABELS_SEEN)),
    fault(
        "rows counted in the key of the ledger",
        K_EQUAL_ROWS,
        (
            BOOK,
            '            "method": table.plan.method,\n',
            '            "method": table.plan.method,\n            "rows": int(self._session.engine.fetch('
            'f"SELECT count(*) AS n FROM {table.source.relation.sql}", step="counting")["n"][0]),\n',
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
    fault(
        "products of more rows than float32 counts",
        f"{PRODUCTS}::test_sums_leave_float32_before_it_rounds",
        (
            "dpsyn_sql/private/count/sums.py",
            "self._held + added > self._exact",
            "self._held > self._exact",
        ),
    ),
    fault(
        "products of weights leave the weights of one side out",
        f"{PRODUCTS}::test_weights_equal_brute_force_however_rows_are_divided",
        (
            "dpsyn_sql/private/count/sums.py",
            "(indicators * weights) @ indicators.T",
            "indicators @ indicators.T",
        ),
    ),
    fault(
        "numbers of cells run over their type",
        f"{PRODUCTS}::test_rows_are_added_to_the_cells_of_their_codes",
        (
            "dpsyn_sql/private/count/sums.py",
            "kind = np.min_scalar_type(dense.size - 1)",
            "kind = np.min_scalar_type(max(dense.shape) - 1)",
        ),
    ),
    fault(
        "rows that are read count 1 whatever they weigh",
        f"{PRODUCTS}::test_weights_of_families_equal_group_by[read-17]",
        (
            "dpsyn_sql/private/count/passes.py",
            "each = 1 if weights is None else whole_codes(weights, WEIGHT + 1)",
            "each = 1",
        ),
    ),
    fault(
        "rows of codes read twice",
        f"{PRODUCTS}::test_equals_group_by[read-rows-17]",
        ("dpsyn_sql/engines/counting_engine.py", "end = start + ROW_GROUP", "end = start + ROW_GROUP + 1"),
        (
            "dpsyn_sql/engines/counting_engine.py",
            'if read != int(held["n"][0]):',
            'if read < int(held["n"][0]):',
        ),
    ),
    fault("second access in post-processing", SECOND_ACCESS, (RELEASE, CLOSE, CLOSE + COUNT_ROWS)),
)

"""Whether the chosen tables are worth their budget, by noisy answers alone."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.fit.estimate import Observation, pooled
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.methods.adaptive.scores import Scores
from dpsyn_sql.methods.adaptive.task import Task
from dpsyn_sql.methods.adaptive.working import pair_weights, table_weights


def pairs_worth_their_budget(
    task: Task, scores: Scores, twins: Mapping[Scope, Scope], found: Mapping[Scope, float], for_pairs: Budget
) -> bool:
    """Whether the first pairs gain more than the one-way tables would with the budget ``for_pairs``.

    The noise of a one-way table is in every pair of its attribute. As in the choice of pairs, the part
    ``charge`` of its L1 norm counts. A coarse twin gains nothing in addition to its fine pair.
    """
    plan, working, workload = task.plan, task.working, task.terms.workload
    weights = pair_weights(working, workload)
    chosen = found.keys() - {twins[pair] for pair in found if pair in twins}
    held = scores.likely() if task.many else scores.expected(chosen)
    gain = math.fsum(weights.get(pair, 1.0) * held[pair] for pair in chosen)
    means, law = workload.means(plan.domain.names), task.noise_law(for_pairs)
    partners = sum(size > 1 for size in plan.domain.shape()) - 1
    noise = math.fsum(
        float(means[name]) * partners * law.mean_absolute * working.observed[index,].sum_of_sigma
        for index, name in enumerate(plan.domain.names)
    )
    measured = plan.budget.amount - plan.reserved[0].budget.amount
    saved = 1 - (measured / (measured + for_pairs.amount)) ** law.power
    return bool(gain > task.constants.charge * saved * noise)


def triples_worth_more(
    task: Task,
    tables: Mapping[Scope, Observation],
    expected: Mapping[Scope, float],
    pairs: Mapping[Scope, float],
    budget: Budget,
) -> bool:
    """Whether triples promise ``triple_worth`` times what measuring ``pairs`` again would gain: the noise
    that pooling removes from their ``tables``, of which ``charge`` counts."""
    weights = table_weights(task.working, task.terms.workload, [*expected, *pairs])
    gain = math.fsum(weights.get(triple, 1.0) * rows for triple, rows in expected.items())
    law, whole = task.noise_law(budget), math.fsum(pairs.values())
    saved = 0.0
    for pair, share in pairs.items():
        table = tables[pair]
        factor = law.factor(pair, task.working.sizes)
        deviation = law.unit / law.mean_absolute * (factor * whole / share) ** law.power
        again = pooled(table, Observation(table.values, np.asarray(deviation)))
        taken_off = law.mean_absolute * (table.sum_of_sigma - again.sum_of_sigma)
        saved += weights.get(pair, 1.0) * taken_off
    return bool(gain > task.constants.triple_worth * task.constants.charge * saved)

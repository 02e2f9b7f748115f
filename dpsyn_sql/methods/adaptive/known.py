"""What is known after each round: the measured tables, and the model fitted to them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from dpsyn_sql.fit.belief import Beliefs, FloatArray, calibrate
from dpsyn_sql.fit.centres import centres
from dpsyn_sql.fit.dispersion import Dispersions
from dpsyn_sql.fit.estimate import Fit, Likelihood, Observation, Potentials, fit_potentials, total_of
from dpsyn_sql.fit.graph import Scope, junction_tree
from dpsyn_sql.fit.sums import agreeing
from dpsyn_sql.methods.adaptive.task import Task
from dpsyn_sql.progress import phase

_FIT_SHARE = 0.5
# Share of the time after the last question; the rest is for the sample.


@dataclass(frozen=True, slots=True)
class Known:
    """``tables``: beyond one attribute, over working bins. ``total``: rows, at least 1. ``misfit``: that of
    the last fit. ``beside``: tables of pairs that are not in the tree; the sample meets them.
    ``dispersions``: of pairs of attributes, as their scores told them, one round after the other."""

    total: float
    beliefs: Beliefs
    tables: Mapping[Scope, Observation] = field(default_factory=dict)
    potentials: Potentials = field(default_factory=dict)
    misfit: float = 0.0
    beside: Mapping[Scope, Observation] = field(default_factory=dict)
    dispersions: tuple[Dispersions, ...] = ()


def independence(task: Task) -> Known:
    """The first model: the one-way tables alone."""
    fixed = {**task.working.base, **task.working.links}
    return Known(task.total, calibrate(junction_tree(task.working.sizes, fixed), fixed))


def fitted(task: Task, known: Known, tables: Mapping[Scope, Observation], *, last: bool) -> Known:
    """The graphical model of everything measured; its fit starts where the last fit ended.

    The last fit, after the last question, follows tables that agree on one-way sums: first around
    independence, then around what these tables make likely. Only it can be cut short; earlier fits form
    questions.
    """
    working, constants, deadline = task.working, task.constants, task.terms.deadline
    observed = {**working.observed, **tables}
    total = max(total_of(list(observed.values())), 1.0)
    tree = junction_tree(working.sizes, [*observed, *working.links])
    base = {**working.base, **working.links}
    if last:
        observed = agreeing(observed, working.links, total)

    def stop() -> bool:
        return last and deadline.over(_FIT_SHARE, "the last fit stopped early")

    first = constants.iterations // 2 if last else constants.iterations
    most = first + constants.iterations_last if last else first
    clock = deadline.running() if last else nullcontext()
    with clock, phase("fit", most) as advance:
        fit = fit_potentials(
            Likelihood(tree, observed, total, base),
            known.potentials,
            first,
            constants.tolerance_first if last else constants.tolerance,
            stop,
            advance,
        )
        if last and fit.beliefs.proper and not stop():
            fit = fit_potentials(
                _centred(task, fit, observed, total, base),
                fit.potentials,
                constants.iterations_last,
                constants.tolerance_last,
                stop,
                advance,
            )
    return replace(
        known,
        total=total,
        beliefs=fit.beliefs,
        tables=tables,
        potentials=fit.potentials,
        misfit=fit.misfit,
        beside={},
    )


def _centred(
    task: Task,
    first: Fit,
    observed: Mapping[Scope, Observation],
    total: float,
    base: Mapping[Scope, FloatArray],
) -> Likelihood:
    """The objective around what the pair tables make likely after a first fit (``fit/centres.py``)."""
    attributes = task.plan.domain.attributes
    ordered = [attributes[variable.attribute].ordered for variable in task.working.variables]
    around = centres(first.potentials, first.beliefs, observed, total, ordered)
    around |= {scope: first.potentials[scope] for scope in observed if len(scope) == 1}
    return Likelihood(first.beliefs.tree, observed, total, base, around)

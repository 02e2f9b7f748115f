"""A plan in words: what will be read, asked, spent and written. From public facts only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpsyn_sql.accounting.budget import DELTA_UNITS
from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.plan.plan import Plan, ReservedStep


def explain(plan: Plan, *, counting: Sequence[str], noise: Sequence[float]) -> list[str]:
    """Lines for a person.

    Args:
        plan: the plan.
        counting: how the counts are made, as the counting plan describes it.
        noise: standard deviation of the noise in a cell, in rows, one per known step.
    """
    return [*_about(plan), *_attributes(plan), *_steps(plan, noise), *counting]


def _about(plan: Plan) -> Iterator[str]:
    relation, unit = plan.source.relation, plan.source.unit
    yield f"Source      {relation.name} ({relation.kind})"
    for statement in relation.statements:
        yield f"            owner states: {statement}"
    if unit.column is None:
        yield "Protects    one row, not a person: a person with several rows is protected less"
    else:
        yield f"Protects    all rows of one {unit.column}, at most {unit.max_rows} of them counted"
        yield f"            rows without one are left out, and the column {unit.column} is not written"
    yield f"Method      {plan.method}"
    if plan.budget.kind == "pure":
        yield f"Budget      epsilon = {float(plan.budget.fraction):.6g}, delta = 0 (Laplace noise)"
    else:
        rho, kept = float(plan.budget.rho), plan.budget.delta / DELTA_UNITS
        yield f"Budget      rho = {rho:.6g} (Gaussian noise), threshold delta = {kept:.3g}"


def _attributes(plan: Plan) -> Iterator[str]:
    yield f"Attributes  {len(plan.domain.attributes)}, {sum(plan.domain.shape())} codes in all"
    for attribute in plan.domain.attributes:
        yield f"  {_shortened(attribute.name)}: {attribute.size} codes, {_codes_in_words(attribute)}"


def _codes_in_words(attribute: Attribute) -> str:
    what = "categories" if attribute.kind == "categorical" else "bins"
    extras = [text for text, there in (("__other__", attribute.other), ("NULL", attribute.nullable)) if there]
    return f"{attribute.regular} {what}{''.join(' + ' + text for text in extras)}, {attribute.origin}"


def _shortened(name: str, width: int = 60) -> str:
    return name if len(name) <= width else name[: width - 3] + "..."


def _steps(plan: Plan, noise: Sequence[float]) -> Iterator[str]:
    yield "Questions"
    deviations = iter(noise)
    for step in plan.steps:
        share = step.budget.amount / plan.budget.amount
        if isinstance(step, ReservedStep):
            yield (
                f"  {step.name}: {share:.1%} of the budget, for questions that depend on earlier noisy "
                f"answers, about {len(step.queries)} candidate marginals"
            )
            continue
        cells = sum(plan.domain.cells(query.attrs) for query in step.queries)
        yield (
            f"  {step.name}: {len(step.queries)} marginals, {cells} cells, {share:.1%} of the budget, "
            f"noise of standard deviation {next(deviations):.4g} rows a cell"
        )

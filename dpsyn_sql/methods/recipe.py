"""The base of all methods: a value whose fields are its settings, read from values or from text."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from fractions import Fraction
from inspect import isfunction
from typing import Any, ClassVar, Self, get_type_hints

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.discovery.designs import Growth
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.fit.network import MarginalModel, Model
from dpsyn_sql.fit.variances import Variances, one_way_components
from dpsyn_sql.planning.asking import UNREAD, Door, planned_steps
from dpsyn_sql.planning.limits import NO_LIMITS, NO_TERMS, Limits, Terms
from dpsyn_sql.planning.plan import Plan, PlanDetails
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.source.relation import Source

Setting = int | float | bool | str

_IN_WORDS = {int: "a whole number", float: "a finite number", bool: "true or false", str: "text"}

METHODS: dict[str, Recipe] = {}
"""By name, with default settings, the most accurate first. ``methods/__init__.py`` fills it."""


@dataclass(frozen=True, slots=True)
class Recipe(ABC):
    """Base of all methods.

    A subclass is a frozen dataclass; its fields are settings (int, float, bool or str, each with a default)
    that a user may change, from Python, YAML or the command line. Class variables describe it: ``name``;
    ``model``, the class that ``run`` fits; ``attributes``, the most with which it works in minutes (None: any
    number); ``takes_workload``, whether it divides its budget by the weights of a workload; ``takes_target``,
    whether it favours one column; ``takes_families``, whether it fits rows that stay together, and
    ``takes_classes``, whether classes of units are of use to it then; ``keeps_columns``, whether its rows
    have the one-way tables that it asks for, up to noise, and ``keeps_pairs``, whether they have the larger
    ones; ``choices``, the values of the settings that have few; ``static``, whether
    all questions are asked before the first look.
    """

    name: ClassVar[str]
    model: ClassVar[type[Model]]
    attributes: ClassVar[int | None] = None
    takes_workload: ClassVar[bool] = False
    takes_target: ClassVar[bool] = False
    takes_families: ClassVar[bool] = False
    takes_classes: ClassVar[bool] = True
    keeps_columns: ClassVar[bool] = True
    keeps_pairs: ClassVar[bool] = False
    static: ClassVar[bool] = False
    choices: ClassVar[Mapping[str, Sequence[Setting]]] = {}

    @classmethod
    def settings(cls) -> dict[str, type]:
        """Names and types of its settings, in order."""
        hints = get_type_hints(cls)
        return {field.name: hints[field.name] for field in fields(cls)}

    def checked(self) -> Self:
        """Itself, if every setting of few values (``choices``) has one of them.

        Raises:
            InputError: it names all settings that have another.
        """
        faults = [
            f"{name}={said(getattr(self, name))}; it can be {_listed(map(repr, values))}"
            for name, values in self.choices.items()
            if getattr(self, name) not in values
        ]
        if faults:
            raise InputError(f"method={self.name!r} has the setting {', and '.join(faults)}")
        return self

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """The same kind of method with these settings.

        Raises:
            InputError: it has no such setting, a value is of another type, or not one of few.
        """
        types = self.settings()
        for name in values:
            if name not in types:
                raise InputError(
                    f"method={self.name!r} has no setting {said(name)}; it has {self.settings_in_words()}"
                )
        read = {name: self._value(name, value, types[name]) for name, value in values.items()}
        changed = {name: value for name, value in read.items() if getattr(self, name) is not value}
        return (replace(self, **changed) if changed else self).checked()

    def with_texts(self, texts: Mapping[str, str]) -> Self:
        """The same, from the texts of a command line.

        Raises:
            InputError: it has no such setting, or a text is not a value of its type.
        """
        types = self.settings()
        return self.with_values({name: _read(text, types.get(name, str)) for name, text in texts.items()})

    def settings_in_words(self) -> str:
        """``settings: degree (a whole number; default 2)``, or ``no settings``."""
        settings = list[str]()
        for name, kind in self.settings().items():
            values = _listed(map(str, self.choices[name])) if name in self.choices else _IN_WORDS[kind]
            settings.append(f"{name} ({values}; default {_as_text(getattr(self, name))})")
        return f"settings: {', '.join(settings)}" if settings else "no settings"

    def _value(self, name: str, value: Any, kind: type) -> Setting:
        """A value of the type. A whole number is a number; a truth value is not."""
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value, fits = float(value), True
        if not fits or (kind is float and not math.isfinite(value)):
            raise InputError(
                f"method={self.name!r} has the setting {name}, which is {_IN_WORDS[kind]}, not {said(value)}"
            )
        setting: Setting = value
        return setting

    @property
    def growth(self) -> Growth | None:
        """How discovery grows the tree of a table that is one key; None: it asks for columns one by one."""
        return None

    def one_way_part(self, rows: float, attributes: int, budget: Budget, terms: Terms = NO_TERMS) -> Fraction:
        """The part of the budget that it would spend on one-way tables, so that discovery measures them (0 to
        1): of a table of so many units (noisy) and attributes. A third if it measures them itself."""
        return Fraction(1, 3)

    def pairs_needed(self, rows: float, attributes: int, budget: Budget, terms: Terms = NO_TERMS) -> float:
        """About how many pairs have to go together (each moving 0.3 of the rows) for it to measure any, of a
        table of so many units (noisy) and attributes; 0 if it measures pairs in any case, or none at all."""
        return 0.0

    def chosen(self, domain: Domain, terms: Terms) -> Recipe:
        """The method that plans and runs: itself, or another one that is better for such a table."""
        return self

    @abstractmethod
    def run(self, door: Door, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> Model:
        """Ask, and fit a model to the noisy answers.

        Until the first answer (or ``terms.evidence``) is read, what is asked must follow from public facts;
        before that the recipe reserves what it may ask then. So far a plan runs it, too (``plan``).

        Raises:
            InputError, PlanTooLarge: before the first look; the method cannot do what is asked for.
        """

    def plan(self, source: Source, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> Plan:
        """What ``run`` asks before its first look, and what it reserves, from public facts.

        Raises:
            InputError: weights or a target are given, but the method does not use it; as ``run``.
        """
        if terms.workload.sets:
            self._check_uses("weights", self.takes_workload, [m.takes_workload for m in METHODS.values()])
        if terms.workload.target:
            self._check_uses("a target", self.takes_target, [m.takes_target for m in METHODS.values()])
        unanswered = replace(terms, unit=source.unit, evidence=UNREAD)
        steps = planned_steps(lambda door: self.run(door, domain, budget, unanswered))
        return Plan(source, domain, self.name, steps, budget, details=self.details(terms))

    def variances(self, model: Model, answers: Sequence[NoisyMarginal]) -> Variances:
        """Of the estimates of a model that ``run`` fitted, as far as they are known; post-processing.

        Here of the measured one-way tables, with which every model agrees. ``answers`` are all noisy tables
        that the release shows.
        """
        return Variances((), one_way_components(model.domain, answers))

    def visible(self, plan: Plan) -> float | None:
        """How many rows a dependence of two columns must move to be seen, of all pairs that the plan can ask
        for; None: not all of them are looked at. By the plan alone."""
        return None

    def clear(self, model: Model) -> Mapping[tuple[str, str], float]:
        """Of columns that noisy answers show to go together how many rows this moves, whether the model has
        it or not; post-processing."""
        return {}

    def _check_uses(self, what: str, able: bool, usable: Sequence[bool]) -> None:
        if not able:
            names = [repr(name) for name, uses in zip(METHODS, usable, strict=True) if uses]
            raise InputError(
                f"method={self.name!r} does not use {what} of workload=: use method='auto' or "
                f"{' or '.join(names)}"
            )

    def caps(self, limits: Limits) -> dict[str, int]:
        """The most cells of what it asks for and models, in words, under a limit on memory."""
        return {}

    def details(self, terms: Terms) -> PlanDetails:
        """Its settings, the workload and the target, which a certificate states even if they are empty.

        Also caps that a limit on memory lowers: other questions may follow.
        """
        workload, caps = terms.workload, self.caps(terms.limits)
        identity: dict[str, Any] = {"workload": workload.facts()} if workload.sets else {}
        if workload.target:
            identity["target"] = workload.target
        lines = tuple(workload.lines())
        if caps != self.caps(NO_LIMITS):
            identity["caps"] = list(caps.values())
            lowered = ", ".join(f"{most} {cells}" for cells, most in caps.items())
            lines = (f"            within the memory limit: {lowered}", *lines)
        public = {"workload": workload.facts(), "target": workload.target or None}
        changed = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.default is MISSING or getattr(self, field.name) != field.default
        }
        return PlanDetails(changed, identity, public, lines)


def _as_text(value: Setting) -> str:
    """As a command line takes it."""
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _listed(words: Iterable[str]) -> str:
    """``a, b or c``."""
    *first_words, last = words
    return f"{', '.join(first_words)} or {last}" if first_words else last


def _read(text: str, kind: type) -> Setting:
    """The value that a text means, or the text itself if it means none."""
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        number: Setting = kind(text)
    except ValueError:
        return text
    return number


NEEDED = tuple(
    name
    for name, member in (*vars(MarginalModel).items(), *vars(Model).items())
    if isfunction(member) and name[0] != "_"
)
"""The functions of a model that a release calls."""


def check_model(method: Recipe) -> None:
    """Refuse a method whose models cannot be released.

    Raises:
        InputError: it does not name the class of its model, or that class lacks a function.
    """
    model = getattr(method, "model", None)
    if not isinstance(model, type):
        raise InputError(
            f"method={method.name!r} does not name the class of its model, so nobody knows whether rows can "
            "be drawn from it: add the attribute model. Nothing was charged."
        )
    lacking = [name for name in NEEDED if not callable(getattr(model, name, None))]
    if lacking:
        raise InputError(
            f"method={method.name!r} fits a model of class {model.__name__}, which has no "
            f"{' and no '.join(f'{name}()' for name in lacking)}: no rows could be released. Add to the "
            "class what fit.network.Model requires, or use another method. Nothing was charged."
        )

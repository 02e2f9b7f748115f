"""The certificate of a release: all that a reader needs to judge the privacy claim.

It holds public facts only. Its one date is the day of the debit; it has no times and no durations.
A release of one table has the certificate of its table. In a tree of several each table keeps a certificate
that has the guarantee of the whole, and that of the release is made from these: what they share is said once.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any

from dpsyn_sql.accounting.account import in_words, reported_epsilon, rounded_up
from dpsyn_sql.accounting.budget import DELTA_UNITS, Budget, Number, delta_shares, exact_number, stated_delta
from dpsyn_sql.accounting.events import PrivacyEvent, delta_units, event_from_dict, event_to_dict, total_units
from dpsyn_sql.accounting.pld import epsilon_from_events
from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.leaves import leaves_facts
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.discovery.attributes import FoundType
from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.asking import Asked
from dpsyn_sql.planning.families import Families
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.planning.tree import Tree
from dpsyn_sql.report.labels import counted
from dpsyn_sql.source.relation import Relation

Facts = Mapping[str, Any]

_VERSIONED = ("dpsyn_sql", "duckdb", "numpy", "scipy", "opendp")

NOT_PROMISED = (
    "Rows, not persons, are protected when the privacy unit is 'row': a person with several rows is "
    "protected less.",
    "The operator, who can read the source anyway, also sees run time, progress, resources, and success "
    "or failure; readers of the release do not.",
    "Declared domains, exclusions and trust statements are the owner's public words; they are not checked "
    "against the source.",
)


@dataclass(frozen=True, slots=True)
class Claim:
    """What is claimed of a release: every bound that was computed, and the proven one.

    Each is rounded up to twelve digits: its text is not below the exact bound. That of a privacy loss
    distribution stands beside it as a second opinion: its rounding is estimated, not bounded.
    """

    delta: float
    gdp: float | None = None
    pld: float | None = None
    pure: float | None = None

    @property
    def bounds(self) -> dict[str, float | None]:
        """Each by the accounting that it comes from."""
        return {"gdp": self.gdp, "pld": self.pld, "pure": self.pure}

    @property
    def epsilon(self) -> float:
        """The smallest proven bound."""
        return min(bound for bound in (self.gdp, self.pure) if bound is not None)


def claim(plan: Plan, reserved: Sequence[PrivacyEvent], delta: Number) -> Claim:
    """Epsilon of what was reserved before the run, by every available accountant; the account's is claimed.

    A pure budget is its own epsilon. Otherwise that of the account's kind, and, with the package
    dp-accounting and units of one row, the privacy loss distribution of the reserved events, both at the
    share of ``delta``
    that pays for conversion. A smaller spend than planned changes nothing. Where questions are not known in
    advance (discovery, a reserved step), or ask for residuals, of which a row moves every cell and some by
    more than one, there is no such distribution, and the account's kind alone counts.
    """
    by_kind = claim_of(plan.budget, delta, sum(map(delta_units, reserved)))
    fixed = plan.source.unit.max_rows == 1 and plan.static and not plan.discovery
    fixed = fixed and not any(asked.residuals for asked in plan.asked)
    if by_kind.pure is not None or not fixed:
        return by_kind
    second = epsilon_from_events(reserved, delta_shares(exact_number("delta", delta))[0])
    # At a very large epsilon the second accountant says nothing: its bound is infinite.
    return by_kind if second is None or math.isinf(second) else replace(by_kind, pld=rounded_up(second))


def claim_of(budget: Budget, delta: Number, thresholds: int = 0) -> Claim:
    """Epsilon of a budget, whatever it is spent on; ``thresholds``: units of delta that are reserved for
    them."""
    if budget.kind == "pure":
        return Claim(0.0, pure=rounded_up(budget.fraction))
    exact = exact_number("delta", delta)
    stated = stated_delta(exact, max(budget.delta, thresholds))
    bound = rounded_up(reported_epsilon(budget, exact))
    return Claim(stated, gdp=bound)


def certificate(
    plan: Plan,
    shape: Shape,
    events: Sequence[PrivacyEvent],
    *,
    release_id: str,
    debited_on: str,
    claimed: Claim,
    excluded: Sequence[str],
    rows: int,
    seed: int,
    drawn: str,
    families: Families | None = None,
) -> dict[str, Any]:
    """A JSON-ready certificate; ``debited_on``: the UTC day of the debit."""
    unit = plan.source.unit
    return {
        "release": release_id,
        "debited_at": debited_on,
        "guarantee": {
            "epsilon": claimed.epsilon,
            "delta": claimed.delta,
            "bounds": claimed.bounds,
            **_budget_in_guarantee(plan.budget),
            "neighbours": "add or remove one privacy unit; the number of rows is private",
            "privacy_unit": _unit_in_words(plan),
            "rows_per_unit": unit.max_rows,
            **({"together": True, "weight_of_a_unit": unit.weight} if unit.together else {}),
        },
        "mechanisms": _mechanisms(plan, events),
        "budget": {
            "kind": plan.budget.kind,
            "reserved_units_of_1e-15": plan.budget.amount,
            "used_units_of_1e-15": total_units(events, plan.budget.kind),
            "threshold_delta": plan.budget.delta / DELTA_UNITS,
        },
        "source": {"name": _public_name(plan.source.relation), "kind": plan.source.relation.kind},
        **({} if plan.source.sliced is None else {"slice": plan.source.sliced.facts}),
        "public_facts": {
            "statements": list(plan.source.relation.statements),
            "excluded": list(excluded),
            "domain": [attribute_facts(attribute) for attribute in plan.domain.attributes],
            "roles": [role.facts() for role in shape.roles],
            "never": list(shape.never),
            **({} if families is None else {"families": families.facts}),
            **plan.details.public,
        },
        "method": plan.method,
        **({"settings": dict(plan.details.settings)} if plan.details.settings else {}),
        "sampling": {
            "rows": rows,
            "seed": seed,
            "drawn": drawn,
        },
        "not_promised": list(NOT_PROMISED),
        "versions": dict(_versions()),
    }


def _budget_in_guarantee(budget: Budget) -> dict[str, Any]:
    return {
        "accounting": in_words(budget),
        "rho": float(budget.rho),
        "definition": "pure differential privacy" if budget.kind == "pure" else "(epsilon, delta)",
    }


@cache
def _versions() -> Mapping[str, str]:
    """Of this process; read once, since reading them takes longer than counting a small table."""
    return {name: metadata.version(name) for name in _VERSIONED}


def _public_name(relation: Relation) -> str:
    """A file name without its folders: readers of a release need not know the owner's machine."""
    if relation.kind in ("parquet", "csv"):
        return Path(relation.name).name
    read = _READ.sub(lambda call: _LITERAL.sub(_without_folders, call[0]), relation.name)
    return _LITERAL.sub(lambda text: _without_folders(text) if _names_file(text) else text[0], read)


_LITERAL = re.compile(r"((?<!\bDISTINCT\s)\b(?:FROM|JOIN)\s*)?'((?:[^']|'')*+)'", re.IGNORECASE)
_READ = re.compile(r"\b(?:read_\w+|\w*_scan)\s*\((?:[^()']|'(?:[^']|'')*+')*+", re.IGNORECASE)
# Files come first among the arguments, before any parenthesis within them. Possessive: no text is read twice.
_ENDINGS = (".parquet", ".csv", ".csv.gz")


def _names_file(literal: re.Match[str]) -> bool:
    """Other literals are part of the query's meaning and stay unchanged."""
    return bool(literal[1]) or literal[2].lower().endswith(_ENDINGS)


def _without_folders(literal: re.Match[str]) -> str:
    return f"{literal[1] or ''}'{literal[2].rsplit('/', 1)[-1]}'"


def _unit_in_words(plan: Plan) -> str:
    column, kind = plan.source.unit.column, plan.source.relation.kind
    if column is not None:
        return column
    return f"a row of the {kind}'s result" if kind in ("query", "view") else "row"


def _mechanisms(plan: Plan, events: Sequence[PrivacyEvent]) -> list[dict[str, Any]]:
    """The step that each event belongs to.

    Discovery asks one question a step, in order, as does the method before its first look. All later events
    are of what is reserved.
    """
    steps: list[dict[str, Any]] = [
        {
            "step": f"discover {step.ask}",
            "column": step.attr,
            **({"length": step.length} if step.length else {}),
        }
        for step in plan.discovery
    ]
    steps += [{"step": "pairs of rows of a unit"}] * plan.sibling_questions
    steps += [_of_question(asked) for asked in plan.asked]
    reserved = {"step": "; ".join(reserve.name for reserve in plan.reserves)}
    steps += [reserved] * max(0, len(events) - len(steps)) if plan.reserves else []
    return [{**step, **event_to_dict(event)} for step, event in zip(steps, events, strict=False)]


_OF_STEP = ("step", "table", "column", "length", "marginals", "residuals")


def event_of(mechanism: Mapping[str, Any]) -> PrivacyEvent:
    """The event among the facts of a mechanism."""
    return event_from_dict({key: value for key, value in mechanism.items() if key not in _OF_STEP})


def _of_question(asked: Asked) -> dict[str, Any]:
    return {"step": asked.name, "residuals" if asked.residuals else "marginals": len(asked.queries)}


def measured_facts(item: Attribute | Undiscovered) -> dict[str, Any]:
    """What is public about one measured column before anything is read, JSON-ready. How the codes of a
    reference are called decides no answer: it is no part of it."""
    if isinstance(item, Attribute):
        return {key: fact for key, fact in attribute_facts(item).items() if key != "named"}
    return {
        "name": item.name,
        # An ENUM without a name may have been made from the rows.
        "type": "ENUM" if item.sql_type.startswith("ENUM(") else item.sql_type,
        "kind": item.kind,
        "origin": "to be discovered",
        "codes": item.max_codes,
        "nullable": item.nullable,
        "bounds": [None if bound is None else str(bound) for bound in (item.least, item.most)],
        **({} if item.typed else {"type": "to be discovered"}),
        **({"prefixes": list(item.prefixes)} if item.prefixes else {}),
        **({} if item.hierarchy is None else {"hierarchy": dict(item.hierarchy.named())}),
    } | _source_facts(item)


def attribute_facts(attribute: Attribute) -> dict[str, Any]:
    """What is public about one attribute, JSON-ready."""
    facts: dict[str, Any] = {
        "name": attribute.name,
        "type": attribute.sql_type,
        "kind": attribute.kind,
        "origin": attribute.origin,
        "codes": attribute.size,
        "nullable": attribute.nullable,
        "ordered": attribute.ordered,
    } | _source_facts(attribute)
    facts |= {"form": attribute.form} if attribute.form else {}
    if attribute.kind == "categorical":
        further: dict[str, Any] = {"prefixes": list(attribute.prefixes)} if attribute.prefixes else {}
        further |= {"named": list(attribute.named)} if attribute.named else {}
        if attribute.leaves is not None:
            written = ", ".join(
                column.sql_type if column.name == attribute.name else f"{column.name} {column.sql_type}"
                for column in attribute.columns
            )
            further |= {"written": written, "leaves": leaves_facts(attribute.leaves)}
        return facts | {"labels": list(attribute.labels), "other": attribute.other, **further}
    facts |= {"edges": [_plain(edge) for edge in attribute.edges]}
    if attribute.granularity is not None:
        facts["granularity"] = _plain(attribute.granularity)
    if any(attribute.beyond):
        facts["beyond"] = list(attribute.beyond)
    return facts | ({"fill": _fill_facts(attribute)} if attribute.fill else {})


def _fill_facts(attribute: Attribute) -> list[list[int | float | str] | None]:
    """The cuts of every bin; None for a bin that is filled evenly over its edges."""
    return [
        None if cuts == edges else [_plain(cut) for cut in cuts]
        for cuts, edges in zip(attribute.fill, pairwise(attribute.edges), strict=True)
    ]


def _source_facts(item: Attribute | Undiscovered) -> dict[str, Any]:
    """The expression that gives the values, if it is not the column of the name."""
    return {} if item.source is None else {"source": str(item.source)}


def _plain(edge: object) -> int | float | str:
    return edge if isinstance(edge, int | float) else str(edge)


def types_facts(types: Mapping[str, FoundType]) -> dict[str, Any]:
    """The found types with the noisy share of values that become NULL, JSON-ready; nothing if none was
    looked for."""
    shares = {
        name: {"type": kind.sql_type, "becomes_null": round(kind.odd, 4)} for name, kind in types.items()
    }
    return {"found_types": shares} if shares else {}


# -- tables of a tree ---------------------------------------------------------------------------------

_SHARED = frozenset(
    ["release", "debited_at", "guarantee", "budget", "mechanisms", "not_promised", "versions", "database"]
)
"""Facts of a table's certificate that stand once in that of the release."""

_NEIGHBOURS = (
    "add or remove one privacy unit with all its rows in all tables; the numbers of rows are private"
)

_GRADES = ("good", "rough", "do not use")


def id_of_table(tree: Tree, release: str, table: str) -> str:
    """The id of a table of a release; that of the only table is the release's."""
    return release if len(tree.tables) == 1 else f"{release}.{table}"


def name_of_table(tree: Tree, name: str, table: str) -> str:
    """The name that a table of a release is stored by, for ``load()``, ``dpsyn_sample`` and
    ``dpsyn_marginal``; that of the only table is the release's."""
    return name if len(tree.tables) == 1 else f"{name}.{table}"


def certificate_in_tree(facts: Facts, tree: Tree, table: str, *, name: str, budget: Budget) -> dict[str, Any]:
    """The certificate of a table of a tree: its guarantee is that of all tables together.

    Args:
        facts: of ``certificate()`` for the table by itself, with the id of the release and what is claimed of
            all tables together.
        tree: of all tables.
        table: its name in the tree.
        name: of the release.
        budget: of all tables together, as it was charged.

    Returns:
        Of the only table the same facts. Otherwise with the guarantee and the budget of the whole (``used``
        is what the table used), and, under ``"database"``, JSON-ready: ``name``, ``release``, ``table``,
        ``tables`` (the root first: each with ``table``, ``parent``, ``most``, ``rows_per_unit``),
        ``public_tables``, ``not_protected``.
    """
    in_tree = copy.deepcopy(dict(facts))
    if len(tree.tables) == 1:
        return in_tree
    release = str(facts["release"])
    in_tree["release"] = id_of_table(tree, release, table)
    in_tree["guarantee"] |= {
        **_budget_in_guarantee(budget),
        "neighbours": _NEIGHBOURS,
        "privacy_unit": ", ".join(f"{tree.root.name}.{column}" for column in tree.root.key),
        "rows_per_unit": tree.rows_per_unit(table),
    }
    in_tree["budget"] |= {
        "kind": budget.kind,
        "reserved_units_of_1e-15": budget.amount,
        "threshold_delta": budget.delta / DELTA_UNITS,
    }
    in_tree["database"] = {
        "name": name,
        "release": release,
        "table": table,
        "tables": [
            {
                "table": member.name,
                "parent": member.parent,
                "most": member.most,
                "rows_per_unit": tree.rows_per_unit(member.name),
            }
            for member in tree
        ],
        "public_tables": [public.name for public in tree.public],
        "not_protected": list(tree.not_protected),
    }
    return in_tree


def certificate_of_release(tables: Mapping[str, Facts]) -> dict[str, Any]:
    """The certificate of the whole release, JSON-ready, from those of its tables.

    Of one table by itself it is the same. Of several the guarantee, the budget (``used`` by all tables), what
    is not promised and versions stand once; ``mechanisms`` has those of all tables, each with its ``table``;
    ``tree`` has the tables as ``certificate_in_tree`` says, and ``tables`` all other facts of each by its
    name. ``losses`` has the verdict of the worst table, and the warnings of all tables, each after the name
    of its table.

    Args:
        tables: by name the certificate of each table.

    Raises:
        InputError: they are not those of all tables of one release.
    """
    first = next(iter(tables.values()), {})
    if len(tables) == 1 and "database" not in first:
        return dict(first)
    if first.get("database") is None:
        raise InputError("These are not the certificates of a release of several tables.")
    tree = first["database"]
    names = [str(member["table"]) for member in tree["tables"]]
    complete = all(_belongs(facts, first, table) for table, facts in tables.items())
    if not complete or set(tables) != set(names):
        raise InputError(
            f"The stored release {tree['name']!r} was changed or is damaged: its tables are not of one "
            "release. The same call of release() with replace=True stores it again and costs "
            "nothing more."
        )
    used = sum(int(facts["budget"]["used_units_of_1e-15"]) for facts in tables.values())
    shared = copy.deepcopy(dict(first))
    guarantee = {key: value for key, value in shared["guarantee"].items() if key != "rows_per_unit"}
    return {
        "release": tree["release"],
        "name": tree["name"],
        "debited_at": shared["debited_at"],
        "guarantee": guarantee | {"protects": protected_words(tree["tables"])},
        "mechanisms": [{"table": name, **step} for name in names for step in tables[name]["mechanisms"]],
        "budget": shared["budget"] | {"used_units_of_1e-15": used},
        "tree": copy.deepcopy(tree["tables"]),
        "public_tables": list(tree["public_tables"]),
        "not_protected": list(tree["not_protected"]),
        "tables": {name: _of_table_alone(tables[name]) for name in names},
        "losses": _worst({name: tables[name]["losses"] for name in names}),
        "not_promised": shared["not_promised"],
        "versions": shared["versions"],
    }


def _belongs(facts: Facts, first: Facts, table: str) -> bool:
    """Whether a certificate is that of a table of the same release."""
    tree, expected = facts.get("database"), first["database"]
    guarantees = ({**certified["guarantee"], "rows_per_unit": 0} for certified in (facts, first))
    return (
        tree is not None
        and {**tree, "table": ""} == {**expected, "table": ""}
        and tree["table"] == table
        and facts["release"] == f"{expected['release']}.{table}"
        and len({str(guarantee) for guarantee in guarantees}) == 1
    )


def _of_table_alone(facts: Facts) -> dict[str, Any]:
    return {key: copy.deepcopy(value) for key, value in facts.items() if key not in (*_SHARED, "database")}


def _worst(losses: Mapping[str, Facts]) -> dict[str, Any]:
    """Verdicts of the worst of the tables, and all warnings."""
    verdicts: dict[str, Any] = {}
    for about in ("table", "dependences"):
        table = max(losses, key=lambda name: _badness(losses[name][about]))
        worst = losses[table][about]
        verdicts[about] = {**worst, "why": f"{table}: {worst['why']}"} if "why" in worst else dict(worst)
    warnings = [f"{table}: {text}" for table, lost in losses.items() for text in lost["warnings"]]
    return verdicts | {"warnings": warnings}


def _badness(verdict: Facts) -> tuple[int, float]:
    return _GRADES.index(verdict["verdict"]), float(verdict.get("harm", 0.0))


def protected_words(tables: Sequence[Facts]) -> str:
    """Whom a release protects, as one clause: ``one row of customers with all rows that belong to it, of
    which at most 16 rows of orders (each with at most 32 rows of items) count``.

    Args:
        tables: as the certificate has them, the root first.
    """
    root = next(str(table["table"]) for table in tables if table["parent"] is None)
    below = _with_rows(tables, root)
    return f"one row of {root}" + (
        f" with all rows that belong to it, of which {below} count" if below else ""
    )


def _with_rows(tables: Sequence[Facts], parent: str) -> str:
    clauses = []
    for table in tables:
        if table["parent"] == parent:
            below = _with_rows(tables, str(table["table"]))
            rows = f"at most {counted(int(table['most']), 'row')} of {table['table']}"
            clauses.append(f"{rows} (each with {below})" if below else rows)
    return f"{', '.join(clauses[:-1])} and {clauses[-1]}" if len(clauses) > 1 else "".join(clauses)

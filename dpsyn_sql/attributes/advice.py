"""What is odd about a declaration, most important first, each with its cure: from public facts alone.

The facts are the domain file, and the catalog (or the header) of the source. No function here reads a row, so
nothing here knows whether a declaration is right: it knows what a release could make of it. The rules are in
``oddities.py``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.document import load_yaml
from dpsyn_sql.attributes.file import DomainFile, DomainSpec, Fit, read_domain
from dpsyn_sql.attributes.oddities import RULES
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.spec import ColumnSpec, Item, natural_kind
from dpsyn_sql.attributes.types import parse_type
from dpsyn_sql.attributes.unit import Case, Finding, Table, names_a_code, names_an_identifier, names_money
from dpsyn_sql.errors import DomainError
from dpsyn_sql.source.names import fold
from dpsyn_sql.source.relation import Column, Relation

_ORDER = {"fault": 0, "serious": 1, "hint": 2}
_ABOUT_A_COLUMN = re.compile(r"column '((?:[^'\\\\]|\\\\.)*)':? (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Advice:
    """Findings, the most important first, and a domain to begin with.

    ``domain``: a mapping for the columns that nothing public is known of. It can be passed as ``domain=`` as
    it is; more is kept once bounds and categories are filled in. It is empty where a domain was given.
    """

    findings: tuple[Finding, ...]
    domain: Mapping[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __str__(self) -> str:
        return "\n".join(f"{finding.severity}: {finding}" for finding in self.findings)


def advise(
    spec: DomainSpec,
    relation: Relation | None,
    *,
    unit: Column | None = None,
    stated: bool = False,
    exclude: Collection[str] = (),
    most_cells: int,
) -> Advice:
    """Judge a domain file, a catalog, or both.

    Args:
        spec: a domain file, or the same as a mapping; None: the catalog alone.
        relation: the source as its catalog states it; None: the file alone.
        unit: the privacy unit's column; None: one row is protected.
        stated: the owner said whom to protect.
        exclude: names of columns that are not written.
        most_cells: of a pair that is measured at all.

    Raises:
        DomainError: the file cannot be read, is no YAML, or has no ``columns:``.
    """
    document = DomainFile({}, {}) if spec is None else read_domain(spec)
    by_row = unit is None and not stated
    table = _table(spec, document, relation, unit, exclude, most_cells, by_row=by_row)
    faults = list(document.faults) if relation is None else _faults(document, relation, exclude, unit)
    findings = [_told(fault) for fault in faults]
    findings += [finding for rule in RULES for finding in rule(table)]
    findings.sort(key=lambda finding: _ORDER[finding.severity])
    return Advice(tuple(_once(findings)), {} if spec is not None else _beginning(table))


def advise_table(
    name: str,
    declared: Mapping[str, Any],
    document: DomainFile,
    relation: Relation | None,
    *,
    tied: Collection[str],
    most_cells: int,
) -> list[Finding]:
    """Judge one table of a database's file by the same rules.

    Args:
        name: of the table; findings name ``table.column``.
        declared: the entries under its ``columns:``, as the owner wrote them.
        document: the same, read.
        relation: the table as its catalog states it; None: the file alone.
        tied: columns of its keys and references, which have no domain of their own.
        most_cells: of a pair that is measured at all.
    """
    tied = {fold(column) for column in tied}
    columns = {column: entry for column, entry in document.columns.items() if fold(column) not in tied}
    document = replace(document, columns=columns)
    here = () if relation is None else relation.columns
    exclude = [column.name for column in here if fold(column.name) in tied]
    spec = {"columns": declared}
    table = _table(spec, document, relation, None, exclude, most_cells, by_row=False)
    findings = [_told(fault) for fault in document.faults] if relation is None else []
    findings += [finding for rule in RULES for finding in rule(table)]
    return [
        replace(issue, column=name if issue.column is None else f"{name}.{issue.column}")
        for issue in _once(findings)
    ]


def refused_of_tables(fault: str, tables: Collection[str]) -> Finding:
    """What a release of a database refuses, as a finding: of a column ``table.column``, or of a table."""
    name = next((table for table in tables if fault.startswith(f"{table}: ")), None)
    if name is None:
        return Finding(None, fault, "correct the file of the database", "fault")
    finding = _told(fault.removeprefix(f"{name}: "))
    return replace(finding, column=name if finding.column is None else f"{name}.{finding.column}")


def in_order(findings: Collection[Finding]) -> Advice:
    """The findings on all tables of a database's file, the most important first."""
    return Advice(tuple(sorted(findings, key=lambda finding: _ORDER[finding.severity])))


def serious_findings(
    spec: DomainSpec,
    relation: Relation,
    *,
    unit: Column | None,
    exclude: Collection[str],
    most_cells: int,
) -> tuple[Finding, ...]:
    """What ruins a column of a release; arguments as of ``advise``. What a release says itself is not among
    them: whom it protects, and that it learns types of CSV."""
    document = DomainFile({}, {}) if spec is None else read_domain(spec)
    table = _table(spec, document, relation, unit, exclude, most_cells, by_row=False)
    findings = [finding for rule in RULES for finding in rule(replace(table, csv=False))]
    return tuple(finding for finding in findings if finding.severity == "serious")


def _table(
    spec: DomainSpec,
    document: DomainFile,
    relation: Relation | None,
    unit: Column | None,
    exclude: Collection[str],
    most_cells: int,
    *,
    by_row: bool,
) -> Table:
    columns = _of_file(document) if relation is None else relation.columns
    csv = relation is not None and relation.kind == "csv"
    fit = document.fitted(columns, exclude, csv=csv, discover=True, unit=unit)
    stated = _stated(spec)
    judged = [(c, item) for c, item in fit.outcomes if unit is None or fold(c.name) != fold(unit.name)]
    cases = [_case(column, item, document, fit, stated) for column, item in judged]
    return Table(cases, columns, relation is not None, csv, by_row, most_cells)


def _of_file(document: DomainFile) -> list[Column]:
    """The columns of a file without a source, with the types that their declarations imply."""
    columns: list[Column] = []
    for name, entry in document.columns.items():
        stated = parse_type(document.sql_types.get(name, ""))
        spec = entry or ColumnSpec()
        parts = zip(spec.parts or (name,), spec.implied_types(), strict=True)
        columns.extend(Column(part, (stated or implied).text) for part, implied in parts)
    return columns


def _stated(spec: DomainSpec) -> dict[str, frozenset[str]]:
    """The keys that the owner wrote of each column."""
    if spec is None:
        return {}
    document = spec if isinstance(spec, Mapping) else load_yaml(Path(spec))
    entries = document.get("columns") or {}
    return {name: frozenset(entry) for name, entry in entries.items() if isinstance(entry, Mapping)}


def _case(
    column: Column, item: Item | None, document: DomainFile, fit: Fit, stated: Mapping[str, frozenset[str]]
) -> Case:
    kind = item.type if isinstance(item, Attribute) else parse_type(column.sql_type)
    declared = fit.names.get(column.name, column.name)
    if isinstance(item, Undiscovered) and item.hierarchy is not None:
        declared = fit.names.get(column.name, item.name)  # a point has a name of its own
    return Case(column, kind, document.columns.get(declared), stated.get(declared, frozenset()), item)


def _faults(
    document: DomainFile, relation: Relation, exclude: Collection[str], unit: Column | None
) -> tuple[str, ...]:
    """What a release would refuse."""
    try:
        document.to_shape(
            relation.columns,
            exclude,
            csv=relation.kind == "csv",
            discover=True,
            unit=unit,
            checks=relation.checks,
        )
    except DomainError as error:
        return error.faults
    return ()


def _told(fault: str) -> Finding:
    """A fault as a finding; what to do about it is part of its text."""
    match = _ABOUT_A_COLUMN.fullmatch(fault)
    problem, _, cure = (fault if match is None else match[2]).partition("; ")
    return Finding(None if match is None else match[1], problem, cure or "correct the domain file", "fault")


def _once(findings: Collection[Finding]) -> Iterator[Finding]:
    """Without hints about what a fault already names."""
    wrong = {finding.column for finding in findings if finding.severity == "fault"} - {None}
    for finding in findings:
        if finding.severity == "fault" or finding.column not in wrong:
            yield finding


def _beginning(table: Table) -> dict[str, Any]:
    """A domain mapping that a release takes as it is: keys, codes and granularities that names suggest."""
    columns = {}
    for case in table.cases:
        if case.kind is None or isinstance(case.item, Attribute) or case.column.unique:
            continue
        columns[case.name] = _first_entry(case)
    return {"columns": columns}


def _first_entry(case: Case) -> dict[str, Any]:
    family, entry = (case.kind.family if case.kind else ""), dict[str, Any]()
    if family == "uuid" or fold(case.name) == "id":
        return {"type": "key"}
    entry["type"] = "discover"
    if family == "integer" and (names_a_code(case.name) or names_an_identifier(case.name)):
        entry["as"] = "categorical"
    if family == "float" and names_money(case.name):
        entry["granularity"] = "0.01"
    if case.kind is not None and natural_kind(case.kind) == "temporal" and family == "timestamp":
        entry["granularity"] = "second"
    return entry

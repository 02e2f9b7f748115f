"""PRIVATE: can the released model tell the rows that it was made of from rows that it never saw?

The score of a row is the logarithm of its probability under the network that the release draws its rows from
(Homer et al. 2008, Yeom et al. 2018). What it can show is bounded by the promise of the release.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from dpsyn_sql.accounting.account import shown
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.open_source import Given
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.engines.stored_releases import Stored, StoredSession, opened_releases
from dpsyn_sql.errors import EngineFailure, InputError
from dpsyn_sql.evaluation.codes import drawn_sql
from dpsyn_sql.evaluation.session import Session
from dpsyn_sql.private.rows.codes import encode_query
from dpsyn_sql.report.stored import read_parts
from dpsyn_sql.report.stored_facts import facts_of
from dpsyn_sql.source.files import ending_of, file_beside
from dpsyn_sql.source.names import absolute_path, fold, listed, shorten, split_name
from dpsyn_sql.sqltext.fragments import Fragment, ident
from dpsyn_sql.sqltext.render import render

CONFIDENCE = 0.95

COLUMNS = (
    *("release", "auc", "low", "high", "advantage", "bound", "bound_by"),
    *("members", "others", "members_never_drawn", "others_never_drawn"),
)

MEANING = (
    "The membership test asks whether the released model gives the rows it was made of a higher likelihood "
    "than rows it never saw. An AUC near one half does not prove privacy: another test may see more. The "
    "bound is on the mean over releases, if real rows and holdout were split at random: an AUC well above "
    "it shows a bug, or a holdout of other rows (another year, another group); one release can exceed it by "
    "chance."
)
"""What the test can and cannot show."""

_STEP = "encoding rows for the membership test"

_IDS = ("key", "unitid")
"""Roles of columns that get fresh values, which say nothing about the real ones."""

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Columns = Mapping[str, NDArray[Any]]


# -- the stored release ----------------------------------------------------------------------------


@contextlib.contextmanager
def stored_release(
    con: Connection, engine: DuckDBEngine, synthetic: Given
) -> Iterator[tuple[StoredSession, Stored]]:
    """The release that wrote a table: of a file from the model beside it, else from the database.

    Raises:
        InputError: there is none; the message says why.
    """
    path = _beside(synthetic)
    if path is not None:
        with opened_releases(path) as stored:
            yield stored, stored.find(None)
        return
    if con is None:
        raise InputError("there is no stored model beside the synthetic table (NAME.dpsyn.duckdb).")
    stored, table = StoredSession(engine, "the database"), os.fspath(synthetic)
    name_parts = split_name(table) or (table,)
    names = {fold(".".join(name_parts[start:])) for start in range(len(name_parts))}
    releases = stored.releases()
    matching = [release for release in releases if fold(release.name) in names]
    if len(matching) != 1:
        raise InputError(
            f"no stored release has the name of the synthetic table {shorten(repr(table))}; stored are "
            f"{listed(sorted(release.name for release in releases))}."
        )
    yield stored, matching[0]


def _beside(synthetic: Given) -> Path | None:
    """The released file, if its model lies beside it."""
    text = os.fspath(synthetic)
    if ending_of(text) is None or "\x00" in text:
        return None
    path = absolute_path(text)
    return path if file_beside(path).is_file() else None


def identifiers(con: Connection, engine: DuckDBEngine, synthetic: Given) -> set[str] | None:
    """Folded names of the columns to which the release gave fresh ids; None if there is no stored release."""
    with (
        contextlib.suppress(InputError, EngineFailure),
        stored_release(con, engine, synthetic) as (_, release),
    ):
        roles = facts_of(release.certificate)["public_facts"]["roles"]
        return {fold(role["name"]) for role in roles if role["role"] in _IDS}
    return None


# -- the probability of a row ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines of one node: ``parent`` and ``value`` are numbers of configurations, row-major over
    ``parent_sizes`` and ``sizes``; ``weight`` is as often as a line is drawn given its parents."""

    parents: tuple[int, ...]
    parent_sizes: tuple[int, ...]
    variables: tuple[int, ...]
    sizes: tuple[int, ...]
    parent: IntArray
    value: IntArray
    weight: IntArray

    def columns(self) -> dict[int, IntArray]:
        """The value of each variable in each line."""
        return {
            **dict(zip(self.parents, _digits(self.parent, self.parent_sizes), strict=True)),
            **dict(zip(self.variables, _digits(self.value, self.sizes), strict=True)),
        }

    def log_shares(self) -> FloatArray:
        """The logarithm of each line's probability given its parents."""
        _, group = np.unique(self.parent, return_inverse=True)
        totals = np.bincount(group, self.weight)
        return np.asarray(np.log(self.weight) - np.log(totals[group]))


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The distribution of a row's codes; made by ``likelihood_of``. ``order``: the nodes; ``codes``: the
    variable of each attribute; ``derived``: of every other variable the node and the variables that it
    follows from, in the order in which they can be derived."""

    nodes: tuple[_Lines, ...]
    codes: tuple[int | None, ...]
    derived: tuple[tuple[int, int, tuple[int, ...]], ...]

    def log(self, codes: IntArray) -> FloatArray:
        """The logarithm of the probability of each row; -inf for a row that is never drawn.

        Args:
            codes: int64 (rows, attributes).
        """
        rows = len(codes)
        values = {v: codes[:, position] for position, v in enumerate(self.codes) if v is not None}
        result = np.zeros(rows)
        for variable, number, sources in self.derived:
            columns = self.nodes[number].columns()
            line = _find([columns[v] for v in sources], [values[v] for v in sources])
            result[line < 0] = -np.inf
            values[variable] = np.where(line < 0, 0, columns[variable][line])
        for node in self.nodes:
            columns, drawn = node.columns(), (*node.parents, *node.variables)
            line = _find([columns[v] for v in drawn], [values[v] for v in drawn])
            result += np.where(line < 0, -np.inf, node.log_shares()[line])
        return result


def likelihood_of(shares: Columns, variables: Columns, attributes: int) -> Likelihood | None:
    """The distribution that is stored; None if a variable of it is no function of the codes.

    Args:
        shares: columns node, parent, value, weight.
        variables: columns node, place, parent, variable, size, attribute.
        attributes: how many there are; one without a variable has one code.

    Raises:
        InputError: the tables contradict each other.
    """
    if set(np.unique(shares["node"]).tolist()) != set(np.unique(variables["node"]).tolist()):
        raise InputError("The network of the stored release was changed or is damaged: its nodes differ.")
    nodes = tuple(_lines(shares, variables, node) for node in np.unique(variables["node"]).tolist())
    codes: list[int | None] = [None] * attributes
    for variable, attribute in zip(
        variables["variable"].tolist(), variables["attribute"].tolist(), strict=True
    ):
        if attribute >= attributes:
            raise InputError("The network of the stored release was changed or is damaged: its attributes.")
        if attribute >= 0:
            codes[attribute] = variable
    derived = _functions(nodes, {v for v in codes if v is not None})
    return None if derived is None else Likelihood(nodes, tuple(codes), derived)


def _lines(shares: Columns, variables: Columns, node: int) -> _Lines:
    positions = np.flatnonzero(variables["node"] == node)
    positions = positions[np.argsort(variables["place"][positions], kind="stable")]
    above, drawn = positions[variables["parent"][positions]], positions[~variables["parent"][positions]]
    lines = np.flatnonzero(shares["node"] == node)

    def named(indices: IntArray) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return tuple(variables["variable"][indices].tolist()), tuple(variables["size"][indices].tolist())

    drawn_lines = (shares[name][lines].astype(np.int64) for name in ("parent", "value", "weight"))
    node_lines = _Lines(*named(above), *named(drawn), *drawn_lines)
    for numbers, sizes in (
        (node_lines.parent, node_lines.parent_sizes),
        (node_lines.value, node_lines.sizes),
    ):
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < np.prod(sizes, dtype=float):
            raise InputError("The network of the stored release was changed or is damaged: its numbers.")
    return node_lines


def _functions(
    nodes: Sequence[_Lines], available: set[int]
) -> tuple[tuple[int, int, tuple[int, ...]], ...] | None:
    """How each other variable follows from known ones; None if one does not."""
    available = set(available)
    missing = {v for node in nodes for v in (*node.parents, *node.variables)} - available
    steps = list[tuple[int, int, tuple[int, ...]]]()
    while missing:
        step = _next(nodes, available, missing)
        if step is None:
            return None
        steps.append(step)
        available.add(step[0])
        missing.discard(step[0])
    return tuple(steps)


def _next(
    nodes: Sequence[_Lines], available: set[int], missing: set[int]
) -> tuple[int, int, tuple[int, ...]] | None:
    for number, node in enumerate(nodes):
        columns = node.columns()
        sources = tuple(v for v in columns if v in available)
        for variable in columns:
            if variable in missing and sources and _follows(columns[variable], [columns[v] for v in sources]):
                return variable, number, sources
    return None


def _follows(column: IntArray, sources: Sequence[IntArray]) -> bool:
    """Whether lines that are equal in ``sources`` are equal in ``column``."""
    groups = _numbered(sources)
    first = np.full(int(groups.max()) + 1, -1, np.int64)
    first[groups] = column
    return bool((first[groups] == column).all())


def _digits(numbers: IntArray, sizes: Sequence[int]) -> list[IntArray]:
    """The values that row-major numbers stand for."""
    return list(np.unravel_index(numbers, sizes)) if sizes else []


def _numbered(columns: Sequence[IntArray]) -> IntArray:
    """A number for each different row; no number is as large as the rows are many."""
    rows = pd.DataFrame(dict(enumerate(columns)))
    return np.asarray(rows.groupby(list(rows.columns), sort=False).ngroup(), np.int64)


def _find(columns: Sequence[IntArray], wanted: Sequence[IntArray]) -> IntArray:
    """Of each wanted row the position of an equal row of ``columns``; -1 if there is none."""
    lines = len(columns[0])
    groups = _numbered([np.concatenate(pair) for pair in zip(columns, wanted, strict=True)])
    line_of_group = np.full(int(groups.max()) + 1, -1, np.int64)
    line_of_group[groups[:lines]] = np.arange(lines)
    return line_of_group[groups[lines:]]


# -- the test --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Model:
    """What is needed of a stored release."""

    name: str
    facts: Mapping[str, Any]
    domain: Domain
    likelihood: Likelihood


def membership(
    session: Session, con: Connection, synthetic: Given, seed: int = 1
) -> tuple[pd.DataFrame | None, list[str]]:
    """AUC of the log-likelihood under the released model: real rows beside rows of the holdout.

    Columns: ``COLUMNS``. ``low`` and ``high`` are the ends of a 95 % interval by the variance of DeLong,
    DeLong and Clarke-Pearson (1988), for rows drawn independently; ``advantage`` is the largest difference
    of true and false positives; ``bound`` is the largest mean AUC that the promise allows, by the accounting
    in ``bound_by``. At most ``MOST_ROWS`` rows of each table are drawn by a seed.

    Returns:
        The table, or None where it cannot be computed; and what a reader must know.
    """
    if "holdout" not in session.tables:
        return None, [
            "No membership test: it needs holdout=, real rows of the same population that the release did "
            "not see."
        ]
    model, why = _model(session, con, synthetic)
    if model is None:
        return None, [f"No membership test: {why}"]
    members, non_members = (
        model.likelihood.log(_codes(session, session.tables[name], session.rows[name], model.domain, seed))
        for name in ("real", "holdout")
    )
    auc, low, high = area_with_interval(members, non_members)
    bound, by = auc_bound(model.facts)
    never = (float(np.isneginf(scores).mean()) for scores in (members, non_members))
    line = [
        model.name,
        auc,
        low,
        high,
        advantage(members, non_members),
        bound,
        by,
        len(members),
        len(non_members),
        *never,
    ]
    notes = [MEANING]
    if math.isnan(bound):
        notes.append(
            "The bound of the membership test is for units of one row; this release protects units of "
            "several."
        )
    return pd.DataFrame([line], columns=list(COLUMNS)), notes


# -- the stored model ----------------------------------------------------------------------------


def _model(session: Session, con: Connection, synthetic: Given) -> tuple[_Model | None, str]:
    """The model of the release that wrote the synthetic table; else why there is none."""
    try:
        with stored_release(con, session.engine, synthetic) as (stored, release):
            return _read(stored, release, session), ""
    except InputError as error:
        return None, str(error)


def _read(stored: StoredSession, release: Stored, session: Session) -> _Model:
    """The model of a release.

    Raises:
        InputError: it has no likelihood, or is not of these tables.
    """
    contents = read_parts(release.total, release.certificate, stored.tables(release))
    if contents.rows != session.rows["synthetic"]:
        raise InputError(
            f"release {release.name!r} wrote {contents.rows:,} rows, and the synthetic table has "
            f"{session.rows['synthetic']:,}: it is not the same, or was changed."
        )
    domain, network = contents.model.domain, stored.network(release)
    if not len(network["shares"]["node"]):
        raise InputError(
            f"the model of release {release.name!r} (method {contents.facts['method']}) is no network."
        )
    _refuse_unreadable(domain, contents.facts, session)
    likelihood = likelihood_of(network["shares"], network["variables"], len(domain.attributes))
    if likelihood is None:
        raise InputError(f"the network of release {release.name!r} has variables that no row shows.")
    return _Model(release.name, contents.facts, domain, likelihood)


def _refuse_unreadable(domain: Domain, facts: Mapping[str, Any], session: Session) -> None:
    """Refuse rows that cannot be encoded."""
    compared = {fold(column.name) for column in session.columns}
    described = {item["name"]: item for item in facts["public_facts"]["domain"]}
    for attribute in domain.attributes:
        if "source" in described[attribute.name]:
            raise InputError(f"column {attribute.name!r} of the release is computed from others.")
        missing = [column.name for column in attribute.columns if fold(column.name) not in compared]
        if missing:
            raise InputError(f"column {missing[0]!r} of the release is not compared.")


# -- codes of rows -------------------------------------------------------------------------------


def _codes(session: Session, relation: Fragment, rows: int, domain: Domain, seed: int) -> NDArray[np.int64]:
    """The codes (rows, attributes) of some rows of a table."""
    columns = [column for attribute in domain.attributes for column in _columns(attribute)]
    drawn = drawn_sql(relation, [value for value, _ in columns], rows, seed)
    aliased = [Fragment(f"c{index} AS {name}") for index, (_, name) in enumerate(columns)]
    typed = render("source/frame", columns=aliased, frame=Fragment(f"(\n{drawn}\n)"))
    packs = [(index,) for index in range(len(domain.attributes))]
    packed = session.engine.fetch(encode_query(typed, domain, packs), step=_STEP)
    return np.stack([np.asarray(packed[f"p{index}"], np.int64) for index in range(len(packs))], axis=1)


def _columns(attribute: Attribute) -> list[tuple[Fragment, Fragment]]:
    """The values of an attribute's columns in their types, and their names."""
    return [
        (Fragment(f"TRY_CAST({ident(column.name)} AS {column.type.sql})"), ident(column.name))
        for column in attribute.columns
    ]


# -- figures -------------------------------------------------------------------------------------


def area_with_interval(members: FloatArray, non_members: FloatArray) -> tuple[float, float, float]:
    """The share of pairs in which the member has the higher score (ties one half), and the ends of its
    interval, by DeLong's variance and the normal law, kept between 0 and 1."""
    m, n = len(members), len(non_members)
    together = rankdata(np.concatenate([members, non_members]))
    own_members, own_others = rankdata(members), rankdata(non_members)
    of_members = (together[:m] - own_members) / n
    of_others = 1 - (together[m:] - own_others) / m
    auc = float(of_members.mean())
    variance = sum(
        float(part.var(ddof=1)) / len(part) if len(part) > 1 else 0.25 for part in (of_members, of_others)
    )
    reach = float(ndtri((1 + CONFIDENCE) / 2)) * math.sqrt(variance)
    return auc, max(0.0, auc - reach), min(1.0, auc + reach)


def advantage(members: FloatArray, non_members: FloatArray) -> float:
    """The largest difference of the shares of members and of others at or above a threshold."""
    cuts = np.unique(np.concatenate([members, non_members]))
    above = [1 - np.searchsorted(np.sort(scores), cuts) / len(scores) for scores in (members, non_members)]
    return float(max(0.0, (above[0] - above[1]).max()))


def auc_bound(facts: Mapping[str, Any]) -> tuple[float, str]:
    """The largest mean AUC that the promise allows, and the accounting it follows from (docs/evaluation.md).

    A member and another row that change places are two changes of one row each, and turn the share p of
    pairs in which the member scores higher into 1 - p. So p <= e^(2 epsilon) (1 - p) + (1 + e^epsilon) delta.
    For mu-GDP with threshold delta t, p <= t + G(t + G(1 - p)) with G(a) = Phi(Phi^-1(a) + mu), which is
    p <= Phi(mu) for t = 0. NaN for units of several rows.
    """
    guarantee, budget = facts["guarantee"], facts["budget"]
    if guarantee["rows_per_unit"] != 1:
        return math.nan, ""
    epsilon, delta = float(guarantee["epsilon"]), float(guarantee["delta"])
    # (e^2eps + (1 + e^eps) delta) / (1 + e^2eps), without overflow
    bound = min(
        1.0, (1 + delta * (math.exp(-2 * epsilon) + math.exp(-epsilon))) / (1 + math.exp(-2 * epsilon))
    )
    if budget["kind"] != "gdp":
        return bound, f"epsilon={shown(epsilon)}, delta={delta:g}"
    mu, threshold = math.sqrt(2 * float(guarantee["rho"])), float(budget["threshold_delta"])
    exact = _gaussian_bound(mu, threshold)
    return (exact, f"mu={mu:.6g}") if exact < bound else (bound, f"epsilon={shown(epsilon)}, delta={delta:g}")


def _gaussian_bound(mu: float, threshold: float) -> float:
    """The largest p with p <= t + G(t + G(1 - p)), by bisection, rounded up."""

    def moved(share: float) -> float:
        return float(ndtr(ndtri(min(1.0, share)) + mu))

    low, high = 0.5, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if middle <= threshold + moved(threshold + moved(1 - middle)):
            low = middle
        else:
            high = middle
    return high

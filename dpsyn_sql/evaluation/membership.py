"""PRIVATE: can the released model tell the rows that it was made of from rows that it never saw?

The score of a row is the logarithm of its probability under the network that the release draws its rows from
(Homer et al. 2008, Yeom et al. 2018). What it can show is bounded by the promise of the release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from dpsyn_sql.accounting.account import shown
from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.engines.relations import Given
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.engines.stored_releases import Stored, StoredSession
from dpsyn_sql.errors import InputError
from dpsyn_sql.evaluation.drawing import drawn_sql
from dpsyn_sql.evaluation.likelihood import Likelihood, likelihood_of
from dpsyn_sql.evaluation.session import Session
from dpsyn_sql.evaluation.stored import stored_release
from dpsyn_sql.private.encode.codes import encode_query
from dpsyn_sql.report.stored import read_parts
from dpsyn_sql.source.names import fold
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

FloatArray = NDArray[np.float64]


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
    members, others = (
        model.likelihood.log(_codes(session, session.tables[name], session.rows[name], model.domain, seed))
        for name in ("real", "holdout")
    )
    auc, low, high = area_with_interval(members, others)
    bound, by = auc_bound(model.facts)
    never = (float(np.isneginf(scores).mean()) for scores in (members, others))
    line = [
        model.name,
        auc,
        low,
        high,
        advantage(members, others),
        bound,
        by,
        len(members),
        len(others),
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
        with stored_release(con, session.engine, synthetic) as (stored, one):
            return _read(stored, one, session), ""
    except InputError as error:
        return None, str(error)


def _read(stored: StoredSession, one: Stored, session: Session) -> _Model:
    """The model of a release.

    Raises:
        InputError: it has no likelihood, or is not of these tables.
    """
    parts = read_parts(one.total, one.certificate, stored.tables(one))
    if parts.rows != session.rows["synthetic"]:
        raise InputError(
            f"release {one.name!r} wrote {parts.rows:,} rows, and the synthetic table has "
            f"{session.rows['synthetic']:,}: it is not the same, or was changed."
        )
    domain, network = parts.model.domain, stored.network(one)
    if not len(network["shares"]["node"]):
        raise InputError(f"the model of release {one.name!r} (method {parts.facts['method']}) is no network.")
    _refuse_unreadable(domain, parts.facts, session)
    likelihood = likelihood_of(network["shares"], network["variables"], len(domain.attributes))
    if likelihood is None:
        raise InputError(f"the network of release {one.name!r} has variables that no row shows.")
    return _Model(one.name, parts.facts, domain, likelihood)


def _refuse_unreadable(domain: Domain, facts: Mapping[str, Any], session: Session) -> None:
    """Refuse rows that cannot be encoded."""
    known = {fold(column.name) for column in session.columns}
    described = {item["name"]: item for item in facts["public_facts"]["domain"]}
    for attribute in domain.attributes:
        if "source" in described[attribute.name]:
            raise InputError(f"column {attribute.name!r} of the release is computed from others.")
        missing = [one.name for one in attribute.columns if fold(one.name) not in known]
        if missing:
            raise InputError(f"column {missing[0]!r} of the release is not compared.")


# -- codes of rows -------------------------------------------------------------------------------


def _codes(session: Session, relation: Fragment, rows: int, domain: Domain, seed: int) -> NDArray[np.int64]:
    """The codes (rows, attributes) of some rows of a table."""
    wanted = [column for attribute in domain.attributes for column in _columns(attribute)]
    drawn = drawn_sql(relation, [value for value, _ in wanted], rows, seed)
    named = [Fragment(f"c{place} AS {name}") for place, (_, name) in enumerate(wanted)]
    typed = render("source/frame", columns=named, frame=Fragment(f"(\n{drawn}\n)"))
    packs = [(place,) for place in range(len(domain.attributes))]
    found = session.engine.fetch(encode_query(typed, domain, packs), step=_STEP)
    return np.stack([np.asarray(found[f"p{place}"], np.int64) for place in range(len(packs))], axis=1)


def _columns(attribute: Attribute) -> list[tuple[Fragment, Fragment]]:
    """The values of an attribute's columns in their types, and their names."""
    return [
        (Fragment(f"TRY_CAST({ident(one.name)} AS {one.type.sql})"), ident(one.name))
        for one in attribute.columns
    ]


# -- figures -------------------------------------------------------------------------------------


def area_with_interval(members: FloatArray, others: FloatArray) -> tuple[float, float, float]:
    """The share of pairs in which the member has the higher score (ties one half), and the ends of its
    interval, by DeLong's variance and the normal law, kept between 0 and 1."""
    m, n = len(members), len(others)
    together = rankdata(np.concatenate([members, others]))
    own_members, own_others = rankdata(members), rankdata(others)
    of_members = (together[:m] - own_members) / n
    of_others = 1 - (together[m:] - own_others) / m
    auc = float(of_members.mean())
    variance = sum(
        float(part.var(ddof=1)) / len(part) if len(part) > 1 else 0.25 for part in (of_members, of_others)
    )
    reach = float(ndtri((1 + CONFIDENCE) / 2)) * math.sqrt(variance)
    return auc, max(0.0, auc - reach), min(1.0, auc + reach)


def advantage(members: FloatArray, others: FloatArray) -> float:
    """The largest difference of the shares of members and of others at or above a threshold."""
    cuts = np.unique(np.concatenate([members, others]))
    above = [1 - np.searchsorted(np.sort(scores), cuts) / len(scores) for scores in (members, others)]
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

"""Small models of rows of a unit that go together."""

from datetime import date, timedelta
from itertools import combinations

import numpy as np
from support.domains import attribute

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.fit.belief import calibrate
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.methods.models.networks import GraphicalModel
from dpsyn_sql.planning.families import Families, before, numbers_of_rows

MOST = 6


def model_of(families, joint_of_pairs, total=1000.0, bins=()):
    """The model whose log-potentials of pairs of names are ``joint_of_pairs``; every code is its own bin,
    but for the attributes in ``bins`` (bin of each code)."""
    domain, potentials = families.domain, {}
    for names, table in joint_of_pairs.items():
        places = [domain.index(name) for name in names]
        order = np.argsort(places)
        potentials[tuple(sorted(places))] = np.transpose(np.asarray(table, float), order)
    own = tuple(np.asarray(dict(bins).get(one.name, np.arange(one.size))) for one in domain.attributes)
    tree = junction_tree(tuple(int(one.max()) + 1 for one in own), potentials, families.levels)
    within = tuple(1 / np.bincount(one)[one] for one in own)
    return GraphicalModel(domain, total, calibrate(tree, potentials), own, within, families=families)


def plain(seed=1, persons=True):
    """age (a unit's), color and kind (a row's), and the number of rows; all pairs depend."""
    domain = Domain(
        (attribute("age", 3), attribute("color", 2), attribute("kind", 3), numbers_of_rows("n", MOST))
    )
    families = Families(domain, 3, frozenset({"age", "n"} if persons else {"n"}), "n")
    rng = np.random.default_rng(seed)
    pairs = {
        names: rng.normal(0, 1, [domain.attributes[domain.index(name)].size for name in names])
        for names in combinations(domain.names, 2)
    }
    return model_of(families, pairs)


def born():
    """born (a unit's, bins of ten years) and color: what rows share is not a single value."""
    year = Attribute("born", "INTEGER", "numeric", edges=tuple(range(1940, 2001, 10)), ordered=True)
    domain = Domain((year, attribute("color", 2), numbers_of_rows("n", MOST)))
    families = Families(domain, 2, frozenset({"born", "n"}), "n")
    return model_of(families, {("born", "color"): np.zeros((6, 2)), ("born", "n"): np.zeros((6, MOST))})


def chain(place=True):
    """state (of 3) follows from the state before: a planted Markov chain; its start differs."""
    state = attribute("state", 3)
    hidden = [numbers_of_rows("n", MOST), before("state before", state)]
    if place:
        hidden.append(attribute("place", 4))
    families = Families(
        Domain((state, *hidden)),
        1,
        frozenset({"n"}),
        "n",
        (("state before", "state"),),
        "place" if place else "",
    )
    return model_of(families, {("state before", "state"): np.log(CHAIN), ("n", "state"): np.zeros((MOST, 3))})


VISITS, MISSED = 5, 0.2


def visits():
    """nr (1 to 5) orders the five rows of a unit, each one after the one before; day follows nr and the day
    before, but is NULL in a fifth of the rows. In the model, the days of a number and of the number before are
    all but certain."""
    nr = Attribute("nr", "INTEGER", "numeric", edges=tuple(range(1, VISITS + 2)), ordered=True)
    day = attribute("day", VISITS, nullable=True)
    size = Attribute("n", "BIGINT", "numeric", edges=(VISITS, VISITS + 1), ordered=True)
    hidden = [size, before("nr before", nr), before("day before", day)]
    previous = (("nr before", "nr"), ("day before", "day"))
    families = Families(Domain((nr, day, *hidden)), 2, frozenset({"n"}), "n", previous, order="nr")
    own = day.size - 1  # NULL
    joint = np.full((VISITS + 1, own + 1, VISITS, own + 1), 1e-5)
    joint[..., own] = 1e-4  # what goes with everything
    for number in range(VISITS):
        for missed, share in ((number, 1 - MISSED), (own, MISSED)):
            first = np.ones(1) if number == 0 else np.array([1 - MISSED, MISSED])
            for earlier, part in zip([own] if number == 0 else [number - 1, own], first, strict=True):
                joint[(number - 1) % (VISITS + 1), earlier, number, missed] += share * part
    names = ("nr before", "day before", "nr", "day")
    pairs = {names: np.log(joint), ("n", "nr"): np.zeros((1, VISITS))}
    return model_of(families, pairs)


CHAIN = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5], [0.05, 0.9, 0.05]])
"""Of the state before (none last): shares of the next state."""

DAYS = tuple(range(0, 361, 30))


def dated(granularity=None, nullable=False, since=True):
    """day (12 bins of 30) orders the rows, a row's day follows from the day before and the time since."""
    day = Attribute(
        "day",
        "DATE",
        "temporal",
        edges=dates(DAYS),
        nullable=nullable,
        ordered=True,
        granularity=granularity,
    )
    gap = Attribute("gap", "BIGINT", "numeric", edges=(0, 7, 40, 200), nullable=True, ordered=True)
    hidden = [numbers_of_rows("n", MOST), before("day before", day), *([gap] if since else [])]
    families = Families(
        Domain((attribute("color", 2), day, *hidden)),
        2,
        frozenset({"n"}),
        "n",
        (("day before", "day"),),
        since="gap" if since else "",
        order="day",
    )
    size = day.size
    allowed = np.zeros((before("d", day).size, size))
    for earlier in range(12):
        allowed[earlier, :earlier] = -20.0
    pairs = {("day before", "day"): allowed, ("color", "day"): np.zeros((2, size))}
    if since:
        ties = np.zeros((before("d", day).size, 4))
        ties[:12, 3] = -20.0
        ties[12:, :3] = -20.0
        pairs[("day before", "gap")] = ties
        pairs[("day", "gap")] = np.zeros((size, 4))
    return model_of(families, pairs)


def timed(seed=1, nullable=False):
    """state of 3 follows from the state before and the day; the day (12 codes in 6 bins) follows from region,
    a unit's, and the number of rows, and in the model from the day before too (4 bins): it drifts."""
    state = attribute("state", 3)
    day = Attribute("day", "DATE", "temporal", edges=dates(DAYS), nullable=nullable, ordered=True)
    hidden = [numbers_of_rows("n", MOST), before("state before", state), before("day before", day)]
    families = Families(
        Domain((attribute("region", 3), state, day, *hidden)),
        3,
        frozenset({"region", "n"}),
        "n",
        (("state before", "state"), ("day before", "day")),
        order="day",
    )
    null = [6] * nullable
    bins = {"day": [*np.arange(12) // 2, *null], "day before": [*np.arange(12) // 3, 4]}
    rng, days = np.random.default_rng(seed), 6 + nullable
    drift = np.array([[2.0 * (3 * (d + 1) > 2 * b) for d in range(days)] for b in range(5)])
    pairs = {
        ("state before", "state"): np.log(CHAIN),
        ("state", "day"): rng.normal(0, 1, (3, days)),
        ("region", "day"): rng.normal(0, 1, (3, days)),
        ("n", "day"): rng.normal(0, 1, (MOST, days)),
        ("region", "n"): rng.normal(0, 1, (3, MOST)),
        ("day before", "day"): drift,
    }
    return model_of(families, pairs, bins=bins)


def dates(days):
    return tuple(date(2020, 1, 1) + timedelta(days=number) for number in days)


def mean_places(persons, codes, days, bin_days=30, rows=3):
    """Where in its bin (0 to 1) the first, second, ... of so many rows of a person in one bin lies, on average."""
    _, starts, counts = np.unique(np.stack([persons, codes]), axis=1, return_index=True, return_counts=True)
    first = starts[counts == rows]
    places = (days - codes * bin_days + 0.5) / bin_days
    return [float(places[first + rank].mean()) for rank in range(rows)], first.size

"""Mixtures of components in which attributes are independent, fitted to noisy tables alone.

    noisy pairs -> latent classes by expectation maximisation         ``latent_classes``
    noisy tables (label, attribute) -> weights and profiles           ``of_tables``, ``softened``
    weights and profiles -> a tree with a hidden root                 ``mixture_network``

The likelihood of pairs is composite: every pair table counts as if its rows were others than those of the
next (Lindsay 1988). With the profiles of all attributes side by side (s, K), the weights w and the pair
tables as one matrix T (s, s) without its diagonal blocks, a step of expectation maximisation is one product
of matrices: a profile becomes proportional to itself times (T / (P diag(w) P')) P. No step lowers the
likelihood, and it costs the same whatever the number of rows.

Post-processing of noisy answers only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array

from dpsyn_sql.fit.arrays import FloatArray, IntArray, fit_joint, simplex_projection
from dpsyn_sql.fit.denoise import Binned
from dpsyn_sql.fit.estimate import Observation, pooled
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.latent import PartTable
from dpsyn_sql.fit.network import Builder, Network
from dpsyn_sql.planning.row_labels import NearestLabel

STARTS = 12
"""Random starts of expectation maximisation; the likeliest goes on."""

FIRST_STEPS, MOST_STEPS = 200, 1_000
"""Steps of every start, and of the likeliest one at most."""

_CONVERGED = 1e-8
# Relative gain of a step at which the fit ends.

_SPREAD = 0.5
# Deviation of the logarithms of the first profiles around the shares of all rows.

_LEAST_VARIANCE = 1e-12
# Exact tables would otherwise have an infinite weight.

_LEAST_WEIGHT = 1e-12
# Of a component or a bin, in logarithms.

_OWN_ROWS = 0.5
# Rows of a cell that count for the component of its label, beside those that were drawn.

LEAST_SHARE = 1e-6
"""A profile gives every bin at least this share of that of all rows: a later table may find some there."""


@dataclass(frozen=True, slots=True)
class Components:
    """A mixture: ``weights`` (K,), and of each attribute its ``profiles`` (K, bins), probabilities given the
    component."""

    weights: FloatArray
    profiles: tuple[FloatArray, ...]

    @property
    def number(self) -> int:
        """K."""
        return self.weights.size


def latent_classes(
    shares: Sequence[FloatArray],
    pairs: Mapping[Scope, FloatArray],
    components: int,
    seed: int,
    starts: int = STARTS,
    steps: int = MOST_STEPS,
) -> Components:
    """The mixture that makes joint probabilities of pairs likeliest, of several random starts.

    Args:
        shares: of each attribute the probabilities (bins,) of all rows.
        pairs: joint probabilities (bins, bins) of attributes by position, the smaller one first; an attribute
            in none of them keeps its shares in every component.
        components: K, at least 1.
        seed: of the starts; public.
        starts: how many.
        steps: of each at most, and of the likeliest once more.
    """
    if components == 1 or not pairs:
        return product(shares, components)
    likelihood = PairLikelihood(shares, pairs)
    generator = np.random.default_rng(seed)
    points = []
    for _ in range(starts):
        start = likelihood.start(components, generator)
        points.append(likelihood.climbed(start, min(FIRST_STEPS, steps)))
    best = max(points, key=likelihood.value)
    return likelihood.mixture(likelihood.climbed(best, steps))


def product(shares: Sequence[FloatArray], components: int = 1) -> Components:
    """Components that are all alike."""
    return Components(
        np.full(components, 1.0 / components), tuple(np.tile(share, (components, 1)) for share in shares)
    )


def by_attribute(pairs: Mapping[Scope, PartTable]) -> dict[int, PartTable]:
    """Of each attribute the inverse-variance mean (parts, bins) of what its pair tables (parts, bins, bins)
    add up to."""
    sums: dict[int, list[tuple[FloatArray, float]]] = {}
    for scope, table in pairs.items():
        for attribute, summed_axis in zip(scope, (2, 1), strict=True):
            variance = max(table.sigma**2 * table.values.shape[summed_axis], _LEAST_VARIANCE)
            sums.setdefault(attribute, []).append((table.values.sum(axis=summed_axis), variance))
    means = {}
    for attribute, estimates in sums.items():
        precisions = [1.0 / variance for _, variance in estimates]
        values = np.average([table for table, _ in estimates], axis=0, weights=precisions)
        means[attribute] = PartTable(values, sum(precisions) ** -0.5)
    return means


def with_sums(margins: Sequence[Observation], tables: Mapping[int, PartTable]) -> list[Observation]:
    """One-way tables pooled with the sums of tables (parts, bins) of the same attributes."""
    tables_of_all = list(margins)
    for attribute, table in tables.items():
        sigma = max(table.sigma * len(table.values) ** 0.5, _LEAST_VARIANCE**0.5)
        tables_of_all[attribute] = pooled(
            tables_of_all[attribute], Observation(table.values.sum(axis=0), np.asarray(sigma))
        )
    return tables_of_all


def shares_of_bins(
    margins: Sequence[Observation], first: Sequence[FloatArray], total: float
) -> list[FloatArray]:
    """Probabilities of bins from pooled tables, with a trace of the ``first`` ones: every bin can occur."""
    return [
        kept_open(simplex_projection(table.values, total)[None] / total, start)[0]
        for table, start in zip(margins, first, strict=True)
    ]


def of_tables(tables: Mapping[int, PartTable], shares: Sequence[FloatArray], total: float) -> Components:
    """Weights and profiles from noisy tables (parts, bins); attributes without one keep their shares.

    The weights are the inverse-variance mean of what the tables say; a table is shifted to them and to the
    shares of all rows, and freed of noise (``fit_joint``). A component that the noise has emptied keeps the
    shares, so that none fails.

    Args:
        tables: at least one, of attributes by position (rows).
        shares: of each attribute the probabilities (bins,) of all rows.
        total: rows, above 0.
    """
    precisions = [1.0 / max(t.values.shape[1] * t.sigma**2, _LEAST_VARIANCE) for t in tables.values()]
    counts = np.average([table.values.sum(axis=1) for table in tables.values()], axis=0, weights=precisions)
    weights = simplex_projection(counts, total) / total
    profiles = list(product(shares, weights.size).profiles)
    for attribute, table in tables.items():
        joint = fit_joint(table.values, table.sigma, weights, shares[attribute], total)
        profiles[attribute] = kept_open(joint, shares[attribute])
    return Components(weights, tuple(profiles))


ROWS_OF_MODEL, STEPS_OF_LABEL = 2**15, 5
"""Rows that are drawn from a mixture to learn what a label says about components, and how often anew."""

Labelling = Callable[[Sequence[IntArray]], IntArray]
"""The label of rows (n,), given the bins (n,) of each attribute."""


def softened(
    mixture: Components, counted: Components, label: Labelling, shares: Sequence[FloatArray], seed: int
) -> Components:
    """Components whose rows would have a label's noisy tables.

    A label puts every row into one component, though a row may be nearly as likely in others. What it counts
    are parts of overlapping components, cut off at their borders. So this is expectation maximisation for
    rows of which a table (label, attribute) is seen: a cell is divided among the components by their mean
    responsibility for the rows in it, which rows drawn from the mixture tell.

    Args:
        mixture: where the steps start, K components.
        counted: the label's noisy tables (``of_tables``), K labels.
        label: what was counted.
        shares: of each attribute the probabilities (bins,) of all rows.
        seed: of the drawn rows; public.
    """
    generator = np.random.default_rng(seed)
    for _ in range(STEPS_OF_LABEL):
        rows, responsible = drawn_rows(mixture, generator)
        codes, masses = label(rows), []
        for column, table in zip(rows, counted.profiles, strict=True):
            responsibilities = _divided(codes * table.shape[1] + column, responsible, table.shape)
            masses.append(np.einsum("jv,jvk->kv", counted.weights[:, None] * table, responsibilities))
        weights = np.mean([mass.sum(axis=1) for mass in masses], axis=0)
        profiles = tuple(kept_open(mass, share) for mass, share in zip(masses, shares, strict=True))
        mixture = Components(weights / weights.sum(), profiles)
    return mixture


def drawn_rows(mixture: Components, generator: np.random.Generator) -> tuple[list[IntArray], FloatArray]:
    """Rows of a mixture by attribute, and the probabilities (n, K) of their components given the rows."""
    ends = np.cumsum(mixture.weights / mixture.weights.sum())
    component = np.minimum(np.searchsorted(ends, generator.random(ROWS_OF_MODEL)), mixture.number - 1)
    scores = np.log(np.maximum(mixture.weights, _LEAST_WEIGHT))[None].repeat(ROWS_OF_MODEL, axis=0)
    rows = []
    for profiles in mixture.profiles:
        within = np.cumsum(profiles, axis=1)[component]
        bins = (within < generator.random(ROWS_OF_MODEL)[:, None]).sum(axis=1)
        rows.append(np.minimum(bins, profiles.shape[1] - 1))
        scores += np.log(np.maximum(profiles, _LEAST_WEIGHT)).T[rows[-1]]
    likely = np.exp(scores - scores.max(axis=1, keepdims=True))
    return rows, np.asarray(likely / likely.sum(axis=1, keepdims=True))


def _divided(cells: IntArray, responsible: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Mean responsibilities (K, bins, K) of the rows in each cell of a label and an attribute; a cell of few
    rows belongs to the component of its label."""
    entries = (np.ones(cells.size), cells, np.arange(cells.size + 1))
    sums = np.asarray(csc_array(entries, shape=(math.prod(shape), cells.size)) @ responsible, np.float64)
    of_label = np.repeat(np.eye(shape[0]), shape[1], axis=0)
    means = (sums + _OWN_ROWS * of_label) / (sums.sum(axis=1, keepdims=True) + _OWN_ROWS)
    return np.asarray(means.reshape(*shape, -1))


def with_classes(mixture: Components, attribute: int, class_of: IntArray, shares: FloatArray) -> Components:
    """Components (K,) of the classes ``class_of``: ``attribute`` has the bin of its class, and classes
    have their ``shares`` (bins,) of all rows."""
    class_weights = np.bincount(class_of, mixture.weights, shares.size)
    members = np.bincount(class_of, minlength=shares.size)
    within = np.where(
        class_weights[class_of] > 0,
        mixture.weights / np.where(class_weights > 0, class_weights, 1.0)[class_of],
        1.0 / np.maximum(members, 1)[class_of],
    )
    profiles = list(mixture.profiles)
    profiles[attribute] = np.eye(shares.size)[class_of]
    return Components(within * shares[class_of], tuple(profiles))


def within_parts(
    outer: Components,
    pairs: Mapping[Scope, PartTable],
    components: Sequence[int],
    total: float,
    seed: int,
) -> Components:
    """Latent classes fitted to noisy pairs (parts, bins, bins) within every component of ``outer``.

    ``components``: how many in each part. ``total``: rows, above 0.
    """
    inner = []
    for part, (number, weight) in enumerate(zip(components, outer.weights, strict=True)):
        part_profiles, rows = [profiles[part] for profiles in outer.profiles], total * float(weight)
        joint = dict[Scope, FloatArray]()
        for scope, table in pairs.items() if number > 1 and rows > 0 else ():
            first, second = (part_profiles[attribute] for attribute in scope)
            joint[scope] = fit_joint(table.values[part], table.sigma, first, second, rows)
        inner.append(latent_classes(part_profiles, joint, number, seed))
    return Components(
        np.concatenate([w * classes.weights for w, classes in zip(outer.weights, inner, strict=True)]),
        tuple(
            np.concatenate(of_attribute)
            for of_attribute in zip(*(classes.profiles for classes in inner), strict=True)
        ),
    )


def at_random(shares: Sequence[FloatArray], components: int, seed: int) -> Components:
    """Equal components whose profiles vary at random around the shares of all rows."""
    generator = np.random.default_rng(seed)
    return Components(
        np.full(components, 1.0 / components),
        tuple(kept_open(_around(share, components, generator), share) for share in shares),
    )


def _around(shares: FloatArray, components: int, generator: np.random.Generator) -> FloatArray:
    return np.asarray(shares * np.exp(_SPREAD * generator.standard_normal((components, shares.size))))


def mixture_network(
    mixture: Components, bins: Sequence[IntArray], within: Sequence[FloatArray], names: Sequence[str]
) -> Network:
    """The tree whose root is the component, with attributes in working bins and then codes below it.

    Args:
        mixture: over working bins.
        bins: of each attribute (codes,) the bin of each code.
        within: of each (codes,) its probability given the bin.
        names: of the attributes, for labels.
    """
    root, several = len(names), mixture.number > 1
    sizes = [table.shape[1] for table in mixture.profiles]
    build = Builder(names, [*sizes, mixture.number], bins, within)
    build.add(_unused("component", names), (), (root,), mixture.weights)
    for attribute, (name, profiles) in enumerate(zip(names, mixture.profiles, strict=True)):
        build.add(name, (root,), (attribute,), profiles, mixture.weights if several else None)
        build.add_codes(attribute)
    return build.network(together=False)


def _unused(label: str, names: Sequence[str]) -> str:
    """A label that no attribute has as its name."""
    while label in names:
        label += "|"
    return label


Point = tuple[FloatArray, FloatArray]
"""Weights (K,) and profiles of all attributes side by side (s, K)."""


class PairLikelihood:
    """Composite likelihood of mixtures, given joint probabilities of pairs (see the module)."""

    def __init__(self, shares: Sequence[FloatArray], pairs: Mapping[Scope, FloatArray]) -> None:
        self._shares = shares
        ends = np.cumsum([share.size for share in shares])
        self._begins = ends - [share.size for share in shares]
        self._matrix = np.zeros((int(ends[-1]),) * 2)
        self._told = np.zeros(len(shares), dtype=np.bool_)
        for (first, second), table in pairs.items():
            rows, columns = self._slice(first), self._slice(second)
            self._matrix[rows, columns], self._matrix[columns, rows] = table, table.T
            self._told[[first, second]] = True

    def _slice(self, attribute: int) -> slice:
        begin = int(self._begins[attribute])
        return slice(begin, begin + self._shares[attribute].size)

    def start(self, components: int, generator: np.random.Generator) -> Point:
        """Equal weights, and profiles at random around the shares."""
        side = _around(np.concatenate(self._shares), components, generator).T
        return np.full(components, 1.0 / components), proper_profiles(side, self._begins)

    def value(self, point: Point) -> float:
        """The logarithm of the likelihood for a row of every pair."""
        weights, profiles = point
        expected = np.maximum((profiles * weights) @ profiles.T, np.finfo(np.float64).tiny)
        return float(np.sum(self._matrix * np.log(expected))) / 2

    def step(self, point: Point) -> Point:
        """One step of expectation maximisation."""
        return em_step(self._matrix, self._begins, point)

    def climbed(self, point: Point, steps: int) -> Point:
        """After so many steps, or fewer if they gain nothing more."""
        before = -np.inf
        for number in range(steps):
            point = self.step(point)
            if number % 10 == 9:
                now = self.value(point)
                if now - before < _CONVERGED * abs(now):
                    break
                before = now
        return point

    def mixture(self, point: Point) -> Components:
        """A point as a mixture."""
        weights, profiles = point
        tables = [profiles[self._slice(attribute)].T for attribute in range(len(self._shares))]
        for attribute, shares in enumerate(self._shares):
            if not self._told[attribute]:
                tables[attribute] = np.tile(shares, (weights.size, 1))
        return Components(
            weights, tuple(kept_open(table, s) for table, s in zip(tables, self._shares, strict=True))
        )


def em_step(matrix: FloatArray, begins: IntArray, point: Point, least: float = 0.0) -> Point:
    """One step of expectation maximisation for the pair tables of a matrix (s, s).

    Args:
        matrix: probabilities over the values of all attributes, side by side; 0 of pairs without a table.
        begins: where each attribute's values begin.
        point: weights and profiles.
        least: what is added to the probability of each value in each component.
    """
    weights, profiles = point
    expected = np.maximum((profiles * weights) @ profiles.T, np.finfo(np.float64).tiny)
    masses = profiles * weights * ((matrix / expected) @ profiles)
    new = masses.sum(axis=0)
    return new / new.sum(), proper_profiles(masses + least * weights, begins)


def proper_profiles(masses: FloatArray, begins: IntArray) -> FloatArray:
    """Every profile (s, K) of every attribute sums to one."""
    sums = np.add.reduceat(masses, begins, axis=0)
    sizes = np.diff(begins, append=len(masses))
    return np.asarray(masses / np.maximum(np.repeat(sums, sizes, axis=0), np.finfo(np.float64).tiny))


def kept_open(profiles: FloatArray, shares: FloatArray) -> FloatArray:
    """Profiles (K, bins) with a trace of the ``shares`` of all rows; one without mass becomes these."""
    sums = profiles.sum(axis=1, keepdims=True)
    normalised = np.where(sums > 0, profiles / np.where(sums > 0, sums, 1.0), shares)
    return np.asarray((1 - LEAST_SHARE) * normalised + LEAST_SHARE * shares)


# -- labels --------------------------------------------------------------------------------------------

# What a label of the nearest component is made of: whole scores, and where bins lie.

_SCALE = 1_000
# A score is minus the logarithm of a probability in thousandths.

_SQUARES = 2**20
# Of a squared distance: scales are public and between 0 and 1.

_LEAST = 1e-12
# The least probability of which a score is made.


def labels_of(label: NearestLabel, working: Binned, rows: Sequence[IntArray]) -> IntArray:
    """The label of rows in bins: it is the same for all codes of a bin."""
    firsts = (np.unique(bins, return_index=True)[1] for bins in working.bins)
    names = working.domain.names
    return label.codes({name: first[column] for name, first, column in zip(names, firsts, rows, strict=True)})


def logarithms(probabilities: FloatArray) -> IntArray:
    """Minus the natural logarithm in thousandths; that of 0 is that of the least share."""
    return np.asarray(np.rint(-_SCALE * np.log(np.maximum(probabilities, _LEAST))), np.int64)


def squared_distances(working: Binned, attribute: int, profiles: FloatArray) -> IntArray:
    """Squared distances (K, bins) of bins to the centres of components, in whole parts of a million."""
    at = _on_scale(working, attribute)
    squares = ((at - (profiles @ at)[:, None]) ** 2).sum(axis=-1)
    return np.asarray(np.rint(_SQUARES * squares), np.int64)


def _on_scale(working: Binned, index: int) -> FloatArray:
    """Where the bins of an attribute lie (bins, axes), from public facts: ordered codes on an axis from 0 to
    1; codes without order, and ``__other__`` and NULL, each on an axis of its own: two differ by 1."""
    attribute, bins = working.domain.attributes[index], working.bins[index]
    size, ordered = working.sizes[index], np.zeros(bins.size, np.bool_)
    ordered[: attribute.regular if attribute.ordered else 0] = True
    codes = np.bincount(bins, minlength=size)
    inside = np.bincount(bins[ordered], minlength=size) / codes
    steps = np.arange(bins.size) / max(1, attribute.regular - 1)
    mean = np.bincount(bins[ordered], steps[ordered], size) / np.maximum(codes * inside, 1)
    middle = np.where(inside > 0, mean, 0.5)
    return np.column_stack([middle, np.diag((1 - inside) / math.sqrt(2))])

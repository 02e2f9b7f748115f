"""Small trees of which every output is found, with its exact probability."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np


class Chooser:
    """Takes the choices of ``path``, then always the first; ``others`` are the paths that branch off later."""

    def __init__(self, path):
        self.path, self.others, self.chance, self.made = path, [], 1.0, 0

    def __call__(self, options):
        if self.made == len(self.path):
            self.others += [[*self.path, place] for place in range(1, len(options))]
            self.path = [*self.path, 0]
        value, probability = options[self.path[self.made]]
        self.made, self.chance = self.made + 1, self.chance * probability
        return value


def outcomes(program):
    """All results of ``program(choose)`` with their probabilities; ``choose`` takes pairs of value and
    probability and gives the value of one of them."""
    found, paths = defaultdict(float), [[]]
    while paths:
        chooser = Chooser(paths.pop())
        result = program(chooser)
        found[result] += chooser.chance
        paths += chooser.others
    assert math.isclose(sum(found.values()), 1, rel_tol=1e-9)
    return dict(found)


def reaches(value, least, scale):
    """P[value + Z >= least] for discrete Laplace Z of ``scale``, exact up to floats."""
    ratio, missing = math.exp(-1 / scale), least - value
    return ratio**missing / (1 + ratio) if missing >= 0 else 1 - ratio ** (1 - missing) / (1 + ratio)


def misses(value, least, scale):
    """1 - ``reaches``, with all digits: noise is symmetric."""
    return reaches(-value, 1 - least, scale)


class Decided:
    """Noise of tests that ask whether a noisy value reaches ``least``: both answers, each with its
    probability."""

    def __init__(self, choose, least):
        self.choose, self.least = choose, least

    def laplace(self, values, scale):
        return np.array([self._one(value, scale) for value in values.tolist()], dtype=np.int64)

    def _one(self, value, scale):
        passes, fails = reaches(value, self.least, scale), misses(value, self.least, scale)
        return self.choose([(self.least, passes), (self.least - 1, fails)])


def walk(splitter, depth, branching, counts, noise, most=2**20, ended=lambda level, node: False):
    """The stored arrays of a tree over ``branching ** depth`` cells with these counts, by the definition of
    ``Splitter``."""
    tests, reading = splitter.tests(noise), splitter.reading()
    nodes, parents, stored = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), []
    cells = np.asarray(counts, dtype=np.int64)
    for level in range(depth + splitter.leaves):
        rows = cells.reshape(branching**level, -1).sum(axis=1)[nodes]
        stored.append(tests.level(rows, parents))
        split = reading.level(stored[-1], parents).split
        kept = [place for place in np.flatnonzero(split) if not ended(level, int(nodes[place]))]
        if level == depth or not kept or len(kept) * branching > most:
            break
        parents = np.repeat(kept, branching)
        nodes = nodes[parents] * branching + np.tile(np.arange(branching), len(kept))
    return tuple(tuple(array.tolist()) for array in stored)


def distribution(splitter, depth, branching, counts, least, **limits):
    """The probability of every output of the real code whose tests ask whether a value reaches ``least``."""
    return outcomes(lambda choose: walk(splitter, depth, branching, counts, Decided(choose, least), **limits))


def loss(first, second):
    """The largest log-ratio of the probabilities of an output, in either direction."""
    assert first.keys() == second.keys()
    return max(abs(math.log(first[output] / second[output])) for output in first)


def worst_loss(lefts, rights, branching, least, scale):
    """``loss`` where the value of every node is known: by recursion, as decisions are independent.

    ``lefts`` and ``rights``: the values of the nodes of every tested level on two neighbours.
    """

    def worst(first, second, level, node):
        one, other = first[level][node], second[level][node]
        leaf = math.log(misses(one, least, scale) / misses(other, least, scale))
        split = math.log(reaches(one, least, scale) / reaches(other, least, scale))
        if level + 1 < len(first):
            below = range(node * branching, (node + 1) * branching)
            split += sum(worst(first, second, level + 1, child) for child in below)
        return max(leaf, split)

    return max(worst(lefts, rights, 0, 0), worst(rights, lefts, 0, 0))


def level_sums(cells, branching):
    """Counts of all nodes, level by level from the root."""
    levels = [list(cells)]
    while len(levels[-1]) > 1:
        above = levels[-1]
        levels.append([sum(above[low : low + branching]) for low in range(0, len(above), branching)])
    return levels[::-1]

"""Questions about hierarchies: a tree of nodes, and its leaves.

Tree: which nodes of a public hierarchy are split, asked level by level from the root.

Claim: docs/privacy.md, "Trees". A row is in one node of each level; what the tests of all levels cost
together is the splitter's own (``splitter_prices.py``). In a tree over several hierarchies each node that is
split chooses its part by the exponential mechanism, whose scores are the rows of the largest child. The k
rows of a unit change the scores of all nodes of a level by k together, so a level costs one choice of
sensitivity k.

Leaves: noisy numbers of rows per leaf of a tree, of rows outside of it, and of rows without a value.

Claim: docs/privacy.md, "Leaves". A row is in one leaf, outside, or without a value: a marginal over these. L1
and L2 sensitivity 1, for the k rows of a unit at most k.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.accounting.events import (
    GaussianEvent,
    LaplaceEvent,
    PrivacyEvent,
    SelectionEvent,
    event_to_dict,
)
from dpsyn_sql.attributes.growth import Growth, Nodes, disjoint
from dpsyn_sql.common.progress import phase
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.queries import LeafQuery, NoisyLeaves, NoisyTree, TreeQuery
from dpsyn_sql.private.measure.counting import (
    Arrays,
    PrivateSide,
    QuestionParts,
    check_counts,
    digest,
    nodes_named,
)
from dpsyn_sql.private.measure.noise import NoiseSource, counts_event, refuse_no_discovery, standard_deviation
from dpsyn_sql.private.measure.questions.choices import selection_event
from dpsyn_sql.private.measure.splitters import Splitter, splitter_of

# -- trees ---------------------------------------------------------------------------------------------


CHOICE_PARTS = (3, 1)
"""How a share is divided between the tests and the choices of parts, where there are several parts."""


def tree_events(question: TreeQuery, rows_per_unit: int, share: Budget) -> tuple[PrivacyEvent, ...]:
    """The events of growing a tree within ``share``.

    Raises:
        BudgetError: the share cannot pay for it.
        InputError: a threshold for which the tree would diverge.
    """
    splitter, choice = _priced(question, rows_per_unit, share)
    return (splitter.event,) if choice is None else (splitter.event, choice)


def _priced(question: TreeQuery, rows_per_unit: int, share: Budget) -> tuple[Splitter, SelectionEvent | None]:
    """The splitter, and the event of the choices of parts where there are several."""
    if len(question.hierarchies) == 1:
        return splitter_of(question, rows_per_unit, share), None
    tests, choices = share.split(CHOICE_PARTS)
    choice = selection_event(question.depth, rows_per_unit, choices)
    return splitter_of(question, rows_per_unit, tests), choice


def tree_question_parts(
    question: TreeQuery, budget: Budget, private_side: PrivateSide
) -> QuestionParts[NoisyTree]:
    """The tree that the tests grow; of its counts only what they store.

    Raises:
        BudgetError: the share cannot pay for it.
        InputError: a threshold for which the tree would diverge.
        InternalError: the domain is complete, or a depth that the hierarchies do not have.
    """
    counter = private_side.columns()
    if not 1 <= question.depth <= sum(one.depth for one in question.hierarchies) or question.most < 1:
        raise InternalError("a tree has at least a level, and no more than its hierarchies")
    splitter, choice = _priced(question, private_side.rows_per_unit, budget)
    named = {
        **nodes_named("tree", question.hierarchies),
        "splitter": question.splitter,
        "depth": question.depth,
        "split_from": question.threshold,
        "most": question.most,
    }
    if question.splitter == "improved":
        named["discount"] = question.discount
    if choice is not None:
        named["choice"] = event_to_dict(choice)

    def noisy() -> Arrays:
        tree, tests, found = _Tree(question, splitter), splitter.tests(private_side.noise), Arrays()
        while tree.asks:
            nodes = tree.growth.nodes
            counts = counter.nodes(question.hierarchies, nodes)
            check_counts(counts, (len(nodes),))
            with phase("noise"):
                found.append(tests.level(counts, nodes.parents))
            refined = tree.refined(found[-1])
            if choice is not None:
                found.append(_chosen(question, refined, nodes, choice, budget.kind, private_side))
            tree.grow(refined, _NONE if choice is None else found[-1])
        return found

    def read(arrays: Arrays) -> NoisyTree:
        tree, left = _Tree(question, splitter), iter(arrays)
        while tree.asks:
            refined = tree.refined(next(left))
            tree.grow(refined, _NONE if choice is None else next(left))
        return tree.answer()

    further = () if choice is None else (choice,)
    return QuestionParts(splitter.event, named, noisy, read, further=further)


_NONE: NDArray[np.int64] = np.zeros(0, dtype=np.int64)


class _Tree:
    """A tree as far as what is stored says; public."""

    def __init__(self, question: TreeQuery, splitter: Splitter) -> None:
        self.growth = Growth(question.hierarchies, question.depth, question.most)
        self._reading, self._event = splitter.reading(), splitter.event
        self._last = question.depth if splitter.leaves else question.depth - 1
        self._counts: list[NDArray[np.int64]] = []
        self._grows = True

    @property
    def asks(self) -> bool:
        """Whether the nodes of the last level are tested."""
        return self._grows and self.growth.level <= self._last

    def refined(self, stored: NDArray[np.int64]) -> NDArray[np.bool_]:
        """By which parts each node can be split, bool[nodes, parts], from what is stored of its level."""
        level = self._reading.level(stored, self.growth.nodes.parents)
        if level.counts is not None:
            self._counts.append(level.counts)
        return self.growth.split(level.split, level.counts)

    def grow(self, refined: NDArray[np.bool_], chosen: NDArray[np.int64]) -> None:
        """Split the nodes of the level; ``chosen``: the parts of those that have several to be split by."""
        parts = np.where(refined.any(axis=1), refined.argmax(axis=1), -1)
        parts[_unsure(refined)] = chosen
        self._grows = self.growth.by(parts)

    def answer(self) -> NoisyTree:
        """The leaves, with the counts of all levels that were counted."""
        leaves, counts = self.growth.leaves(), self.growth.of_leaves(self._counts)
        if not self._counts or not isinstance(self._event, GaussianEvent | LaplaceEvent):
            return NoisyTree(leaves.levels, leaves.ids)
        sigma = standard_deviation(self._event)
        return NoisyTree(leaves.levels, leaves.ids, counts, sigma, tuple(self._counts))


def _unsure(refined: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The nodes that have several parts to be split by."""
    return np.flatnonzero(refined.sum(axis=1) > 1)


def _chosen(
    question: TreeQuery,
    refined: NDArray[np.bool_],
    nodes: Nodes,
    event: SelectionEvent,
    kind: Kind,
    private_side: PrivateSide,
) -> NDArray[np.int64]:
    """The parts of the nodes that have several, int64, one private choice each. PRIVATE counts go in."""
    places = _unsure(refined)
    if not len(places):
        return _NONE
    refined = refined[places]
    largest = private_side.columns().largest(question.hierarchies, nodes.at(places), refined)
    check_counts(largest, refined.shape)
    with phase("noise"):
        return chosen_parts(largest, refined, event, kind, private_side.noise)


def chosen_parts(
    largest: NDArray[np.int64],
    refined: NDArray[np.bool_],
    event: SelectionEvent,
    kind: Kind,
    noise: NoiseSource,
) -> NDArray[np.int64]:
    """By which part each node is split. PRIVATE counts go in.

    "Synthetic Data via Differential Privacy", section 4.1: the exponential mechanism with the score
    "imbalance", the rows of the largest child that a node has by a part (its equation 8); permute-and-flip in
    pure accounts. All nodes of a level choose in parallel, so that a level costs what one choice costs.

    Args:
        largest: int64[n, parts], the rows of the largest child of every node by every part.
        refined: bool[n, parts], whether the hierarchy of the part refines the node; public. By one at least.
        event: scale of the choices; ``number`` of its choices is that of the levels.
        kind: of the account.
        noise: of the choices.

    Returns:
        int64[n]: places of parts.
    """
    found = np.zeros(len(refined), dtype=np.int64)
    for node, may in enumerate(refined):
        parts = np.flatnonzero(may)
        found[node] = parts[noise.select(largest[node, parts], event.scale, kind, 1)[0]]
    return found


# -- leaves --------------------------------------------------------------------------------------------


def leaves_event(rows_per_unit: int, share: Budget) -> GaussianEvent | LaplaceEvent:
    """The event of counting rows per leaf within ``share``.

    Raises:
        BudgetError: the share is nothing.
    """
    refuse_no_discovery(share)
    return counts_event(rows_per_unit, rows_per_unit**2, share)


def leaves_question_parts(
    question: LeafQuery, budget: Budget, private_side: PrivateSide
) -> QuestionParts[NoisyLeaves]:
    """All leaves are answered, empty ones included.

    Raises:
        BudgetError: as ``leaves_event``.
        InternalError: the domain is complete, or levels and nodes do not fit together.
    """
    counter, hierarchies = private_side.columns(), question.hierarchies
    event = leaves_event(private_side.rows_per_unit, budget)
    leaves = _leaves(question)
    parts = [part.tolist() for part in (*leaves.levels, *leaves.ids)]
    named = {**nodes_named("leaves", hierarchies), "leaves": digest(repr(parts))}

    def noisy() -> Arrays:
        counts, others = counter.nodes(hierarchies, leaves), counter.outside(hierarchies)
        check_counts(counts, (len(leaves),))
        check_counts(others, (2,))
        return private_side.noisy([np.concatenate((counts, others))], event)

    def read(arrays: Arrays) -> NoisyLeaves:
        return NoisyLeaves(arrays[0], standard_deviation(event))

    return QuestionParts(event, named, noisy, read)


def _leaves(question: LeafQuery) -> Nodes:
    """The leaves, which must share no row: a row in two of them would be counted twice.

    Raises:
        InternalError: they do not fit together, or two may share rows.
    """
    number = len(question.hierarchies)
    lengths = {len(part) for part in (*question.levels, *question.nodes)}
    if not number or {len(question.levels), len(question.nodes)} != {number} or len(lengths) != 1:
        raise InternalError("leaves need a level and a node in every hierarchy")
    leaves = Nodes(question.levels, question.nodes, np.zeros(lengths.pop(), dtype=np.int64))
    if not disjoint(question.hierarchies, leaves):
        raise InternalError("leaves must share no row")
    return leaves

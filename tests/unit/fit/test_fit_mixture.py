"""Mixtures: expectation maximisation by brute force, weights and profiles of noisy tables, the network."""

from itertools import combinations
from itertools import product as every

import numpy as np
import pytest
from support.domains import domain_of

from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.latent import PartTable
from dpsyn_sql.fit.mixture import (
    LEAST_SHARE,
    Components,
    PairLikelihood,
    at_random,
    by_attribute,
    latent_classes,
    mixture_network,
    of_tables,
    product,
    shares_of_bins,
    softened,
    with_classes,
    with_sums,
    within_parts,
)
from dpsyn_sql.methods.models.networks import NetworkModel

pytestmark = pytest.mark.filterwarnings("error")


def random_mixture(sizes, number, seed=1, concentration=0.5):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(number, 5.0))
    return Components(weights, tuple(rng.dirichlet(np.full(size, concentration), number) for size in sizes))


def joint(mixture, places):
    """Probabilities of some attributes, value by value."""
    found = np.zeros([mixture.profiles[place].shape[1] for place in places])
    for values in every(*map(range, found.shape)):
        own = [mixture.profiles[place][:, value] for place, value in zip(places, values, strict=True)]
        found[values] = (mixture.weights * np.prod(own, axis=0)).sum()
    return found


def shares_of(mixture):
    return [joint(mixture, (place,)) for place in range(len(mixture.profiles))]


def pairs_of(mixture):
    return {pair: joint(mixture, pair) for pair in combinations(range(len(mixture.profiles)), 2)}


# -- expectation maximisation ------------------------------------------------------------------


def test_a_step_is_that_of_its_definition():
    """Responsibilities of every cell of every pair, and the new weights and profiles that they give."""
    sizes, number = (2, 3, 2), 2
    truth, start = random_mixture(sizes, 3), random_mixture(sizes, number, seed=9)
    pairs = pairs_of(truth)
    weights, profiles = np.zeros(number), [np.zeros((number, size)) for size in sizes]
    for (a, b), table in pairs.items():
        for i, j in every(range(sizes[a]), range(sizes[b])):
            held = start.weights * start.profiles[a][:, i] * start.profiles[b][:, j]
            responsible = table[i, j] * held / held.sum()
            weights += responsible
            profiles[a][:, i] += responsible
            profiles[b][:, j] += responsible
    likelihood = PairLikelihood(shares_of(truth), pairs)
    point = start.weights, np.concatenate([own.T for own in start.profiles])
    new_weights, new_profiles = likelihood.step(point)
    np.testing.assert_allclose(new_weights, weights / weights.sum())
    expected = [own / own.sum(axis=1, keepdims=True) for own in profiles]
    np.testing.assert_allclose(new_profiles, np.concatenate([own.T for own in expected]))


def test_no_step_lowers_the_likelihood():
    truth = random_mixture((3, 4, 2, 5), 4)
    likelihood = PairLikelihood(shares_of(truth), pairs_of(truth))
    point = likelihood.start(3, np.random.default_rng(2))
    values = []
    for _ in range(200):
        values.append(likelihood.value(point))
        point = likelihood.step(point)
    assert np.all(np.diff(values) > -1e-12) and values[-1] - values[0] > 0.01


def test_the_likelihood_is_the_sum_over_cells_of_pairs():
    truth, other = random_mixture((2, 3, 2), 2), random_mixture((2, 3, 2), 2, seed=5)
    likelihood = PairLikelihood(shares_of(truth), pairs_of(truth))
    point = other.weights, np.concatenate([own.T for own in other.profiles])
    expected = sum((table * np.log(joint(other, pair))).sum() for pair, table in pairs_of(truth).items())
    assert likelihood.value(point) == pytest.approx(expected)


def test_planted_groups_are_found():
    truth = random_mixture((4, 3, 5, 4, 3, 4), 3)
    found = latent_classes(shares_of(truth), pairs_of(truth), 3, seed=0)
    np.testing.assert_allclose(np.sort(found.weights), np.sort(truth.weights), atol=0.03)
    triple = joint(truth, (0, 2, 4))
    independent = joint(product(shares_of(truth)), (0, 2, 4))
    assert np.abs(joint(found, (0, 2, 4)) - triple).sum() < 0.1 * np.abs(independent - triple).sum()


def test_an_attribute_in_no_pair_keeps_its_shares():
    truth = random_mixture((3, 3, 4), 2)
    pairs = {(0, 1): joint(truth, (0, 1))}
    found = latent_classes(shares_of(truth), pairs, 2, seed=0)
    np.testing.assert_allclose(found.profiles[2], np.tile(joint(truth, (2,)), (2, 1)))


def test_no_pairs_or_one_component_is_independence():
    truth = random_mixture((3, 2), 2)
    for found in (
        latent_classes(shares_of(truth), pairs_of(truth), 1, 0),
        latent_classes(shares_of(truth), {}, 4, 0),
    ):
        np.testing.assert_allclose(joint(found, (0, 1)), np.outer(*shares_of(truth)))


def test_a_seed_fixes_the_fit():
    truth = random_mixture((3, 4, 2), 3)
    one, again = (latent_classes(shares_of(truth), pairs_of(truth), 4, 7) for _ in range(2))
    np.testing.assert_array_equal(one.weights, again.weights)


# -- weights and profiles ----------------------------------------------------------------------


def tables_of(mixture, total, sigma=0.0):
    return {
        place: PartTable(total * mixture.weights[:, None] * own, sigma)
        for place, own in enumerate(mixture.profiles)
    }


def test_exact_tables_give_the_mixture_itself():
    truth = random_mixture((3, 4, 2), 3)
    found = of_tables(tables_of(truth, 1000.0), shares_of(truth), 1000.0)
    np.testing.assert_allclose(found.weights, truth.weights)
    for own, expected in zip(found.profiles, truth.profiles, strict=True):
        np.testing.assert_allclose(own, expected, atol=3 * LEAST_SHARE)


def test_an_empty_component_keeps_the_shares():
    truth = random_mixture((3, 4), 2)
    truth = Components(np.array([1.0, 0.0]), truth.profiles)
    tables = tables_of(truth, 1000.0)
    tables[0] = PartTable(tables[0].values - [[0], [500]], 30.0)
    found = of_tables(tables, shares_of(truth), 1000.0)
    assert found.weights[1] == 0
    for own, shares in zip(found.profiles, shares_of(truth), strict=True):
        np.testing.assert_allclose(own[1], shares)


@pytest.mark.parametrize("value", [0.0, -1e9, 1e15])
def test_any_tables_give_proper_profiles(value):
    tables = {0: PartTable(np.full((4, 3), value), 5.0), 1: PartTable(-np.full((4, 2), value), 5.0)}
    found = of_tables(tables, [np.full(3, 1 / 3), np.array([1.0, 0.0])], 100.0)
    assert found.weights.min() >= 0 and found.weights.sum() == pytest.approx(1)
    for own in found.profiles:
        np.testing.assert_allclose(own.sum(axis=1), 1)
        assert own.min() >= 0


def test_every_bin_that_occurs_keeps_a_trace_in_every_profile():
    truth = Components(np.array([0.5, 0.5]), (np.eye(2), np.eye(2)))
    found = of_tables(tables_of(truth, 100.0), shares_of(truth), 100.0)
    assert all(own.min() >= LEAST_SHARE / 2 for own in found.profiles)


def test_sums_of_pairs_are_averaged_by_their_precision():
    first, second = np.arange(6.0).reshape(1, 2, 3), np.arange(8.0).reshape(1, 2, 4)
    found = by_attribute({(0, 1): PartTable(first, 2.0), (0, 2): PartTable(second, 1.0)})
    a, b = 1 / (3 * 4), 1 / (4 * 1)
    expected = (a * first.sum(axis=2) + b * second.sum(axis=2)) / (a + b)
    np.testing.assert_allclose(found[0].values, expected)
    assert found[0].sigma == pytest.approx((a + b) ** -0.5)
    np.testing.assert_allclose(found[2].values, second.sum(axis=1))
    assert found[2].sigma == pytest.approx(2**0.5)


def test_one_way_tables_learn_from_the_sums_of_parts():
    margins = [Observation(np.array([10.0, 20.0]), np.asarray(3.0))]
    (found,) = with_sums(margins, {0: PartTable(np.array([[4.0, 8.0], [8.0, 16.0]]), 2.0)})
    a, b = 1 / 9, 1 / 8
    np.testing.assert_allclose(found.values, (a * np.array([10, 20]) + b * np.array([12, 24])) / (a + b))
    assert float(found.sigma) == pytest.approx((a + b) ** -0.5)
    (shares,) = shares_of_bins([found], [np.array([0.5, 0.5])], float(found.values.sum()))
    assert shares.sum() == pytest.approx(1) and shares.min() > 0


def test_classes_have_their_bin_and_their_share():
    mixture = random_mixture((3, 2), 4)
    shares = np.array([0.5, 0.25, 0.25])
    found = with_classes(mixture, 0, np.array([0, 0, 1, 2]), shares)
    np.testing.assert_array_equal(found.profiles[0], np.eye(3)[[0, 0, 1, 2]])
    np.testing.assert_allclose(joint(found, (0,)), shares)
    assert found.weights[0] / found.weights[1] == pytest.approx(mixture.weights[0] / mixture.weights[1])


def test_a_class_whose_components_are_empty_is_divided_evenly():
    mixture = Components(np.array([1.0, 0.0, 0.0]), (np.full((3, 2), 0.5),))
    found = with_classes(mixture, 0, np.array([0, 1, 1]), np.array([0.6, 0.4]))
    np.testing.assert_allclose(found.weights, [0.6, 0.2, 0.2])


def test_latent_classes_are_fitted_within_every_part():
    """Each part is a mixture of its own; the fit over all of it would mix them."""
    parts = [random_mixture((3, 4, 3, 4), 2, seed=seed) for seed in (1, 2)]
    whole = Components(
        np.array([0.3, 0.7]), tuple(np.stack([s[i] for s in map(shares_of, parts)]) for i in range(4))
    )
    tables = {
        pair: PartTable(np.stack([3000 * joint(parts[0], pair), 7000 * joint(parts[1], pair)]), 0.0)
        for pair in combinations(range(4), 2)
    }
    found = within_parts(whole, tables, (2, 2), 10_000.0, seed=0)
    assert found.weights[:2].sum() == pytest.approx(0.3)
    for place in ((0, 1), (1, 3)):
        expected = 0.3 * joint(parts[0], place) + 0.7 * joint(parts[1], place)
        np.testing.assert_allclose(joint(found, place), expected, atol=2e-3)


def test_random_components_differ_and_none_is_empty():
    found = at_random([np.array([0.2, 0.8]), np.array([0.5, 0.5])], 5, seed=0)
    assert found.number == 5 and np.unique(found.profiles[0][:, 0]).size == 5
    np.testing.assert_allclose(found.weights, 0.2)


# -- labels ------------------------------------------------------------------------------------


def likeliest(mixture):
    """The label of the likeliest component."""

    def label(rows):
        scores = np.log(mixture.weights)[:, None]
        for profiles, own in zip(mixture.profiles, rows, strict=True):
            scores = scores + np.log(profiles)[:, own]
        return scores.argmax(axis=0)

    return label


def counted_by(label, truth):
    """What a label counts in rows of a mixture, exactly: weights, and profiles of each attribute."""
    sizes = [own.shape[1] for own in truth.profiles]
    cells = np.indices(sizes).reshape(len(sizes), -1)
    held = joint(truth, tuple(range(len(sizes)))).ravel()
    codes = label(list(cells))
    weights = np.bincount(codes, held, truth.number)
    profiles = []
    for own, size in zip(cells, sizes, strict=True):
        table = np.bincount(codes * size + own, held, truth.number * size).reshape(-1, size)
        profiles.append(table / np.maximum(weights, 1e-300)[:, None])
    return Components(weights, tuple(profiles))


def test_what_a_label_cuts_off_is_given_back():
    """The label's tables are those of parts; the components they come from fit them."""
    truth = random_mixture((3, 4, 3, 2), 3, seed=4, concentration=1.0)
    label = likeliest(truth)
    counted = counted_by(label, truth)
    whole = joint(truth, (0, 1, 2, 3))
    lost = np.abs(joint(counted, (0, 1, 2, 3)) - whole).sum() / 2
    found = softened(truth, counted, label, shares_of(truth), seed=0)
    assert lost > 0.05 and np.abs(joint(found, (0, 1, 2, 3)) - whole).sum() / 2 < 0.2 * lost


def test_steps_from_another_mixture_come_nearer():
    truth = random_mixture((3, 4, 3, 2, 4), 3, seed=4)
    wrong = Components(np.full(3, 1 / 3), tuple(0.9 * own + 0.1 * own.mean(axis=0) for own in truth.profiles))
    label = likeliest(wrong)
    places, counted = (0, 1, 2, 3, 4), counted_by(label, truth)
    off = [
        np.abs(joint(one, places) - joint(truth, places)).sum() / 2
        for one in (softened(wrong, counted, label, shares_of(truth), seed=0), counted, wrong)
    ]
    assert off[0] < 0.6 * off[1] and off[0] < 0.2 * off[2]


def test_a_label_that_model_rows_never_have_keeps_its_component(monkeypatch):
    """Its tables have rows, but no row of the mixture gets it."""
    monkeypatch.setattr("dpsyn_sql.fit.mixture.STEPS_OF_LABEL", 1)
    mixture = Components(np.array([1.0, 0.0]), (np.full((2, 2), 0.5), np.full((2, 3), 1 / 3)))
    counted = Components(np.array([0.5, 0.5]), (np.eye(2), np.full((2, 3), 1 / 3)))
    shares = [np.full(2, 0.5), np.full(3, 1 / 3)]
    found = softened(mixture, counted, lambda rows: np.zeros(rows[0].size, np.int64), shares, seed=0)
    np.testing.assert_allclose(found.weights, [0.5, 0.5], atol=1e-3)
    assert found.profiles[0][1, 1] == pytest.approx(1, abs=1e-3)


# -- the network -------------------------------------------------------------------------------

BINS = (np.array([0, 1, 1, 2]), np.arange(3), np.zeros(3, np.int64), np.arange(1))
WITHIN = (np.array([1, 0.25, 0.75, 1]), np.ones(3), np.array([0.5, 0.3, 0.2]), np.ones(1))


def test_a_model_answers_several_attributes_and_its_rows_agree():
    mixture = random_mixture((3, 3, 1, 1), 3)
    domain = domain_of((4, 3, 3, 1))
    model = NetworkModel(domain, 500.0, mixture_network(mixture, BINS, WITHIN, domain.names))
    expected = (joint(mixture, (0, 1))[BINS[0]] * WITHIN[0][:, None])[..., None] * WITHIN[2]
    np.testing.assert_allclose(model.project(domain.names[:3]), 500 * expected, atol=1e-9)
    rows = np.concatenate(list(model.sampler().batches(200_000, 1)))
    counts = np.zeros(expected.shape)
    np.add.at(counts, tuple(rows[:, :3].T), 1)
    assert np.abs(counts / len(rows) - expected).sum() / 2 < 0.005


def test_the_label_of_the_root_is_no_attributes():
    mixture = random_mixture((3, 3, 1, 1), 2)
    network = mixture_network(mixture, BINS, WITHIN, ("component", "x1", "component|", "x3"))
    assert len({node.label for node in network.nodes}) == len(network.nodes)

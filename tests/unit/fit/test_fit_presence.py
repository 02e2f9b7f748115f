"""Who stays: chances from noisy tables."""

import numpy as np
import pytest

from dpsyn_sql.fit.given import drawn, presence_of
from dpsyn_sql.planning.queries import NoisyMarginal


def tables_of(codes, sizes, stays, joins, sigma, chance):
    """Tables of presence alone and by each attribute, with noise."""
    found = []
    told = np.where(stays, 0, 1)
    for place in [None, *range(len(sizes))]:
        if place is None:
            values = np.array([stays.sum(), (~stays).sum(), joins])
        else:
            values = np.zeros((sizes[place], 3), np.int64)
            np.add.at(values, (codes[:, place], told), 1)
            values[-1, 2] = joins
        noise = np.rint(chance.normal(0, sigma, values.shape)).astype(np.int64)
        found.append(NoisyMarginal(("x",), values + noise, sigma))
    return found


def people(chance, n=20_000):
    codes = np.stack([chance.integers(0, 4, n), chance.integers(0, 3, n)], axis=1)
    return codes, 1 / (1 + np.exp(-(2.0 + np.array([0, 1, -1, -2])[codes[:, 0]] + 0.5 * codes[:, 1])))


@pytest.mark.parametrize(("sigma", "within"), [(1.0, 0.02), (50.0, 0.04)])
def test_chances_follow_the_codes_before(sigma, within):
    chance = np.random.default_rng(1)
    codes, true = people(chance)
    stays = chance.random(len(codes)) < true
    found = presence_of(tables_of(codes, [5, 4], stays, 300, sigma, chance), codes)
    assert np.abs(found.stays - true).mean() < within
    assert found.stays.sum() == pytest.approx(stays.sum(), abs=4 * sigma + 20)
    assert found.joins == pytest.approx(300, abs=4 * sigma)


def test_where_noise_hides_the_codes_everybody_has_the_chance_of_all():
    chance = np.random.default_rng(2)
    codes, true = people(chance, 300)
    stays = chance.random(len(codes)) < true
    found = presence_of(tables_of(codes, [5, 4], stays, 0, 3_000.0, chance), codes)
    assert np.ptp(found.stays) < 0.35
    assert np.all((found.stays > 0) & (found.stays < 1))


def test_nobody_may_be_there_before():
    chance = np.random.default_rng(3)
    found = presence_of(
        tables_of(np.zeros((0, 1), np.int64), [3], np.zeros(0, bool), 40, 1.0, chance),
        np.zeros((0, 1), np.uint8),
    )
    assert found.stays.size == 0
    assert found.joins == pytest.approx(40, abs=5)


def test_each_is_drawn_with_its_chance_and_as_many_as_expected():
    chance = np.random.default_rng(4)
    chances = chance.random(50)
    times = np.zeros(50)
    for _ in range(4_000):
        who = drawn(chances, chance)
        assert abs(who.size - chances.sum()) <= 1
        assert np.all(np.diff(who) > 0)
        times[who] += 1
    assert np.abs(times / 4_000 - chances).max() < 0.035

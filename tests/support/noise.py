"""Noise whose tails are cut off, for tests of what is decided by how far a count stands out from its noise."""

import numpy as np

from dpsyn_sql.private.measure.noise import ExactNoise


def cut_off(patch):
    """Let Gaussian noise end at one deviation, as long as the patch holds.

    A count of nothing is above three deviations of its noise once in 740 times, at any epsilon: then it is taken for
    some rows, as it should be. Without tails it never is.
    """
    gaussian = ExactNoise.gaussian

    def short(self, values, sigma):
        values = np.asarray(values)
        most = int(sigma)
        return values + (gaussian(self, np.zeros_like(values), sigma)).clip(-most, most)

    patch.setattr(ExactNoise, "gaussian", short)

"""OpenDP's contingency tables over private-pgm: AIM and MST.

Each attribute gets the cut points between its codes, so that its domain is known, no key has to be found, and
no category is added for missing values. The budget is the rho of zero-concentrated privacy that gives the
epsilon and delta by OpenDP's own conversion. The number of rows is the library's private estimate.
Rows are drawn one by one: mbi 1.1.0, which the library brings, rounds counts (its default) without shuffling
the rows of a group, so that columns that are independent given a third come out sorted by each other.
"""

from __future__ import annotations

import numpy as np
import opendp.prelude as dp
import polars as pl
from protocol import Codes, Request, serve

ALGORITHMS = {"aim": dp.mbi.AIM, "mst": dp.mbi.MST}


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho whose curve is at most epsilon at delta."""

    def spent(rho: float) -> float:
        noise = dp.m.make_gaussian(
            dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), (1 / (2 * rho)) ** 0.5
        )
        curve = dp.c.make_zCDP_to_approxDP(noise).map(1.0)
        return float(curve.epsilon(delta=delta))

    low, high = 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) <= epsilon else (low, middle)
    return low


def synthesize(request: Request) -> Codes:
    """One release by the algorithm that the mechanism names, with its defaults."""
    rho = rho_of(request.epsilon, request.delta)
    frame = pl.DataFrame(dict(zip(request.names, request.rows.T, strict=True)))
    context = dp.Context.compositor(
        data=frame.lazy(), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=rho)
    )
    cuts = {name: list(range(size - 1)) for name, size in zip(request.names, request.sizes, strict=True)}
    query = context.query(rho=rho).select(*request.names)
    table = query.contingency_table(cuts=cuts, algorithm=ALGORITHMS[request.mechanism]()).release()
    made = table.synthesize(method="sample")
    return np.stack([made[name].to_numpy() for name in request.names], axis=1).astype(np.int64)


if __name__ == "__main__":
    dp.enable_features("contrib")
    serve(synthesize, ["opendp", "mbi"])

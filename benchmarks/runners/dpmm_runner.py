"""dpmm: PrivBayes, MST and AIM over its graphical models.

The attributes are codes with a declared domain, so its preprocessing, which learns a domain for a budget of
its own, is disabled. AIM gets the limit of 80 MB that its source asks for in comparisons. The model is asked
for as many rows as the source has.
"""

from __future__ import annotations

import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline
from protocol import Codes, Request, serve

PIPELINES = {"privbayes": PrivBayesPipeline, "mst": MSTPipeline, "aim": AIMPipeline}
AIM_MEGABYTES = 80


def synthesize(request: Request) -> Codes:
    """One release by the pipeline that the mechanism names."""
    limit = AIM_MEGABYTES if request.mechanism == "aim" else None
    pipeline = PIPELINES[request.mechanism](
        epsilon=request.epsilon, delta=request.delta, max_model_size=limit, disable_processing=True
    )
    frame = pd.DataFrame(request.rows, columns=request.names)
    pipeline.fit(frame, domain=dict(zip(request.names, request.sizes, strict=True)))
    made = pipeline.generate(n_records=len(frame))
    codes: Codes = made[request.names].to_numpy()
    return codes


if __name__ == "__main__":
    serve(synthesize, ["dpmm"])

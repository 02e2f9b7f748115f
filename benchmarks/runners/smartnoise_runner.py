"""SmartNoise Synthesizers: MST and AIM over private-pgm.

The labels of each attribute are learnt from a public frame that holds every declared code, so that the domain
is declared and no budget goes to preprocessing. The synthesizers have their defaults. They write as many rows
as the source has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from protocol import Codes, Request, serve
from snsynth import Synthesizer
from snsynth.transform import LabelTransformer, TableTransformer


class Drawn:
    """A fitted model that draws rows one by one.

    mbi 1.1.0, which the package brings, rounds counts (its default) without shuffling the rows of a group:
    columns that are independent given a third come out sorted by each other.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def synthetic_data(self, rows: int) -> Any:
        """Rows that are independent of each other."""
        return self.model.synthetic_data(rows=rows, method="sample")


def synthesize(request: Request) -> Codes:
    """One release by the synthesizer that the mechanism names."""
    every = np.arange(max(request.sizes))[:, None] % np.array(request.sizes)
    transformer = TableTransformer([LabelTransformer(nullable=False) for _ in request.names])
    transformer.fit(pd.DataFrame(every, columns=request.names))
    synthesizer = Synthesizer.create(request.mechanism, epsilon=request.epsilon, delta=request.delta)
    frame = pd.DataFrame(request.rows, columns=request.names)
    synthesizer.fit(frame, transformer=transformer, preprocessor_eps=0.0)
    synthesizer.synthesizer = Drawn(synthesizer.synthesizer)
    made = synthesizer.sample(len(frame))
    codes: Codes = np.asarray(made).astype(np.int64)
    return codes


if __name__ == "__main__":
    serve(synthesize, ["smartnoise-synth", "mbi"])

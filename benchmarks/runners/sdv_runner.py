"""SDV's Gaussian copula, the reference without privacy: it uses no noise, epsilon and delta are not used."""

from __future__ import annotations

import pandas as pd
from protocol import Codes, Request, serve
from sdv.metadata import Metadata
from sdv.single_table import GaussianCopulaSynthesizer


def synthesize(request: Request) -> Codes:
    """All attributes are categories: as numbers their default curve (beta) fits no column with spikes."""
    kinds = {name: {"sdtype": "categorical"} for name in request.names}
    metadata = Metadata.load_from_dict({"tables": {"rows": {"columns": kinds}}})
    synthesizer = GaussianCopulaSynthesizer(metadata)
    synthesizer.fit({"rows": pd.DataFrame(request.rows, columns=request.names)})
    made = synthesizer.sample(num_rows=len(request.rows))
    table = made["rows"] if isinstance(made, dict) else made
    codes: Codes = table[request.names].to_numpy().astype("int64")
    return codes


if __name__ == "__main__":
    serve(synthesize, ["sdv"])

"""DataSynthesizer: its PrivBayes ("correlated attribute mode").

All attributes are categories with a declared domain. A column has at most two parents, as in its authors'
examples: with the three that it takes by default, tables here have up to a hundred million cells. It promises
pure epsilon, so delta is not used. Its seed is drawn anew, because its default is a constant.
"""

from __future__ import annotations

import json
import secrets

import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator
from protocol import Codes, Request, serve

PARENTS = 2


def synthesize(request: Request) -> Codes:
    """One release in correlated attribute mode."""
    files = {name: str(request.folder / name) for name in ("rows.csv", "domain.json", "described.json")}
    pd.DataFrame(request.rows, columns=request.names).to_csv(files["rows.csv"], index=False)
    domains = {name: list(range(size)) for name, size in zip(request.names, request.sizes, strict=True)}
    (request.folder / "domain.json").write_text(json.dumps(domains), encoding="utf-8")
    seed = secrets.randbits(31)
    describer = DataDescriber()
    describer.describe_dataset_in_correlated_attribute_mode(
        files["rows.csv"],
        k=PARENTS,
        epsilon=request.epsilon,
        attribute_to_datatype=dict.fromkeys(request.names, "Integer"),
        attribute_to_is_categorical=dict.fromkeys(request.names, True),
        attribute_to_is_candidate_key=dict.fromkeys(request.names, False),
        categorical_attribute_domain_file=files["domain.json"],
        seed=seed,
    )
    describer.save_dataset_description_to_file(files["described.json"])
    generator = DataGenerator()
    generator.generate_dataset_in_correlated_attribute_mode(
        len(request.rows), files["described.json"], seed=seed + 1
    )
    codes: Codes = generator.synthetic_dataset[request.names].to_numpy().astype("int64")
    return codes


if __name__ == "__main__":
    serve(synthesize, ["DataSynthesizer"])

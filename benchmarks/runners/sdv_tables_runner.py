"""SDV's HMA, the reference without privacy for several tables: it uses no noise.

``python sdv_tables_runner.py FOLDER``: the folder holds a CSV file for each table and ``tables.json`` with
their names in order and the metadata. For each table NAME.made.csv is written.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

import pandas as pd
from sdv.metadata import Metadata
from sdv.multi_table import HMASynthesizer


def main(folder: Path) -> None:
    """Fit, sample as many rows as the real tables have, write."""
    warnings.simplefilter("ignore")
    told = json.loads((folder / "tables.json").read_text(encoding="utf-8"))
    frames = {name: pd.read_csv(folder / f"{name}.csv") for name in told["tables"]}
    metadata = Metadata.load_from_dict(told["metadata"])
    begun = time.perf_counter()
    synthesizer = HMASynthesizer(metadata, verbose=False)
    synthesizer.fit(frames)
    for name, made in synthesizer.sample(scale=1.0).items():
        made.to_csv(folder / f"{name}.made.csv", index=False)
    (folder / "seconds").write_text(f"{time.perf_counter() - begun:.0f}", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

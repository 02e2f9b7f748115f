"""Make examples/adult.parquet: a release of UCI Adult by this package, with its certificate and its report.

    python examples/make_adult.py path/to/adult_all.parquet

The source is UCI Adult (Becker and Kohavi 1996), train and test together, missing values as NULL,
with a column ``split`` that is left out. The written table is synthetic.
"""

import json
import sys
from pathlib import Path

import dpsyn_sql

FOLDER = Path(__file__).resolve().parent


def main(source: str) -> None:
    """Release the table once. Another run is another release, with its own noise and debit."""
    release = dpsyn_sql.release(
        None,
        source,
        into=FOLDER / "adult.parquet",
        epsilon=1.0,
        domain=FOLDER / "adult.domain.yml",
        exclude=["split"],
        ledger=FOLDER / "adult.dpsyn-ledger",
        replace=True,
    )
    certificate = json.dumps(release.certificate(), indent=2) + "\n"
    (FOLDER / "adult.certificate.json").write_text(certificate)
    release.report(FOLDER / "adult.report.html")
    print(release)


if __name__ == "__main__":
    main(sys.argv[1])

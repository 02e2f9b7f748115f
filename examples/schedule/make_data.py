"""Make clinic.duckdb: visits of invented patients in 2025, and a table of two sites.

python examples/schedule/make_data.py
"""

import sys
from pathlib import Path

import duckdb

VISITS = """
CREATE OR REPLACE TABLE visits AS
SELECT
    hash(i) % 3000 AS patient,
    TIMESTAMP '2025-01-01' + INTERVAL (i * 26) MINUTE AS visited,
    18 + (hash(i // 7) % 70)::INTEGER AS age,
    ['north', 'south'][1 + (hash(i // 3) % 2)::INTEGER] AS site,
    10 + (hash(i * 5) % 50)::INTEGER AS minutes
FROM range(20000) AS r(i)
"""


def main(folder: Path) -> None:
    """Write the database into a folder."""
    with duckdb.connect(str(folder / "clinic.duckdb")) as con:
        con.execute(VISITS)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)

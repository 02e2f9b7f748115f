"""The table a newcomer runs on is this package's own release, and fits its domain and certificate."""

import json
from pathlib import Path

import duckdb

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_example_fits_its_certificate_and_domain(tmp_path):
    certificate = json.loads((EXAMPLES / "adult.certificate.json").read_text())
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE adult AS FROM '{EXAMPLES / 'adult.parquet'}'")
        rows = con.execute("SELECT count(*) FROM adult").fetchone()[0]
        columns = [row[0] for row in con.execute("DESCRIBE adult").fetchall()]
    facts = certificate["public_facts"]["domain"]
    assert rows == certificate["sampling"]["rows"]
    assert columns == [attribute["name"] for attribute in facts]
    assert certificate["guarantee"]["epsilon"] <= 1 and certificate["guarantee"]["delta"] == 1e-9

"""What tests of schedules share."""

import pytest

from dpsyn_sql.schedule.reading import read_schedule


@pytest.fixture
def read(tmp_path, monkeypatch):
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)

    def reading(text):
        (tmp_path / "dpsyn.yml").write_text(text)
        return read_schedule(tmp_path / "dpsyn.yml")

    return reading

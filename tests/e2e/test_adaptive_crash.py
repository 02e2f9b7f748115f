"""An adaptive release killed between its rounds: one debit, and the answers it already had."""

import shutil

import pytest
from test_release_crash import Case, children  # noqa: F401 - a fixture

SPEC = {"columns": {name: {"type": "categorical", "categories": list(range(6))} for name in "abcd"}}
ROWS = "SELECT i % 6 AS a, (i // 3) % 6 AS b, (i % 6 + i // 7 % 2) % 6 AS c, (i * i) % 6 AS d"


@pytest.fixture(params=["database", "parquet"])
def case(children, tmp_path, request):  # noqa: F811
    options = {"domain": SPEC, "method": "adaptive"}
    return Case(
        children, tmp_path / "case", request.param, query=f"{ROWS} FROM range(4000) AS r(i)", **options
    )


# The second round begins with expectations of the model that was fitted in the first.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("phase", "time"), [("select", 1), ("fit", 1), ("model", 2), ("select", 2), ("fit", 2)]
)
def test_killed_between_rounds_and_resumed(case, phase, time):
    assert case.run(phase=(phase, time)) is None
    before, stored = case.checked()
    assert [one.state for one in before.releases] == ["debited"] and stored
    assert case.output(killed=True) is None
    backup = case.folder.with_name("backup")
    shutil.copytree(case.folder, backup)
    for _ in range(2):  # whatever machine goes on, it asks what was asked
        again = case.run()
        assert "error" not in again, again
        after, now = case.checked()
        assert (
            again["replayed"] and again["id"] == after.releases[0].release_id == before.releases[0].release_id
        )
        assert after.accounts[0].spent == before.accounts[0].spent
        assert now.startswith(stored)
        assert len(case.output(killed=True)) == again["rows"] > 0
        shutil.rmtree(case.folder)
        shutil.copytree(backup, case.folder)


@pytest.mark.slow
def test_a_finished_release_is_replayed_without_the_source(case):
    first = case.run()
    _, stored = case.checked()
    again = case.run({"seed": 5, "replace": True})
    assert again["noisy"] == first["noisy"] and case.checked()[1] == stored

"""``dpsyn audit`` as a stranger types it."""

import pytest
from typer.testing import CliRunner

from dpsyn_sql.cli.main import app
from dpsyn_sql.private.measure.noise import ExactNoise

QUICK = ("--method", "independent", "--domain", "d.yml", "--runs", "200")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.yml").write_text("columns:\n  n: {type: numeric, lower: 0, upper: 3}\n")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *arguments])


@pytest.mark.parametrize(
    ("options", "claim", "accounting"),
    [
        (("--delta", "0"), "epsilon <= 1.0000", "pure differential privacy"),
        ((), "mu <= 0.1814", "exact Gaussian accounting"),
    ],
)
def test_it_prints_claim_bound_runs_power_and_what_it_cannot_see(folder, options, claim, accounting):
    result = run(*QUICK, *options)
    assert result.exit_code == 0, result.output
    lines = dict(line.split(maxsplit=1) for line in result.stdout.splitlines() if "Lower" not in line)
    assert lines["Claim"] == f"{claim}, for the whole budget, by {accounting}"
    assert lines["Runs"].startswith("200 per side: ")
    assert lines["Questions"] == "1 marginals of 1 attributes, 4 cells"
    assert lines["Configuration"].endswith("one unit of 1 row against no rows")
    assert result.stderr.startswith("200 runs per side: ")
    assert "Lower bound" in result.stdout and "confidence 0.999" in result.stdout
    assert "no violation found" in lines["Verdict"] and "half the scale" in lines["Power"]
    assert result.stdout.count("Not covered") == 3 and "probability delta" in result.stdout
    assert [path.name for path in folder.iterdir()] == ["d.yml"]


def test_questions_that_depend_on_answers_are_those_of_a_rehearsal():
    result = run("--method", "adaptive", "--epsilon", "3", "--runs", "5")
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("5 runs per side: ")
    lines = dict(line.split(maxsplit=1) for line in result.stdout.splitlines() if "Lower" not in line)
    assert lines["Configuration"].endswith("1 row against 331 rows with and without it")
    assert "distances in a rehearsal; each run's answers decide" in lines["Questions"]


def test_a_violation_is_exit_code_1(monkeypatch):
    true = ExactNoise.laplace
    monkeypatch.setattr(ExactNoise, "laplace", lambda self, v, scale: true(self, v, scale / 4))
    result = run(*QUICK, "--delta", "0")
    assert result.exit_code == 1 and "VIOLATED" in result.stdout


@pytest.mark.parametrize(
    "options",
    [
        ("--epsilon", "0"),
        ("--most", "0"),
        ("--runs", "0"),
        ("--domain", "no.yml"),
        ("--method", "magic"),
    ],
)
def test_errors_are_one_message(options):
    result = run(*options)
    assert result.exit_code == 2 and "Error: " in result.output and "Traceback" not in result.output

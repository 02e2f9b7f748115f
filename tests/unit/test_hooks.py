"""What is written in several files of the checkout says the same in each."""

import re
from pathlib import Path

import yaml

import dpsyn_sql

CHECKOUT = Path(__file__).resolve().parents[2]

LINTERS = ("ruff", "mypy", "lint-imports")


def without_cache(command):
    """A linter keeps its cache where it likes; the rest of the command decides what it finds."""
    return re.sub(r" --no-cache| --cache-dir=\S+", "", command)


def test_hooks_before_a_commit_lint_what_continuous_integration_lints():
    config = yaml.safe_load((CHECKOUT / ".pre-commit-config.yaml").read_text())
    assert [repo["repo"] for repo in config["repos"]] == ["local"]
    (local,) = config["repos"]
    ran = [line for line in (CHECKOUT / ".ci/run").read_text().splitlines() if line.startswith(LINTERS)]
    assert len(ran) == 5
    assert [without_cache(hook["entry"]) for hook in local["hooks"]] == [without_cache(line) for line in ran]
    for hook in local["hooks"]:  # as in continuous integration: the whole checkout, whatever was changed
        assert (hook["language"], hook["pass_filenames"], hook["always_run"]) == ("system", False, True)


def test_the_version_to_cite_is_that_of_the_package():
    assert yaml.safe_load((CHECKOUT / "CITATION.cff").read_text())["version"] == dpsyn_sql.__version__

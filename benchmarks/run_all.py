"""Every figure of the table of targets, by one command: each script in a process of its own.

    python benchmarks/run_all.py [--peers] [--list]

Takes several hours (an hour without the scripts that run every method) and 10 GB of disk. The data sets are
expected where ``harness.DATA`` says.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

TARGETS = [
    ("Adult discretised, three releases at epsilon 0.1, 1 and 10", "adaptive.py"),
    ("Seven tables beside a stored run: accuracy, time, memory", "accuracy.py"),
    ("Raw Adult, declared domains", "adaptive.py --tables declared --methods adaptive"),
    ("Raw Adult, discovered domains", "adaptive.py --tables discovered --methods adaptive"),
    ("Tables as they come: columns that an analyst believes", "believed.py"),
    ("Long tails without a domain file", "tails.py --methods auto"),
    ("The same in fewer rows", "tails.py --methods auto --rows 30000"),
    ("Pure accounts", "sweep.py --delta 0 --epsilon 0.2 0.5 1 2"),
    ("A target", "target.py"),
    ("100 attributes, 50,000 rows", "adaptive.py --tables wide --methods adaptive --epsilon 1"),
    ("5,240,260 rows, 27 attributes", "dss_shape.py --method adaptive"),
    ("100 million rows, 15 attributes", "hundred_million.py"),
    ("Error bars: how many true counts are within them", "coverage.py"),
    ("Sampling", "sampling.py --one-query 10000000"),
    ("Rows of a copula", "copula_rows.py"),
    ("Units and their rows", "units_speed.py"),
    ("Units and their rows, rank by rank", "units_speed.py --walk"),
    ("Noise", "noise.py"),
    ("Every method, beside baselines and other synthesizers", "methods.py"),
    (
        "Binary transactions, against noise on every marginal",
        "transactions.py --inputs bms_webview_1 groceries mushroom",
    ),
    ("Published experiments, beside the papers", "reproduce.py"),
    ("The report in the wild, and the scores of PrivBayes", "report2019.py --runs 1"),
    ("The copula paper's comparison", "copulas.py"),
    ("Places, journeys, strings and codes", "hierarchies.py"),
    ("Believable values", "believable.py"),
    ("Correlations", "correlations.py --releases 1"),
    ("Patterns of many columns, beside their aims", "patterns.py --runs 1"),
    ("Rows of hidden groups", "mixture.py --runs 1"),
    ("Train on synthetic rows, test on real ones", "efficacy.py --releases 1"),
    ("Classifiers trained on synthetic rows", "classifiers.py"),
    ("1,000 binary attributes", "wide.py --rows 100000"),
    ("100 binary attributes x 5 million rows, 30 attributes of 20 values x 1 million", "scaling.py"),
    ("Evaluation of 5 million rows, 27 columns", "evaluation.py"),
    ("300 million rows x 100 attributes, on paper", "scaling.py --paper"),
    (
        "Structure in many columns at once",
        "high_order.py --remedies",
    ),
    (
        "Five other tables, against simpler methods",
        "sweep.py --runs 3 --tables green_taxi income weather german_credit mushroom",
    ),
]
"""What is measured, and the script with its arguments."""

WITH_PEERS = [
    (
        "Other synthesizers, on the same table by the same scorer",
        "peers.py --epsilon 1 0.1 10 --picture docs/pictures/peers.svg",
    ),
    (
        "Structure in many columns at once, other synthesizers too",
        "high_order.py --peers all",
    ),
]
"""What installs other people's packages from the network, each in an environment of its own."""


def main() -> int:
    """Run them one after the other; returns how many failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", action="store_true", help="install and run other synthesizers too: hours")
    parser.add_argument("--list", action="store_true", help="only print the commands")
    arguments = parser.parse_args()
    failed = 0
    for title, command in TARGETS + (WITH_PEERS if arguments.peers else []):
        script, *rest = command.split()
        print(f"## {title} (`{command}`)\n", flush=True)
        if arguments.list:
            continue
        if not (HERE / script).exists():
            print(f"{script} is not here.\n", flush=True)
            continue
        begun = time.perf_counter()
        code = subprocess.run([sys.executable, str(HERE / script), *rest], check=False).returncode
        failed += code != 0
        print(f"{time.perf_counter() - begun:.0f} s in all, exit code {code}\n", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())

"""Published experiments again, by one command: the paper's figure beside ours, pictures and a page.

    python benchmarks/reproduce.py [--only copula_conjunctions privbayes] [--quick] [--redraw] [--into docs]

Each part runs in a process of its own. It prints its tables, stores its figures in ``papers/figures/``,
writes ``pictures/paper_*.svg`` and replaces its tables in ``results_papers.md``, between the markers of its
name; the text around them stays. A part that fails does not stop the others. It is named at the end, and the
exit code is the number of such parts. ``--quick``: fewer releases and smaller tables. ``--redraw``: nothing
is measured, tables and pictures come from the stored figures.

All parts take about an hour of an idle core (an estimate from runs on a busy machine). Needs scikit-learn and
matplotlib (``pip install '.[benchmarks]'``) and the data sets where ``harness.DATA`` says.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

from charts import write_panels
from harness import REPOSITORY, command_line, machine
from papers import copula, privbayes, proposal
from papers.part import Part, Shown

HERE = Path(__file__).resolve().parent
STORED = HERE / "papers" / "figures"
PAGE, COMMAND = "results_papers.md", "reproduce.py --only"
PARTS = {part.name: part for module in (copula, privbayes, proposal) for part in module.PARTS}


def begins(name: str, command: str) -> str:
    """The marker before the tables of a part, which says what makes them."""
    return f"<!-- begin {name}: python benchmarks/{command} {name} -->"


def ends(name: str) -> str:
    """The marker after them."""
    return f"<!-- end {name} -->"


def replaced(page: str, name: str, command: str, text: str) -> str:
    """The page with other tables of one part; a part that has no markers is appended."""
    first, last = begins(name, command), ends(name)
    block = f"{first}\n\n{text}\n\n{last}"
    if first not in page or last not in page:
        return f"{page.rstrip()}\n\n## {name}\n\n{block}\n"
    before, _, rest = page.partition(first)
    return before + block + rest.partition(last)[2]


def write(name: str, command: str, page: str, shown: Shown, into: Path) -> None:
    """Pictures, and the tables of a part on a page."""
    links = []
    for picture in shown.pictures:
        file = into / "pictures" / f"paper_{picture.name}.svg"
        write_panels(file, picture.title, picture.panels, picture.columns)
        links.append(f"![{picture.described}](pictures/{file.name})")
        print(f"wrote {file}", flush=True)
    path = into / page
    before = path.read_text(encoding="utf-8") if path.exists() else "# Published experiments, repeated\n"
    text = "\n\n".join([*links, shown.markdown])
    path.write_text(replaced(before, name, command, text), encoding="utf-8")


def run_part(part: Part, quick: bool, redraw: bool, into: Path) -> None:
    """Measure, store, print, draw: in the process of the part."""
    warnings.simplefilter("ignore")
    stored = STORED / f"{part.name}.json"
    if not redraw:
        found = part.measure(quick)
        found |= {"machine": machine(), "load": round(os.getloadavg()[0], 1), "quick": quick}
        stored.parent.mkdir(exist_ok=True)
        stored.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    shown = part.show(json.loads(stored.read_text(encoding="utf-8")))
    print(f"\n{shown.markdown}\n", flush=True)
    write(part.name, COMMAND, PAGE, shown, into)


def run_all(names: Sequence[str], options: Sequence[str]) -> list[str]:
    """Every part in a process of its own; returns the names of those that failed."""
    failed = []
    for name in names:
        print(f"## {PARTS[name].title} ({name})\n", flush=True)
        begun = time.perf_counter()
        command = [sys.executable, str(HERE / "reproduce.py"), "--part", name, *options]
        code = subprocess.run(command, check=False).returncode
        print(f"{name}: {time.perf_counter() - begun:.0f} s in all, exit code {code}\n", flush=True)
        if code:
            failed.append(name)
    return failed


def main() -> int:
    """Returns how many parts failed."""
    parser = command_line(__doc__)
    parser.add_argument("--only", nargs="+", choices=[*PARTS], default=[*PARTS])
    parser.add_argument("--quick", action="store_true", help="fewer releases, smaller tables")
    parser.add_argument("--redraw", action="store_true", help="from the stored figures")
    parser.add_argument("--into", type=Path, default=REPOSITORY / "docs")
    parser.add_argument("--part", choices=[*PARTS], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        run_part(PARTS[arguments.part], arguments.quick, arguments.redraw, arguments.into)
        return 0
    options = ["--quick"] * arguments.quick + ["--redraw"] * arguments.redraw
    failed = run_all(arguments.only, [*options, "--into", str(arguments.into)])
    if failed:
        print(f"Failed: {', '.join(failed)}", flush=True)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())

"""The golden texts: which there are, what they say now, and where they are kept."""

import re
from pathlib import Path

from template_examples import EXAMPLES

from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render, templates_folder

FOLDER = Path(__file__).resolve().parent
TEMPLATES = sorted(
    path.relative_to(templates_folder()).with_suffix("").as_posix()
    for path in templates_folder().rglob("*.sql")
)


def engine_of(template):
    """The ledger is a SQLite file; everything else runs where the data is."""
    return "sqlite" if template.startswith("ledger/") else "duckdb"


def statement(text):
    """A rendering without its comments."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def texts_of(template):
    """The golden file of each case of a template, and what stands in it if nothing has changed."""
    found = {}
    for case, example in EXAMPLES.get(template, {"": {}}).items():
        text = example if isinstance(example, Fragment) else render(template, **example)
        name = f"{template}.{case}.sql" if case else f"{template}.sql"
        found[FOLDER / engine_of(template) / name] = statement(text)
    return found


def write_all():
    """Write all files anew, and remove those of no template."""
    wanted = {path: text for template in TEMPLATES for path, text in texts_of(template).items()}
    for path in FOLDER.rglob("*.sql"):
        if path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return len(wanted)

"""How the documentation site is built: ``just docs``, or the command in ``.ci/run``.

The source folder is the checkout, not ``docs/``: a link such as ``../benchmarks/README.md`` then means the
same in the site, on a code host, and in an editor (docs/decisions/0033).
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

import dpsyn_sql

CHECKOUT = Path(__file__).parents[1]

project = "dpsyn_sql"
author = "the authors of dpsyn_sql"
release = version = dpsyn_sql.__version__

root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "docs/**.rst",
    "benchmarks/README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# Anchors as code hosts make them of headings, so that a link to one works in both places.
myst_heading_anchors = 4

# Signatures and docstrings of release() and plan() are made when they are imported (front/request.py).
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 80
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
add_module_names = False

# DuckDB's literals of lists and structs are no standard SQL.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = "dpsyn_sql"
html_extra_path = ["site"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False


def folders_by_name(app: Sphinx, page: str, text: list[str]) -> None:
    """A link to a folder, which a code host shows and a site does not, becomes the name alone."""
    here = (CHECKOUT / page).parent

    def named(link: re.Match[str]) -> str:
        return link[1] if (here / link[2]).is_dir() else link[0]

    text[0] = re.sub(r"\[([^][]*)\]\(([^()#:]+)\)", named, text[0])


def setup(app: Sphinx) -> None:
    """What Sphinx calls."""
    app.connect("source-read", folders_by_name)

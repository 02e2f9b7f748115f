"""Runs the code blocks of a page of the documentation, in order, and compares what they print.

```` ```sh ```` blocks run in bash, ```` ```python ```` blocks in one session. A block with ``title="file"`` is
written into that file. A ```` ```text ```` block directly after a program is what it prints, up to numbers, hashes,
paths and spaces; a line ``...`` stands for any lines. ```` ```console ```` and other blocks are only read.
"""

import contextlib
import io
import re
import subprocess
import textwrap
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)(?: +title=\"(?P<title>[^\"]+)\")?[^\n]*\n(?P<body>.*?)^(?P=indent)```$",
    flags=re.MULTILINE | re.DOTALL,
)
_HASH = re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{12,}\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\d(?:T[\d:+.]+)?")
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
_FOLDER = re.compile(r"(?<!\S)(/[^\s/]+)+/(?=[^\s/]+)")


@dataclass(frozen=True)
class Block:
    """One block: its language, the file that it is, its text, and what it shall print (None: anything)."""

    language: str
    title: str
    text: str
    prints: str | None


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, each with the ``text`` block behind it."""
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    end = -1
    for match in _BLOCK.finditer(text):
        language, title = match["language"], match["title"] or ""
        body = textwrap.dedent(match["body"])
        behind = not text[end : match.start()].strip() if end >= 0 else False
        if language == "text" and behind and found and found[-1].language in ("sh", "python"):
            last = found.pop()
            found.append(Block(last.language, last.title, last.text, body))
        else:
            found.append(Block(language, title, body, None))
        end = match.end()
    return found


def shape(text: str) -> list[str]:
    """Lines without what differs from run to run."""
    for pattern, sign in ((_HASH, "#"), (_TIME, "#"), (_FOLDER, ""), (_NUMBER, "#")):
        text = pattern.sub(sign, text)
    lines = (" ".join(re.sub("─+", "─", line).split()) for line in text.splitlines())
    return [line for line in lines if line]


def agree(expected: str, printed: str) -> bool:
    """Whether the lines are of one shape; ``...`` is any number of lines."""
    parts = ["(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in shape(expected)]
    return re.fullmatch("".join(parts), "".join(f"{line}\n" for line in shape(printed))) is not None


def run(page: Path, folder: Path) -> int:
    """Run a page in a folder, which is the current one and has ``dpsyn`` on its search path. How many
    blocks ran."""
    session: dict[str, object] = {"__name__": "__main__"}
    ran = 0
    for block in blocks(page):
        if block.title:
            (folder / block.title).write_text(block.text, encoding="utf-8")
        elif block.language in ("sh", "python"):
            printed = _shell(block.text, folder) if block.language == "sh" else _python(block.text, session)
            ran += 1
            if block.prints is not None:
                assert agree(block.prints, printed), f"{page.name}:\n{block.text}\nprints\n{printed}"
    return ran


def _python(text: str, session: dict[str, object]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "a block of a page", "exec"), session)
    return out.getvalue()


def _shell(text: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{text}\nends with {done.returncode} and prints\n{done.stdout}"
    return done.stdout

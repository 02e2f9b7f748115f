"""``python .ci/size.py [FOLDER]``: how large the project is, and what it may be at most.

The limits are ``[tool.dpsyn.size]`` of pyproject.toml. For ``refusals`` it is a least number.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKAGE = "dpsyn_sql"

WHAT = {
    "package_code": "lines of code of the package",
    "package_nodes": "nodes of its syntax trees",
    "package_modules": "its modules",
    "package_imports": "imports of one of its modules by another",
    "test_code": "lines of code of the tests",
    "benchmark_code": "lines of code of the benchmarks",
    "sql_files": "templates of SQL",
    "document_words": "words of README.md and docs",
    "refusals": "raise statements of the package",
}
AT_LEAST = ("refusals",)
"""A refusal that is lost is worse than a line too many."""


def docstring_lines(tree: ast.Module) -> set[int]:
    """Numbers of the lines of strings that stand alone as a statement."""
    constants = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    return {
        number
        for constant in constants
        if isinstance(constant.value, str)
        for number in range(constant.lineno, (constant.end_lineno or constant.lineno) + 1)
    }


def code_lines(source: str) -> int:
    """Lines of Python that are no comment, no docstring and not blank."""
    strings = docstring_lines(ast.parse(source))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in strings
        for number, line in enumerate(source.splitlines(), 1)
    )


def texts(paths: Iterable[Path]) -> list[str]:
    """What files say."""
    return [path.read_text(encoding="utf-8") for path in paths]


def modules(package: Path) -> dict[str, ast.Module]:
    """Syntax trees of a package by the full names of its modules."""
    trees = {}
    for path in package.rglob("*.py"):
        name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        trees[name.removesuffix(".__init__")] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


def imports(trees: dict[str, ast.Module]) -> Iterator[tuple[str, str]]:
    """Pairs of modules of one package: who imports, and what, by ``from ... import``."""
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    target = inner if inner in trees else node.module
                    if target in trees and target != name:
                        yield name, target


def sizes(root: Path) -> dict[str, int]:
    """Each figure of ``WHAT`` for the project in a folder."""
    trees = modules(root / PACKAGE)
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    documents = texts([root / "README.md", *(root / "docs").rglob("*.md")])
    code = {
        part: sum(map(code_lines, texts((root / part).rglob("*.py"))))
        for part in (PACKAGE, "tests", "benchmarks")
    }
    return {
        "package_code": code[PACKAGE],
        "package_nodes": len(nodes),
        "package_modules": len(trees),
        "package_imports": len(set(imports(trees))),
        "test_code": code["tests"],
        "benchmark_code": code["benchmarks"],
        "sql_files": len(list((root / "sql").rglob("*.sql"))),
        "document_words": sum(len(re.findall(r"\w+", text)) for text in documents),
        "refusals": sum(isinstance(node, ast.Raise) for node in nodes),
    }


def main(root: Path) -> str | None:
    """Print the table; what is wrong, or nothing."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    limits = settings["tool"]["dpsyn"]["size"]
    if limits.keys() != WHAT.keys():
        return f"[tool.dpsyn.size] of pyproject.toml needs these keys and no others: {', '.join(WHAT)}."
    missed = []
    print(f"{'what':<42}{'now':>9}  may be")
    for key, now in sizes(root).items():
        least = key in AT_LEAST
        fails = now < limits[key] if least else now > limits[key]
        missed += [key] if fails else []
        bound = f"at {'least' if least else 'most'} {limits[key]:,}"
        print(f"{WHAT[key]:<42}{now:>9,}  {bound}{f'  <-- {key}' if fails else ''}")
    if not missed:
        return None
    return (
        f"Beyond [tool.dpsyn.size] of pyproject.toml: {', '.join(missed)}. Make it smaller (bring refusals "
        "back), or change the number there and say why in a sentence of a page in docs/decisions."
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()))

"""A tree of tables in words: what belongs to what, whom a release protects and whom not (public facts)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.planning.explain import labelled
from dpsyn_sql.planning.tree import Reference, Table, Tree


def explain_tree(tree: Tree, shapes: Mapping[str, Shape]) -> Iterator[str]:
    """The tables with their bounds, links and columns, and whom they protect, in lines for a person.

    Args:
        tree: of all tables.
        shapes: by table, the columns that are written.
    """
    yield from labelled("Tables", _tables(tree, shapes, tree.root, 0))
    if tree.public:
        names = ", ".join(table.name for table in tree.public)
        one = len(tree.public) == 1
        kept = f"kept as {'it is' if one else 'they are'}"
        yield from labelled(
            "Public", [f"{names}: the owner states that {_holds(one)} no private data; {kept}"]
        )
    yield from labelled("Protects", _protects(tree))


def _holds(one: bool) -> str:
    return "it holds" if one else "they hold"


def _tables(tree: Tree, shapes: Mapping[str, Shape], table: Table, depth: int) -> Iterator[str]:
    columns = _counted(len(shapes[table.name].order), "column")
    begin = "  " * depth
    if table.parent is None:
        yield f"{begin}{table.name}: the units, by ({', '.join(table.key)}); {columns}"
    else:
        bound = "at most one row" if table.most == 1 else f"at most {table.most:,} rows"
        order = f", ordered by {table.order}" if table.order else ""
        way = f"({', '.join(table.foreign_key)})"
        yield f"{begin}{table.name}: {bound} of each row of {table.parent} by {way}{order}; {columns}"
    yield from (f"{begin}  {line}" for line in _measured_key(tree, table, shapes[table.name]))
    for reference in table.references:
        yield f"{begin}  {', '.join(reference.columns)} -> {_named(reference)}"
    for child in tree.children(table.name):
        yield from _tables(tree, shapes, child, depth + 1)


def _measured_key(tree: Tree, table: Table, shape: Shape) -> Iterator[str]:
    """What becomes of a key of which the owner declares a part."""
    if not table.measured_key:
        return
    measured = [column for column in table.key if column in table.measured_key]
    told = f"key ({', '.join(table.key)}): {', '.join(measured)} measured"
    kept = tree.stated_key(table.name, shape)
    yield told if kept else f"{told}; no key of the copy, where measured values repeat, or are missing"


def _named(reference: Reference) -> str:
    """What is measured of a reference, and what is written."""
    if reference.kind == "public":
        by = f"by {', '.join(reference.by)}" if reference.by else "row by row"
        return f"{reference.table} (public), {by}"
    if reference.kind == "self":
        return f"an earlier row of {reference.table}, at random; that there is one is measured"
    return f"a row of {reference.table}, at random; that there is one is measured"


def _protects(tree: Tree) -> Iterator[str]:
    root = tree.root
    yield f"one row of {root.name} ({', '.join(root.key)}) with all rows that belong to it:"
    for child in tree.children(root.name):
        yield f"  {_bounds(tree, child)}"
    yield "further rows are left out by lot; each unit counts the same, however many rows it has"
    yield "rows without a key, and rows that belong to no row, are left out"
    for table in tree:
        for reference in table.references:
            if reference.kind == "other" and _may_lack_owner(table):
                names = f"{', '.join(reference.columns)} names a row of {reference.table}"
                lost = f"a row of {table.name} without {', '.join(table.foreign_key)} is left out"
                yield f"{lost}, even if its {names}"
            if reference.kind != "public":
                own = f"{table.name}.{', '.join(reference.columns)}"
                whose = _owner(table)
                yield f"whom {own} names is not protected by that: such a row belongs to {whose} alone"


def _may_lack_owner(table: Table) -> bool:
    """Whether the catalog lets rows be without the key that says whose they are."""
    strict = {column.name for column in table.relation.columns if column.not_null}
    return not strict.issuperset(table.foreign_key)


def _owner(table: Table) -> str:
    return "its own unit" if table.parent is None else f"whom {', '.join(table.foreign_key)} names"


def _bounds(tree: Tree, table: Table) -> str:
    """``at most 16 orders, of at most 32 items each``, down the tree."""
    text = f"at most {table.most:,} of {table.name}"
    below = tree.children(table.name)
    if not below:
        return text
    return f"{text}, each with {' and '.join(_bounds(tree, child) for child in below)}"


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")

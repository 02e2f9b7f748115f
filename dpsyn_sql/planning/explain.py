"""A plan in words, of one table and of a tree of tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dpsyn_sql.accounting.account import KINDS, describe, shown
from dpsyn_sql.accounting.budget import DELTA_UNITS, Number, exact_number
from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.roles import UnitId
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.planning.asking import Reserve, Step
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.planning.tree import Reference, Table, Tree
from dpsyn_sql.source.names import cut_short, listed


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise in a cell: its standard deviation and its mean absolute value, in ``noun`` (plural): rows, or
    units whose rows stay together."""

    deviation: float
    mean: float
    noun: str = "rows"


def explain(plan: Plan, shape: Shape, delta: Number, noise: Sequence[Noise]) -> Iterator[str]:
    """What matters most, in lines for a person: how far off a count will be, and who is protected.

    Args:
        plan: the plan.
        shape: the columns that are written, as far as they are known.
        delta: of the release.
        noise: per step; of reserved ones for ``pairs_assumed`` of their tables.
    """
    yield from labelled("Errors", errors_in_words(plan, noise))
    relation, unit = plan.source.relation, plan.source.unit
    yield f"Source      {relation.name} ({relation.kind})"
    for statement in relation.statements:
        yield f"            owner states: {statement}"
    if plan.source.sliced is not None:
        yield from labelled("Slice", plan.source.sliced.lines)
    if unit.column is None:
        yield "Protects    one row, not one person: a person with several rows is protected less"
    else:
        yield f"Protects    all rows of one {unit.column}; at most {unit.max_rows} of them are counted"
        if unit.together:
            yield f"            each {unit.column} counts the same, however many rows it has"
            yield "            its rows stay together: how many they are, and what they share"
        yield f"            rows without a {unit.column} are left out"
        if relation.kind in ("query", "view"):
            yield f"            owner states: {unit.column} of the result identifies the unit of each row"
    settings = ", ".join(f"{name}={value!r}" for name, value in plan.details.settings.items())
    yield f"Method      {plan.method}" + (f" ({settings})" if settings else "")
    yield from plan.details.lines
    if plan.budget.kind == "pure":
        yield f"Budget      epsilon = {shown(plan.budget.fraction)}, delta = 0 (Laplace noise)"
    else:
        threshold = plan.budget.delta / DELTA_UNITS
        privacy = describe(plan.budget, exact_number("delta", delta))
        yield f"Budget      {privacy}, {KINDS['gdp']}, Gaussian noise, threshold delta = {threshold:.3g}"
    if plan.discovery:
        share = sum(step.budget.amount for step in plan.discovery) / plan.budget.amount
        columns = _counted(len(shape.undiscovered), "column")
        yield f"Learns      what occurs in {columns}, from the rows with noise, for {share:.1%} of the budget"


def labelled(label: str, lines: Iterable[str]) -> Iterator[str]:
    """Lines below each other, the first one with a label."""
    for index, line in enumerate(lines):
        yield f"{'' if index else label:<12}{line}"


def errors_in_words(plan: Plan, noise: Sequence[Noise]) -> Iterator[str]:
    """How far off a count is, by its number of columns: twice the deviation in the noisiest table."""
    least: dict[tuple[str, ...], tuple[float, str]] = {}
    noun = noise[0].noun if noise else ""
    for step, step_noise in zip(plan.steps, noise, strict=True):
        assumed = ""
        if isinstance(step, Reserve):
            number = step.pairs_assumed(plan.domain)
            assumed = f", if {_counted(number, 'such table')} {'is' if number == 1 else 'are'} measured"
        for query in step.queries:
            error = step_noise.deviation, assumed
            least[query.attrs] = min(error, least.get(query.attrs, error))
    for columns in sorted({len(attrs) for attrs in least} - {0}):
        deviation, assumed = max(error for attrs, error in least.items() if len(attrs) == columns)
        of = _COLUMNS.get(columns, f"{columns} columns")
        yield f"a count of {of} is within about ±{_number(2 * deviation, noun)} in 95 % of releases{assumed}"


def explain_details(
    plan: Plan, shape: Shape, *, counting: Sequence[str], noise: Sequence[Noise], discovery: Sequence[str]
) -> list[str]:
    """Every column, condition and question, and how counts are made, in lines for a person.

    Args:
        plan: the plan.
        shape: as for ``explain``.
        counting: how the counts are made, as the counting plan describes it.
        noise: as for ``explain``.
        discovery: what each step of ``plan.discovery`` can find, in words.
    """
    return [
        *_columns(plan, shape, discovery),
        *(f"Never       {condition}" for condition in shape.never),
        *(_steps(plan, noise) if plan.steps else [_NO_STEPS]),
        *(counting if plan.steps else []),
    ]


_INFINITY = "infinity and -infinity count in the outer bins, and are written as finite numbers"


def _columns(plan: Plan, shape: Shape, discovery: Sequence[str]) -> Iterator[str]:
    """Every written column: its codes and who declared them, or its role."""
    one_key = any(step.ask == "total" for step in plan.discovery)  # its leaves are its codes, all of them
    codes = "one key" if one_key else f"{sum(plan.domain.shape())} codes in all"
    yield f"Columns     {len(shape.order)}, {codes}"
    measured = {column.name: item for item in shape.measured for column in item.columns}
    roles = {role.name: role for role in shape.roles}
    words_of: dict[str | None, list[str]] = {}
    rows = ""
    for step, words in zip(plan.discovery, discovery, strict=True):
        line = f"{words}, at {step.budget.amount / plan.budget.amount:.2%} of the budget"
        if step.ask == "rows":
            rows = line
        else:
            words_of.setdefault(step.attr, []).append(line)
    explained = set[str]()
    for name in shape.order:
        if name in roles:
            questions = words_of.get(None, ()) if isinstance(roles[name], UnitId) else ()
            yield f"  {cut_short(name)}: {'; '.join([roles[name].in_plan, *questions])}"
            continue
        item = measured[name]
        if item.name in explained:
            continue
        explained.add(item.name)
        columns = [column.name for column in item.columns]
        name = f"{item.name} ({', '.join(columns)})" if columns != [item.name] else item.name
        if isinstance(item, Undiscovered):
            description = "to be discovered" if item.typed else "type and values to be discovered"
            description = description if item.hierarchy is None else "nodes of a hierarchy, to be discovered"
            most = "" if one_key else f", at most {item.max_codes} codes"
            yield f"  {cut_short(name)}: {description}{most}"
            if _has_infinity(item):
                yield f"    {_INFINITY}"
            yield from (f"    {words}" for words in words_of.get(item.name, ()))
            if item.type.family == "text" and item.typed and not item.prefixes and item.hierarchy is None:
                yield "    values of few rows become __other__; type: string keeps how they begin"
        else:
            yield f"  {cut_short(name)}: {item.size} codes, {_codes_in_words(item)}"
            if _has_infinity(item):
                yield f"    {_INFINITY}"
    if rows:
        yield f"  before these: {rows}"
        yield "    if they are few, a column of numbers or times is asked about once, with more of the budget"


def _has_infinity(item: Attribute | Undiscovered) -> bool:
    """Whether values of the column can be infinite: FLOAT and DOUBLE that are measured as numbers."""
    return item.kind == "numeric" and item.type.family == "float"


def _codes_in_words(attribute: Attribute) -> str:
    noun = "categories" if attribute.kind == "categorical" else "bins"
    extras = [text for text, there in (("__other__", attribute.other), ("NULL", attribute.nullable)) if there]
    if attribute.prefixes:
        extras.insert(0, f"prefixes of {', '.join(map(str, attribute.prefixes))} characters")
    return f"{attribute.regular} {noun}{''.join(' + ' + text for text in extras)}, {attribute.origin}"


def _steps(plan: Plan, noise: Sequence[Noise]) -> Iterator[str]:
    yield "Questions"
    if plan.siblings is not None:
        share = plan.siblings.amount / plan.budget.amount
        yield (
            f"  pairs of rows of a unit: {share:.1%} of the budget, a third of it for whether they agree "
            "more than strangers; what is left of it goes to the questions below"
        )
    for step, step_noise in zip(plan.steps, noise, strict=True):
        share = step.budget.amount / plan.budget.amount
        if isinstance(step, Reserve):
            yield from _reserved(plan, step, step_noise, f"  {step.name}: {share:.1%} of the budget")
            continue
        cells = sum(plan.domain.cells(query.attrs) for query in step.queries)
        yield (
            f"  {step.name}: {_counted(len(step.queries), 'marginal')}, {_counted(cells, 'cell')}, "
            f"{share:.1%} of the budget, {_deviation(step_noise)}"
        )
        yield from _expected(plan, step, step_noise)


def _reserved(plan: Plan, step: Reserve, noise: Noise, begins: str) -> Iterator[str]:
    """A step whose questions depend on noisy answers: what it may ask, and an example of its noise."""
    if step.tables is not None:
        yield f"{begins}, about {step.tables:,} marginals over bins that earlier noisy answers decide"
        if step.further:
            yield f"    each of at most {step.most_cells:,} cells"
        yield f"    {_deviation(noise)}"
        return
    number = len(step.queries)
    candidates = f" about {_counted(number, 'candidate marginal')}" if number else ""
    yield f"{begins}, for questions{candidates} that depend on earlier noisy answers"
    if step.further:
        also = "and about other " if number else ""
        yield (
            f"    {also}marginals of at most {step.most_attributes} attributes and {step.most_cells:,} cells "
            f"each, {step.together:,} cells in all"
        )
    assumed = step.pairs_assumed(plan.domain)
    if assumed == number:
        yield f"    if all of them are measured whole: {_deviation(noise)}"
    else:
        yield (
            f"    for example, if it paid for {_counted(assumed, 'table')}, as many as there are columns: "
            f"{_deviation(noise)}"
        )
    yield from _expected(plan, step, noise)


def _deviation(noise: Noise) -> str:
    return f"noise of standard deviation {noise.deviation:,.4g} {noise.noun} a cell"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _expected(plan: Plan, step: Step, noise: Noise) -> Iterator[str]:
    """How far off a typical measured table is, by its number of columns: the noise alone."""
    sizes: dict[int, list[int]] = {}
    for query in step.queries:
        sizes.setdefault(len(query.attrs), []).append(plan.domain.cells(query.attrs))
    sizes.pop(0, None)  # the rows in all are one number
    for columns, cells in sorted(sizes.items()):
        typical = sorted(cells)[len(cells) // 2]
        off = typical * noise.mean
        most = "up to " if plan.discovery else ""
        yield (
            f"    a table of {_COLUMNS.get(columns, f'{columns} columns')} with {most}{typical:,} cells is "
            f"off by about {_number(off, noise.noun)} in all: {_number(off / 2, noise.noun)} in the wrong "
            "cell"
        )


_NO_STEPS = "Questions   those above; the method asks no others"
_COLUMNS = {1: "one column", 2: "two columns"}


def _number(number: float, noun: str) -> str:
    shown = f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
    return f"{shown} {noun.removesuffix('s')}" if shown == "1" else f"{shown} {noun}"


# -- columns of text without a stated type --------------------------------------------------------------

_MOST_NAMED = 8  # names in a message


def stay_text(names: Sequence[str]) -> str:
    """What columns lose that are read as text for the sake of a statement of the owner's."""
    single = len(names) == 1
    return (
        f"{listed(names, _MOST_NAMED)} {'has' if single else 'have'} no stated type and "
        f"{'is' if single else 'are'} read as text: an expression (derived:, never:), the slice, or "
        "csv={'on_error': 'fail'} needs the type before rows are read. Numbers and dates that are text come "
        "back as frequent values or __other__. State sql_type in a domain file; dpsyn init writes one."
    )


def learnt_types(plan: Plan, names: Sequence[str]) -> str:
    """What it costs to learn the types of these columns."""
    spent = sum(step.budget.amount for step in plan.discovery if step.ask == "types") / plan.budget.amount
    lone = len(names) == 1
    return (
        f"{len(names)} column{'' if lone else 's'} of the CSV file {'has' if lone else 'have'} no stated "
        f"type ({listed(names, _MOST_NAMED)}): {'it is' if lone else 'they are'} learnt from the rows with "
        f"noise, at {spent:.2%} of the budget, and values that do not fit the found type become NULL. To "
        "spare that, state sql_type in a domain file; dpsyn init writes one."
    )


# -- trees -------------------------------------------------------------------------------------------

# A tree of tables in words: what belongs to what, whom a release protects and whom not (public facts).


def explain_tree(tree: Tree, shapes: Mapping[str, Shape]) -> Iterator[str]:
    """The tables with their bounds, links and columns, and whom they protect, in lines for a person.

    Args:
        tree: of all tables.
        shapes: by table, the columns that are written.
    """
    yield from labelled("Tables", _tables(tree, shapes, tree.root, 0))
    if tree.public:
        names = ", ".join(table.name for table in tree.public)
        single = len(tree.public) == 1
        copied = f"kept as {'it is' if single else 'they are'}"
        yield from labelled(
            "Public", [f"{names}: the owner states that {_holds(single)} no private data; {copied}"]
        )
    yield from labelled("Protects", _protects(tree))


def _holds(single: bool) -> str:
    return "it holds" if single else "they hold"


def _tables(tree: Tree, shapes: Mapping[str, Shape], table: Table, depth: int) -> Iterator[str]:
    columns = _plural(len(shapes[table.name].order), "column")
    begin = "  " * depth
    if table.parent is None:
        yield f"{begin}{table.name}: the units, by ({', '.join(table.key)}); {columns}"
    else:
        bound = "at most one row" if table.most == 1 else f"at most {table.most:,} rows"
        order = f", ordered by {table.order}" if table.order else ""
        foreign_key = f"({', '.join(table.foreign_key)})"
        yield f"{begin}{table.name}: {bound} of each row of {table.parent} by {foreign_key}{order}; {columns}"
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
    words = f"key ({', '.join(table.key)}): {', '.join(measured)} measured"
    stated = tree.stated_key(table.name, shape)
    yield words if stated else f"{words}; no key of the copy, where measured values repeat, or are missing"


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
                naming = f"{table.name}.{', '.join(reference.columns)}"
                whose = _owner(table)
                yield f"whom {naming} names is not protected by that: such a row belongs to {whose} alone"


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


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")

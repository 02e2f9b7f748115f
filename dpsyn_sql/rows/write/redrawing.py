"""Rows that meet a condition of ``shape.never`` are changed no more than they must be.

Whole other rows in their place would have more of what never meets a condition, such as NULL. So such a row
first gets other values within the same codes. If its codes allow none, one of its columns that the conditions
name gets the code of a possible row, NULL where it has NULL: of one that has the same codes in all other
columns, else in the others that the conditions name. Then all of these columns do, of any row. A row that is
impossible even then is removed, and another one is drawn.

Random bits of a row come from its number. So other values are another number: ``STEP`` is added each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.domain.shape import Derived, Shape
from dpsyn_sql.rows.decode.output import Kept, impossible_rows, number_column
from dpsyn_sql.rows.sample.rounds import APART
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.fragments import Fragment, ident
from dpsyn_sql.sqltext.render import render

STEP = 2**34
"""Larger than the numbers of rows that are drawn for a part."""

WITHIN = 12
"""Times that values are drawn within the same codes: a row of which one in three is possible is found with
probability .992."""

AFTER = 3
"""The same for codes of another row, whose own values are possible."""

_WORD = re.compile(r"""'(?:[^']|'')*'|"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^\W\d][\w$]*)""")
# A text, which names nothing, or an identifier.

_MOST_ALONE = 4
# Columns that are changed alone: ``STEP`` is added fewer than 64 times, and parts stay apart.


def again_statement(
    shape: Shape, staged: Fragment, first: int | Fragment, seed: int, kept: Kept | None = None
) -> Fragment:
    """Give the staged rows that meet a condition other values within their codes; ``first`` and ``kept`` as
    of ``impossible_rows``."""
    _, impossible = impossible_rows(shape, staged, first, seed, kept)
    number = number_column(shape)
    return render("write/again", staged=staged, number=number, step=STEP, impossible=impossible)


def possible_statements(
    shape: Shape, staged: Fragment, first: int | Fragment, seed: int
) -> Iterator[tuple[Fragment, int]]:
    """Change, then remove, the staged rows, from row number ``first`` on, that meet a condition; of rows that
    are each by themselves.

    One statement after the other, each with what is added to ``first`` in the numbers of the rows that
    met a condition before it: without such rows the others change nothing.
    """
    turn = 0

    def looked() -> Fragment:
        return Fragment(f"{first} + {turn * STEP}")

    for turn in range(WITHIN):
        yield again_statement(shape, staged, looked(), seed), turn * STEP
    turn = WITHIN
    for alike, places in _donors(shape):
        number, impossible = impossible_rows(shape, staged, looked(), seed)
        taken = render(
            "write/instead",
            staged=staged,
            first=first,
            number=ident(number),
            impossible=impossible,
            alike=Fragment(f"hash({', '.join(['0', *alike])})"),
            codes=[Fragment(f"a{place}") for place in places],
            step=STEP,
        )
        yield taken, turn * STEP
        turn += 1
        for _ in range(AFTER):
            yield again_statement(shape, staged, looked(), seed), turn * STEP
            turn += 1
    _, impossible = impossible_rows(shape, staged, looked(), seed)
    yield render("write/reject", staged=staged, impossible=impossible), turn * STEP


def _donors(shape: Shape) -> Iterator[tuple[list[str], list[int]]]:
    """What rows have to agree in, as expressions, and the attributes whose codes one takes over from another:
    one column of the conditions alone, the last ones first, and only where no row is found for that, all."""
    attributes = shape.domain.attributes
    places = [place for place, one in enumerate(attributes) if _named(shape, one)]
    others = [f"a{place}" for place in range(len(attributes)) if place not in places]
    nulls = [f"a{place} = {attributes[place].size - 1}" for place in places if attributes[place].nullable]
    for rest in (others, []):
        for place in reversed(places[:_MOST_ALONE]):
            yield [*rest, *nulls, *(f"a{other}" for other in places if other != place)], [place]
    if len(places) > 1:
        yield nulls, places


def _named(shape: Shape, attribute: Attribute) -> bool:
    """Whether a condition names a column of an attribute, or a computed column that is made of one."""
    texts = list[str](shape.never)
    for role in shape.roles:
        if isinstance(role, Derived) and any(_names(text, role.name) for text in texts):
            texts.append(role.expression)
    return any(_names(text, column.name) for text in texts for column in attribute.columns)


def _names(text: str, column: str) -> bool:
    """Whether an identifier of the text, as it was printed, is that of a column; a function or a type that is
    called so is no harm."""
    return any(
        (found["plain"] or (found["quoted"] or "").replace('""', '"')).lower() == column.lower()
        for found in _WORD.finditer(text)
    )


def replaced_rows(engine: Engine, staged: Fragment, rows: int, part: int) -> int:
    """How many staged rows conditions gave other codes; ``rows`` were drawn first, a ``part`` at a time."""
    sql = render(
        "write/replaced",
        staged=staged,
        apart=APART,
        step=STEP,
        within=WITHIN,
        drawn=min(rows, part),
    )
    return int(engine.fetch(sql, step="counting sampled rows")["replaced"][0])

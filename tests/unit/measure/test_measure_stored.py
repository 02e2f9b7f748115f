"""Ledgers of every version since the first replay: questions are stored as here, and answers are read as here."""

import json

import numpy as np
import pytest
from support.doors import OneRelease, ReadAtOnce
from support.hierarchies import Halves, Letters

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import event_from_dict, event_to_dict
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.ledger.store import canonical_json
from dpsyn_sql.planning.queries import (
    Choice,
    ContributionQuery,
    Distances,
    FamilyChoice,
    GridQuery,
    KeyQuery,
    LeafQuery,
    MarginalQuery,
    Marginals,
    Residuals,
    Siblings,
    StepQuery,
    TreeQuery,
    TypesQuery,
)
from dpsyn_sql.private.measure.counting import Counts, PrivateSide
from dpsyn_sql.private.measure.questions import QUESTIONS, parts_of_question

GRID = Attribute("n", "INTEGER", "numeric", edges=(0, 1, 2, 4), nullable=True)
DOMAIN = Domain((GRID, Attribute("b", "VARCHAR", "categorical", labels=tuple("vwxyz"))))
N = MarginalQuery(("n",))
BINS = MarginalQuery(("n", "b"), (None, (1, 0, 1, 0, 2)))
MAPS = "2a0dafaa9998792b1c94e9d02c5ec158ba433cd84b36433867ade300929769a8"
CLASSES = "8202653dc5f37d301cbdfa829bb6a967cec5b4b63a62bc12fbfdb898c1d935a3"
CUTS = "4eb0ab2042fef634a80422bfb72ded97edc02f47cc33cd75d54cbce11e3d70fd"
HALVES, LETTERS = Halves("n", 3), Letters("s", 2, "a")
HALF = '{"depth":3,"kind":"halves","name":"n","nullable":false}'
LETTER = '{"alphabet":"a","depth":2,"kind":"letters","name":"s"}'
LEVELS = tuple(np.array(levels, dtype=np.int64) for levels in ([1, 2, 2],))
NODES = (np.array([0, 2, 3], dtype=np.int64),)
LEAVES = "71777cd74204eb08fa05fa2651c187faddda5c8a0bc84bfec7cdd139cbf7dc7f"
ROWS = 3
GDP = Budget.from_epsilon(3, 1e-9)
PURE = Budget("pure", 3 * 10**15)
REFERENCES = [np.ones(query.shape(DOMAIN), dtype=np.int64) for query in (N, BINS)]


def leaves_said(tree):
    parts = [[part.tolist() for part in parts] for parts in (tree.levels, tree.nodes)]
    return *parts, None if tree.counts is None else tree.counts.tolist()


# Question, budget, the question as it is stored (a test of {"ask":"..."} alone tells the rest of the text), the answer as it is stored, what it says.
STORED = [
    (
        Marginals((N,)),
        PURE,
        '{"ask":"measure","event":"laplace","l1":3,"scale":12.0,"tables":[["n"]]}',
        [[1, 2, 3, -4]],
        lambda tables: [(table.attrs, table.values.tolist()) for table in tables],
        [(("n",), [1, 2, 3, -4])],
    ),
    (
        Residuals([N, BINS]),
        GDP,
        f'{{"ask":"residuals","event":"gaussian","l2_squared":756,"maps":"{MAPS}",'
        '"sigma":185.6742477179364,"tables":[["n"],["n","b"]]}',
        [[1, 2, 3, 4], [[1, 2, 3]] * 4],
        lambda tables: [(table.values.tolist(), table.scale) for table in tables],
        [([1, 2, 3, 4], 185.6742477179364), ([[1, 2, 3]] * 4, 185.6742477179364)],
    ),
    (
        Siblings([MarginalQuery(("n", "n")), BINS]),
        GDP,
        '{"ask":"siblings","event":"gaussian","l2_squared":2199023255552,"lattice":16,'
        f'"maps":"{MAPS}","sigma":10013375.215136042,"tables":[["n","n"],["n","b"]]}}',
        [[[1, 2, 3, 4]] * 4, [[1, 2, 3]] * 4],
        lambda tables: [(table.values.tolist(), table.sigma) for table in tables],
        [([[1, 2, 3, 4]] * 4, 10013375.215136046), ([[1, 2, 3]] * 4, 10013375.215136046)],
    ),
    (
        Distances([N, BINS], REFERENCES),
        GDP,
        f'{{"ask":"distance","event":"gaussian","l2_squared":18,"lattice":16,"maps":"{MAPS}",'
        '"sigma":28.648768990266532,"tables":[["n"],["n","b"]]}',
        [[7, -8]],
        list,
        [7, -8],
    ),
    (
        Marginals([N, BINS]),
        GDP,
        f'{{"ask":"measure","event":"gaussian","l2_squared":18,"lattice":16,"maps":"{MAPS}",'
        '"sigma":28.648768990266532,"tables":[["n"],["n","b"]]}',
        [[1, 2, 3, 4], [[1, 2, 3]] * 4],
        lambda tables: [(table.values.tolist(), table.sigma) for table in tables],
        [([1, 2, 3, 4], 28.650223349757514), ([[1, 2, 3]] * 4, 28.650223349757514)],
    ),
    (
        Choice([N, BINS], REFERENCES, 2, [0, 1]),
        GDP,
        f'{{"ask":"select","event":"selection","maps":"{MAPS}","number":2,'
        '"scale":35.90108335440039,"sensitivity":3,"tables":[["n"],["n","b"]]}',
        [[1, 0]],
        list,
        [1, 0],
    ),
    (
        FamilyChoice([N, BINS], ["n", "b"], "I", 9),
        GDP,
        f'{{"ask":"family","bits":9,"children":["n","b"],"event":"selection","maps":"{MAPS}","number":1,'
        '"scale":67848.03998195281,"score":"I","sensitivity":8019,"tables":[["n"],["n","b"]]}',
        [[1]],
        int,
        1,
    ),
    (
        KeyQuery("e", "ENUM('secret')", 7),
        GDP,
        '{"ask":"discover","attr":"e","event":"threshold","keys_per_unit":2,"lattice":16,"least":4,"longest":7,'
        '"sigma":9.55031683393952,"threshold":67,"type":"ENUM","what":"keys"}',
        [[401, 400], [1, 2], [90, 195, 164]],
        lambda found: (found.keys, found.values.tolist(), found.threshold),
        (("Z", "ä"), [401, 400], 70),
    ),
    (
        GridQuery(GRID),
        PURE,
        f'{{"ask":"discover","attr":"n","codes":4,"cuts":"{CUTS}","event":"laplace","l1":2,"scale":8.0,'
        '"type":"INTEGER","what":"grid"}',
        [[5, 0, 9, 2]],
        lambda found: (found.attrs, found.values.tolist()),
        (("n",), [5, 0, 9, 2]),
    ),
    (
        TypesQuery("s"),
        GDP,
        f'{{"ask":"discover","attr":"s","classes":"{CLASSES}","event":"gaussian","l2_squared":2,"lattice":16,'
        '"sigma":9.55031683393952,"type":"VARCHAR","what":"types"}',
        [list(range(19))],
        lambda found: (found.attrs, found.values.tolist(), found.sigma),
        (("s",), list(range(19)), 9.554678694857401),
    ),
    (
        StepQuery("n", "INTEGER", (5, 10)),
        GDP,
        '{"ask":"discover","attr":"n","event":"gaussian","l2_squared":1,"lattice":16,"sigma":6.753672209569716,'
        '"steps":["5","10"],"type":"INTEGER","what":"steps"}',
        [[7, 0, 20]],
        lambda found: (found.steps, found.values.tolist()),
        ((5, 10), [7, 0, 20]),
    ),
    (
        ContributionQuery(3),
        GDP,
        '{"ask":"discover","event":"gaussian","l2_squared":1,"lattice":16,"most":3,"sigma":6.753672209569716,'
        '"what":"contributions"}',
        [[4, 0, 6]],
        lambda found: (found.values.tolist(), found.sigma),
        ([4, 0, 6], 6.7598388773437215),
    ),
    (
        TreeQuery((HALVES,), "privtree", 2, most=100),
        GDP,
        '{"ask":"discover","depth":2,"event":"tree","hierarchies":['
        + HALF
        + '],"most":100,"points_per_unit":3,'
        '"scale":76.14819302127138,"split_from":null,"splitter":"privtree","what":"tree"}',
        [[1], [0, 1]],
        leaves_said,
        ([[1, 2, 2]], [[0, 2, 3]], None),
    ),
    (
        TreeQuery((HALVES,), "basic", 3, 10),
        GDP,
        '{"ask":"discover","depth":3,"event":"gaussian","hierarchies":['
        + HALF
        + '],"l2_squared":27,"lattice":16,"most":1048576,'
        '"sigma":35.08732156330098,"split_from":10,"splitter":"basic","what":"tree"}',
        [[40], [30, 9], [7, 8]],
        leaves_said,
        ([[2, 2, 1]], [[0, 1, 1]], [7, 8, 9]),
    ),
    (
        TreeQuery((HALVES, LETTERS), "privtree", 2),
        PURE,
        '{"ask":"discover","choice":{"event":"selection","number":2,"scale":192.0,"sensitivity":3},"depth":2,'
        '"event":"tree","hierarchies":[' + HALF + "," + LETTER + '],"most":1048576,"points_per_unit":3,'
        '"scale":48.00000000000001,"split_from":null,"splitter":"privtree","what":"tree"}',
        [[1], [1], [1, 0], []],
        leaves_said,
        ([[1, 1, 0], [1, 1, 1]], [[0, 1, 0], ["\x03", "\x03", "a"]], None),
    ),
    (
        LeafQuery((HALVES,), LEVELS, NODES),
        GDP,
        '{"ask":"discover","event":"gaussian","hierarchies":[' + HALF + '],"l2_squared":9,"lattice":16,'
        f'"leaves":"{LEAVES}","sigma":20.257931652289397,"what":"leaves"}}',
        [[4, 5, -6, 7, 8]],
        lambda found: (found.values.tolist(), found.sigma),
        ([4, 5, -6, 7, 8], 20.259988355430067),
    ),
]


class Unread:
    """A source that is out of reach."""


OF_EVENTS = {"event", "sigma", "l2_squared", "scale", "l1", "sensitivity", "number"}
OF_EVENTS |= {"lattice", "keys_per_unit", "threshold", "points_per_unit", "branching"}


@pytest.mark.parametrize("case", STORED, ids=lambda case: f"{type(case[0]).__name__}-{case[1].kind}")
def test_a_stored_answer_is_found_by_its_question_and_read(case):
    question, whole, text, arrays, said, expected = case
    stored, release, share = json.loads(text), OneRelease(whole), whole.split([1] * 12)[0]
    counts = None if stored["ask"] == "discover" else Counts(Unread(), DOMAIN)
    question_parts = parts_of_question(question, share, PrivateSide(ROWS, Unread(), counts, Unread()))
    assert canonical_json({**question_parts.named, **event_to_dict(question_parts.event)}) == text
    entry = release.open()
    asked = entry.ask(stored)
    asked.charge(event_from_dict({name: stored[name] for name in OF_EVENTS & set(stored)}))
    if "choice" in stored:
        asked.charge(event_from_dict(stored["choice"]))
    asked.store([np.array(array, dtype=np.int64) for array in arrays])
    entry.close_questions()
    door = ReadAtOnce(None, None, ROWS, release.open(), Unread(), Unread())
    if stored["ask"] != "discover":
        door.open(Unread(), DOMAIN)
    assert said(door.ask(question, share)) == expected


def test_every_question_of_the_door_is_here():
    assert {type(case[0]) for case in STORED} == set(QUESTIONS)

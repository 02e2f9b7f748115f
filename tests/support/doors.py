"""Stand-ins for the door and what is behind it, for tests of one side of it."""

from dataclasses import replace

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.planning.asking import Answered, Reserve
from dpsyn_sql.planning.limits import NO_TERMS
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.planning.queries import (
    Choice,
    Distances,
    FamilyChoice,
    Marginals,
    NoisyMarginal,
    NoisyResidual,
    Residuals,
)
from dpsyn_sql.planning.row_labels import check_labels
from dpsyn_sql.private.count.counter import aggregated
from dpsyn_sql.private.measure.curator import LocalCurator
from dpsyn_sql.private.measure.scores import scored

EVERYTHING = Reserve("everything", Budget("gdp", 10**18), (), 99, 2**60, 2**61, pairs_of_rows=True)
"""Whatever is asked lies within it."""


class ReadAtOnce(LocalCurator):
    """The door, whose answers are read as soon as they are asked for; everything may be asked for."""

    def __init__(self, counter, domain, rows_per_unit, entry, noise, discovery=None):
        super().__init__(entry, noise)
        if counter is None:
            self.discover(discovery, rows_per_unit)
        else:
            self.open(counter, domain, rows_per_unit)

    def open(self, counter, domain, rows_per_unit=None):
        super().open(lambda steps: counter, domain, rows_per_unit)
        self.reserve(EVERYTHING)

    def discover(self, counter, rows_per_unit):
        super().discover(counter, rows_per_unit)
        self.reserve(EVERYTHING)

    def ask(self, question, budget, name=""):
        return super().ask(question, budget, name).read()


def opened(counter, domain, rows_per_unit, entry, noise):
    """The door in front of the counts of one table."""
    door = LocalCurator(entry, noise)
    door.open(lambda steps: counter, domain, rows_per_unit)
    return door


def ran(method, plan, door, terms=NO_TERMS):
    """A method, run as it was planned."""
    return method.run(door, plan.domain, plan.budget, replace(terms, unit=plan.source.unit))


class FakeDoor:
    """What ``answer`` says is known as soon as it is asked for."""

    def reserve(self, reserve):
        pass

    def ask(self, question, budget, name=""):
        return Answered(self.answer(question, budget))


class FakeCurator(FakeDoor):
    """A curator without ledger and noise: ``table`` says what a marginal holds, and all answers follow.

    ``asked``: of each question its kind as ledgers have it, its marginals and its budget. What no method may
    ask fails here.
    """

    def __init__(self, domain, table, sigma=5.0):
        self.domain, self.table, self.sigma, self.asked = domain, table, sigma, []

    def answer(self, question, budget):
        if isinstance(question, Marginals):
            self.asked.append(("measure", question.queries, budget))
            if question.labels:
                check_labels(question.labels, self.domain)
                tables = self.labelled_tables(question)
                return [
                    NoisyMarginal(q.attrs, table, self.sigma, q.maps)
                    for q, table in zip(question.queries, tables, strict=True)
                ]
            return [NoisyMarginal(q.attrs, self.table(q), self.sigma, q.maps) for q in question.queries]
        if isinstance(question, Residuals):
            self.asked.append(("residuals", question.queries, budget))
            return [self.residual(query) for query in question.queries]
        if isinstance(question, Distances):
            self.asked.append(("distance", question.queries, budget))
            return self.distances(question.queries, self._checked(question.queries, question.references))
        if isinstance(question, FamilyChoice):
            self.asked.append(("family", question.candidates, budget))
            return self.family(question)
        assert isinstance(question, Choice)
        self.asked.append(("select", question.candidates, budget))
        references = self._checked(question.candidates, question.references)
        allowances = question.allowances or [0] * len(references)
        assert len(allowances) == len(references)
        assert all(type(rows) is int and 0 <= rows < 2**62 for rows in allowances)
        return self.chosen(question.candidates, references, question.number, allowances)

    def labelled_tables(self, question):
        """Tables of a question with labels; ``table`` gives them too, if it knows the labels' domain."""
        raise NotImplementedError("this stand-in knows no labels")

    def family(self, question):
        pairs = zip(question.candidates, question.children, strict=True)
        scores = [
            scored(self.table(query), query.attrs.index(child), question.score, question.bits)
            for query, child in pairs
        ]
        return int(np.argmax(scores))

    def residual(self, query):
        values = centred(self.table(query))
        return NoisyResidual(query.attrs, values, self.sigma * values.size, query.maps)

    def distances(self, queries, references):
        pairs = zip(queries, references, strict=True)
        return [int(np.abs(self.table(query) - table).sum()) for query, table in pairs]

    def chosen(self, candidates, references, number, allowances):
        scores = np.array(self.distances(candidates, references)) - np.array(allowances)
        return np.argsort(-scores, kind="stable")[:number].tolist()

    def _checked(self, queries, references):
        for query, table in zip(queries, references, strict=True):
            assert table.dtype == np.int64 and table.shape == query.shape(self.domain)
        return references


def centred(table):
    """(k_1 I - J) x ... x (k_m I - J) of a table, as a matrix."""
    matrix = np.ones((1, 1), dtype=np.int64)
    for size in table.shape:
        matrix = np.kron(matrix, size * np.eye(size, dtype=np.int64) - 1)
    return (matrix @ table.ravel()).reshape(table.shape)


def table_of(domain, codes, query):
    """The exact table of columns of codes, over bins where the query has maps."""
    if not query.attrs:  # the total
        return np.array(len(codes[0]), dtype=np.int64)
    places = [domain.index(name) for name in query.attrs]
    maps = query.maps or (None,) * len(places)
    axes = [
        codes[place] if bins is None else np.array(bins)[codes[place]]
        for place, bins in zip(places, maps, strict=True)
    ]
    found = np.zeros(query.shape(domain), dtype=np.int64)
    np.add.at(found, tuple(axes), 1)
    return found


class FakeCounter:
    """A counter of the tables that ``table`` gives; ``asked`` is what it was asked for, call by call."""

    def __init__(self, table, log=None):
        self.table, self.log, self.asked = table, [] if log is None else log, []

    def count(self, queries, labels=()):
        self.asked.append(list(queries))
        self.log.append("count")
        return [aggregated(self.table(query.original), query.maps) for query in queries]


class NoNoise:
    """Adds ``more`` to every cell, and says which noise of which scale it should have been."""

    def __init__(self, log=None, more=0):
        self.log, self.more = [] if log is None else log, more

    def gaussian(self, values, sigma):
        self.log.append(("gaussian", sigma))
        return values + self.more

    def laplace(self, values, scale):
        self.log.append(("laplace", scale))
        return values + self.more

    def select(self, scores, scale, kind, number):
        return np.argsort(-scores, kind="stable")[:number]


class OneRelease:
    """A release in a ledger in memory, which each ``open`` opens again, as a replay does."""

    def __init__(self, budget):
        self.ledger, self.budget = MemoryLedger(), budget

    def open(self):
        with self.ledger.open_release(ReleaseKey(None, "r", None, {}), self.budget) as entry:
            return entry


class NotedEntry:
    """An entry that says when it is charged and when it stores, and keeps what it was given to store."""

    def __init__(self, entry, log=None):
        self.entry, self.log, self.answers = entry, [] if log is None else log, []

    def __getattr__(self, name):
        return getattr(self.entry, name)

    @property
    def questions(self):
        return [question for question, _ in self.answers]

    def ask(self, question):
        return _NotedQuestion(self, question)


class _NotedQuestion:
    def __init__(self, noted, question):
        self.noted, self.question, self.asked = noted, question, noted.entry.ask(question)
        self.stored = self.asked.stored

    def charge(self, event):
        self.asked.charge(event)
        self.noted.log.append("charge")

    def store(self, answer):
        self.noted.answers.append((self.question, answer))
        self.noted.log.append("store")
        return self.asked.store(answer)

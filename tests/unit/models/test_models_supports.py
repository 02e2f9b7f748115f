"""``supports`` says what ``project`` does, whatever the model and whatever it is asked."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit import elimination
from dpsyn_sql.fit.belief import calibrate, marginals
from dpsyn_sql.fit.conditional import Conditional
from dpsyn_sql.fit.copula import fit_copula
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.fit.views import Margins
from dpsyn_sql.methods.models.margins import CopulaModel, ProductModel, ViewsModel
from dpsyn_sql.methods.models.networks import GraphicalModel, NetworkModel, TargetModel
from dpsyn_sql.planning.queries import NoisyMarginal

SIZES = (2, 3, 4, 1, 3)
NAMES = [f"x{i}" for i in range(5)]
DOMAIN = Domain(
    tuple(Attribute(n, "INTEGER", "categorical", tuple(range(k))) for n, k in zip(NAMES, SIZES, strict=True))
)


def graphical():
    rng, scopes = np.random.default_rng(1), [(0, 1, 2), (2, 4), (3,)]
    potentials = {scope: rng.normal(0, 1, [SIZES[v] for v in scope]) for scope in scopes}
    beliefs = calibrate(junction_tree(SIZES, scopes), potentials)
    every = tuple(np.arange(k) for k in SIZES)
    return GraphicalModel(DOMAIN, 100.0, beliefs, every, tuple(np.ones(k) for k in SIZES))


def copula():
    tables = [NoisyMarginal((n,), np.full(k, 60 // k), 1.0) for n, k in zip(NAMES, SIZES, strict=True)]
    return CopulaModel(DOMAIN, fit_copula(DOMAIN, tables))


def views(reconstruction):
    beliefs = graphical().beliefs
    tables = marginals(beliefs, [(0, 1, 2), (2, 4), (0,), (1,), (2,), (3,), (4,)])
    every = tuple(np.arange(k) for k in SIZES)
    within = tuple(np.ones(k) for k in SIZES)
    return ViewsModel(DOMAIN, 100.0, tables, beliefs, every, within, "exchange", reconstruction)


def of_target():
    model, law = graphical(), Conditional(graphical().beliefs, {}, 2)
    rows = tuple(np.concatenate([*model.sampler().batches(500, 1)]).astype(np.int64).T)
    return TargetModel(DOMAIN, 100.0, model, law, rows, law.given(dict(enumerate(rows))))


MODELS = {
    "target": of_target(),
    "product": ProductModel(
        DOMAIN, Margins(9.0, {n: np.full(k, 1 / k) for n, k in zip(NAMES, SIZES, strict=True)})
    ),
    "copula": copula(),
    "graphical": graphical(),
    "network": NetworkModel(DOMAIN, 100.0, graphical().network()),
    "views": views("maximum_entropy"),
    "views, least norm": views("least_norm"),
}
QUESTIONS = st.one_of(
    st.lists(st.sampled_from([*NAMES, "nobody"]), max_size=5),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True),
    st.sampled_from(["x0", "nobody", "", None, 3, {"x0"}, ["x0", 1], ("x4", "x2"), [["x0"]]]),
)

MODELS_MARKED = [
    pytest.param(model, marks=pytest.mark.slow) if "least norm" in name else model
    for name, model in MODELS.items()
]


@pytest.mark.parametrize("model", MODELS_MARKED, ids=MODELS)
@settings(max_examples=80)
@given(QUESTIONS, st.integers(1, 80))
def test_what_a_model_supports_is_what_it_answers(model, attrs, limit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination, "MOST_LINES", limit)
        if not model.supports(attrs):
            with pytest.raises(InputError):
                model.project(attrs)
            return
        names = [attrs] if isinstance(attrs, str) else list(attrs)
        table = model.project(attrs)
    assert table.shape == DOMAIN.shape(names) and table.sum() == pytest.approx(model.total)


def test_a_clique_answers_three_and_a_pair_across_cliques_two():
    model = MODELS["graphical"]
    assert model.supports(["x2", "x0", "x1"]) and model.supports(["x4", "x0"])
    assert not model.supports(["x0", "x2", "x4"]) and not MODELS["copula"].supports(NAMES[:3])
    assert MODELS["network"].supports(NAMES)


def test_views_answer_everything_and_their_tables_hold_every_pair():
    model = MODELS["views"]
    assert model.supports(NAMES)
    np.testing.assert_allclose(model.project(["x2", "x0"]), MODELS["graphical"].project(["x2", "x0"]))
    scopes = [set(scope) for scope, _ in model.tables().tables]
    assert all(any({i, j} <= scope for scope in scopes) for i in range(5) for j in range(i))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpsyn_sql.fit.reconstruct.MOST_CELLS", 10)
        assert model.supports(["x0", "x1", "x2"])
        with pytest.raises(InputError, match=r"72 cells is too large, as it is reconstructed .* are 10; ask"):
            model.project(NAMES)

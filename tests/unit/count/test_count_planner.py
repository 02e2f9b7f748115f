"""The counting plan: every marginal covered, within the limits, chosen by cost."""

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import InternalError, PlanTooLarge
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count import planner
from dpsyn_sql.private.count.planner import check_size, groups_for, plan_counting


def domain_of(*sizes: int) -> Domain:
    return Domain(
        tuple(
            Attribute(f"a{i}", "INTEGER", "categorical", labels=tuple(range(size)))
            for i, size in enumerate(sizes)
        )
    )


def all_of(domain: Domain, k: int) -> list[MarginalQuery]:
    return [MarginalQuery(names) for names in combinations(domain.names, k)]


@st.composite
def workloads(draw):
    domain = domain_of(*draw(st.lists(st.integers(1, 300), min_size=1, max_size=14)))
    names = st.lists(st.sampled_from(domain.names), max_size=3, unique=True)
    queries = [MarginalQuery(tuple(attrs)) for attrs in draw(st.lists(names, max_size=25))]
    return domain, [query for query in queries if domain.cells(query.attrs) <= 2**20]


@given(workloads())
def test_every_plan_covers_its_marginals_within_the_limits(workload):
    domain, queries = workload
    plan = plan_counting(queries, domain)
    position = {name: index for index, name in enumerate(domain.names)}

    packed = [attribute for pack in plan.packs for attribute in pack]
    asked = {position[name] for query in queries for name in query.attrs}
    assert len(packed) == len(set(packed))
    assert set(packed) == asked or (not asked and len(packed) == (1 if queries else 0))

    taken = [query for group in plan.groups for query in group.queries]
    assert len(taken) == len(set(taken))
    assert set(taken) == set(queries)
    for group in plan.groups:
        held = {attribute for pack in group.packs for attribute in plan.packs[pack]}
        assert group.packs == tuple(sorted(set(group.packs)))
        assert group.cells == math.prod(domain.attributes[attribute].size for attribute in held)
        assert group.cells <= planner.MAX_MARGINAL_CELLS
        assert all(position[name] in held for query in group.queries for name in query.attrs)
    for one, other in combinations(plan.groups, 2):
        assert not set(one.packs) <= set(other.packs)
        assert not set(other.packs) <= set(one.packs)
    assert plan.cells == sum(domain.cells(query.attrs) for query in queries)
    assert plan.cells + plan.largest_group <= planner.MAX_TOTAL_CELLS
    assert plan.describe()


@given(workloads())
def test_the_chosen_packing_never_costs_more_than_none(workload):
    domain, queries = workload
    plan = plan_counting(queries, domain)
    if plan.strategy == "scan":
        return
    singles = tuple((attribute,) for pack in plan.packs for attribute in pack)
    plain = groups_for(queries, singles, domain)
    cost = planner._cost(group.cells for group in plan.groups)
    assert cost <= planner._cost(group.cells for group in plain)
    assert (plan.strategy == "encoded") == all(len(pack) == 1 for pack in plan.packs)


def test_a_plan_does_not_depend_on_anything_but_its_arguments():
    domain = domain_of(2, 3, 17, 200, 5, 2)
    assert plan_counting(all_of(domain, 2), domain) == plan_counting(all_of(domain, 2), domain)


def test_one_way_marginals_are_scanned_in_batches_of_63():
    domain = domain_of(*[3] * 130)
    plan = plan_counting([*all_of(domain, 1), MarginalQuery(())], domain)
    assert plan.strategy == "scan"
    assert plan.packs == tuple((index,) for index in range(130))
    assert "3 scans" in plan.describe()[0]


def test_the_total_alone_is_counted_by_the_smallest_attribute():
    plan = plan_counting([MarginalQuery(())], domain_of(9, 2, 4))
    assert plan.strategy == "scan"
    assert plan.packs == ((1,),)


def test_nothing_asked_is_a_plan_without_statements():
    plan = plan_counting([], domain_of(3))
    assert (plan.packs, plan.groups, plan.cells) == ((), (), 0)


def test_128_binary_attributes_are_packed():
    domain = domain_of(*[2] * 128)
    plan = plan_counting(all_of(domain, 2), domain, in_parts=True)
    assert plan.strategy == "packed"
    assert len(plan.groups) <= 210
    assert plan.largest_group <= 2**16


def test_attributes_of_large_domains_stay_alone():
    domain = domain_of(3000, 2, 2, 2, 2, 2, 2)
    plan = plan_counting(all_of(domain, 2), domain)
    assert (0,) in plan.packs
    assert plan.largest_group <= 3000 * 2**6


def test_large_attributes_are_not_packed_at_all():
    domain = domain_of(700, 800, 900)
    plan = plan_counting(all_of(domain, 2), domain)
    assert plan.strategy == "encoded"
    assert len(plan.groups) == 3


def test_attributes_asked_together_share_a_pack():
    domain = domain_of(*[2] * 40)
    queries = [MarginalQuery((f"a{i}", f"a{i + 20}")) for i in range(20)]
    plan = plan_counting(queries, domain)
    assert len(plan.groups) <= 5


def test_marginals_inside_larger_ones_need_no_statement():
    domain = domain_of(500, 600, 700)
    queries = [MarginalQuery(attrs) for attrs in [("a0", "a1"), ("a1",), (), ("a1", "a0")]]
    plan = plan_counting(queries, domain)
    assert len(plan.groups) == 1
    assert plan.groups[0].cells == 300_000


def test_a_marginal_goes_to_the_smallest_group_that_holds_it():
    domain = domain_of(500, 600, 7)
    queries = [MarginalQuery(attrs) for attrs in [("a0", "a1"), ("a0", "a2"), ("a0",)]]
    groups = groups_for(queries, ((0,), (1,), (2,)), domain)
    assert [group.queries for group in groups] == [(queries[0],), (queries[1], queries[2])]


def test_one_marginal_above_the_limit_is_named():
    domain = domain_of(5000, 5000, 2)
    with pytest.raises(PlanTooLarge) as caught:
        plan_counting(all_of(domain, 2), domain)
    message = str(caught.value)
    assert "a0 (5,000) x a1 (5,000) = 25,000,000 cells" in message
    assert "16,777,216" in message
    assert "exclude=" in message


def test_the_sum_of_all_marginals_has_a_limit():
    domain = domain_of(*[1500] * 9)
    with pytest.raises(PlanTooLarge, match="36 marginals have 81,000,000 cells in all"):
        check_size(all_of(domain, 2), domain)
    assert check_size(all_of(domain, 2)[:20], domain) == 45_000_000


def test_the_largest_marginal_counts_twice():
    domain = domain_of(2**12, 2**12)
    square = MarginalQuery(("a0", "a1"))
    assert check_size([square] * 3, domain) == 3 * 2**24
    with pytest.raises(PlanTooLarge):
        check_size([square] * 4, domain)


def test_packs_leave_room_for_the_answers(monkeypatch):
    domain = domain_of(*[2] * 16)
    free = plan_counting(all_of(domain, 2), domain)
    monkeypatch.setattr(planner, "MAX_TOTAL_CELLS", free.cells + 64)
    tight = plan_counting(all_of(domain, 2), domain)
    assert free.largest_group > 64
    assert tight.largest_group <= 64


def test_names_in_messages_are_short_and_printable():
    name = "x\x1b[31m" + "y" * 5000
    wide = Attribute(name, "INTEGER", "categorical", labels=tuple(range(5000)))
    with pytest.raises(PlanTooLarge) as caught:
        check_size([MarginalQuery((name, "a0"))], Domain((wide, *domain_of(5000).attributes)))
    assert len(str(caught.value)) < 500
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("attrs", [("a0", "a0"), ("nobody",)])
def test_a_malformed_marginal_is_our_own_fault(attrs):
    with pytest.raises(InternalError):
        plan_counting([MarginalQuery(attrs)], domain_of(2))


def test_a_domain_without_attributes_is_our_own_fault():
    with pytest.raises(InternalError):
        plan_counting([MarginalQuery(())], Domain(()))


def test_describe_names_packs_statements_and_memory():
    domain = domain_of(*[2] * 10, 700)
    lines = plan_counting(all_of(domain, 2), domain).describe()
    assert lines[0].startswith("Counting    packed (55 marginals from ")
    assert any("a0 x a1" in line for line in lines)
    assert any("GROUP BY" in line and "per million rows" in line for line in lines)
    assert lines[-1].endswith("MB of counts held at once")

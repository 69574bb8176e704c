from __future__ import annotations

import pytest

from gmeql.differential.motion.proposals import Proposal, proposed, shortlist, state_front, sums, sums_of_fitted
from gmeql.formula.products import split_terms
from motions import hunters_motion, tree


@pytest.fixture(scope="module")
def exact() -> list[Proposal]:
    """What is proposed for the first state of exact trajectories."""
    motion = hunters_motion()
    return proposed(motion, 0, sums(motion, 0))


def test_the_truth_is_proposed_first(exact):
    assert {term for _, term in split_terms(exact[0].root)} == {tree("x"), tree("x*y")}


def test_each_structure_is_proposed_once_and_what_has_no_value_never():
    motion = hunters_motion()
    found = proposed(motion, 0, [tree("2*x"), tree("3*x"), tree("2*log(x - 100)")])
    assert len(found) == 1


def test_the_shortlist_holds_the_best_of_larger_sizes_too(exact):
    chosen = shortlist(exact)
    assert chosen[0] == exact[0].root and len(set(chosen)) == len(chosen)


def test_the_front_of_a_state_is_in_units_of_its_slope(exact):
    front = state_front(hunters_motion(), 0, exact)
    losses = [member.loss for member in front]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] < 2.0 * front.target_largest and losses[-1] < 1e-3


def test_terms_with_fitted_constants_enter_sums_as_they_are():
    motion = hunters_motion()
    fitted = Proposal(tree("2*x/(0.37 + x) + y"), 1.0, 1.0)
    for proposals in ([[fitted], []], [[], [fitted]]):
        terms = {term for root in sums_of_fitted(motion, 0, proposals) for _, term in split_terms(root)}
        assert tree("x/(0.37 + x)") in terms and tree("x*y") in terms

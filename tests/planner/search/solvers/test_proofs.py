"""Bounds that may be reported, and bounds that a plan withdraws."""

from __future__ import annotations

import pytest

from fleetplan.planner.search.solvers.proofs import (
    CONFIRMED_RATIO,
    CPSAT,
    HIGHS,
    LARGEST_CONTRADICTION,
    VARIABLES,
    WITHOUT_PRESOLVE,
    Proof,
    Proofs,
    contradicted,
)

LEAST = 10.0


@pytest.fixture
def proofs() -> Proofs:
    return Proofs(LEAST)


def test_nothing_is_proven_at_first_but_what_the_variables_allow(proofs: Proofs) -> None:
    assert proofs.told == Proof(LEAST, VARIABLES)
    assert not proofs.infeasible


def test_a_claim_alone_is_not_told(proofs: Proofs) -> None:
    proofs.prove(CPSAT, 100.0)
    assert proofs.told == Proof(LEAST, VARIABLES)
    assert proofs.claimed == 100.0


@pytest.mark.parametrize("prover", [HIGHS, WITHOUT_PRESOLVE])
def test_a_proof_that_does_not_rest_on_presolve_is_told(proofs: Proofs, prover: str) -> None:
    proofs.prove(prover, 100.0)
    assert proofs.told == Proof(100.0, prover)


@pytest.mark.parametrize(
    ("prover", "source"),
    [(HIGHS, "CP-SAT, confirmed by HiGHS"), (WITHOUT_PRESOLVE, "CP-SAT, confirmed without presolve")],
)
def test_a_claim_is_told_in_full_once_it_is_confirmed(proofs: Proofs, prover: str, source: str) -> None:
    proofs.prove(CPSAT, 100.0)
    proofs.prove(prover, 100.0 * (1 - CONFIRMED_RATIO / 2))
    assert proofs.told == Proof(100.0, source)


def test_a_claim_far_above_the_other_proof_is_not_told(proofs: Proofs) -> None:
    proofs.prove(CPSAT, 100.0)
    proofs.prove(HIGHS, 100.0 * (1 - 2 * CONFIRMED_RATIO))
    assert proofs.told.source == HIGHS


def test_a_claim_below_the_other_proof_adds_nothing(proofs: Proofs) -> None:
    proofs.prove(CPSAT, 99.0)
    proofs.prove(HIGHS, 100.0)
    assert proofs.told == Proof(100.0, HIGHS)


def test_claims_below_zero_are_confirmed_as_closely() -> None:
    proofs = Proofs(-1000.0)
    proofs.prove(CPSAT, -100.0)
    proofs.prove(HIGHS, -100.0 * (1 + CONFIRMED_RATIO / 2))
    assert proofs.told == Proof(-100.0, "CP-SAT, confirmed by HiGHS")


def test_a_plan_below_a_claim_withdraws_it_and_its_prover_is_not_believed_again(proofs: Proofs) -> None:
    proofs.prove(CPSAT, 100.0)
    assert proofs.found(90.0) == (CPSAT,)
    assert not proofs.trusts(CPSAT)
    proofs.prove(CPSAT, 89.0)
    proofs.prove(HIGHS, 89.0)
    assert proofs.told == Proof(89.0, HIGHS)


def test_a_plan_below_a_confirmed_bound_withdraws_both(proofs: Proofs) -> None:
    proofs.prove(CPSAT, 100.0)
    proofs.prove(HIGHS, 100.0)
    assert set(proofs.found(90.0)) == {CPSAT, HIGHS}
    assert proofs.told == Proof(LEAST, VARIABLES)


def test_a_bound_above_a_known_plan_is_refused(proofs: Proofs) -> None:
    assert proofs.found(90.0) == ()
    assert not proofs.prove(CPSAT, 100.0)
    assert proofs.prove(HIGHS, 90.0 * (1 + LARGEST_CONTRADICTION / 2))
    assert proofs.trusts(HIGHS)


def test_what_highs_cannot_tell_from_zero_is_no_contradiction() -> None:
    proofs = Proofs(0.0, grain=1e-3)
    proofs.prove(HIGHS, 5e-4)
    assert proofs.found(0.0) == ()


def test_it_takes_two_proofs_that_there_is_no_plan(proofs: Proofs) -> None:
    proofs.prove_infeasible(CPSAT)
    proofs.prove_infeasible(CPSAT)
    assert not proofs.infeasible
    assert proofs.calls_infeasible(CPSAT)
    proofs.prove_infeasible(HIGHS)
    assert proofs.infeasible
    assert proofs.infeasible_by == "CP-SAT, confirmed by HiGHS"


def test_a_plan_withdraws_a_proof_that_there_is_none(proofs: Proofs) -> None:
    proofs.prove_infeasible(CPSAT)
    proofs.prove_infeasible(HIGHS)
    assert set(proofs.found(50.0)) == {CPSAT, HIGHS}
    assert not proofs.infeasible
    assert proofs.prove_infeasible(CPSAT)
    assert not proofs.prove_infeasible(WITHOUT_PRESOLVE)


def test_a_bound_is_contradicted_beyond_its_tolerance_alone() -> None:
    assert contradicted(100.0, 99.0)
    assert not contradicted(100.0, 100.0 - 100.0 * LARGEST_CONTRADICTION / 2)
    assert contradicted(-99.0, -100.0)
    assert not contradicted(-100.0, -99.0)

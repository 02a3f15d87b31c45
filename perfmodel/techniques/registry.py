"""All techniques, in the order of their effects on a step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fleetplan.fleet.inventory import Techniques
from fleetplan.perfmodel.architecture import ModelArchitecture
from fleetplan.perfmodel.operators import Operator
from fleetplan.perfmodel.steps import StepShape
from fleetplan.perfmodel.techniques.chunked_prefill import CHUNKED_PREFILL
from fleetplan.perfmodel.techniques.expert_routing import EXPERTS
from fleetplan.perfmodel.techniques.images import IMAGES
from fleetplan.perfmodel.techniques.offload import OFFLOAD
from fleetplan.perfmodel.techniques.prefix_sharing import SHARED_CACHE
from fleetplan.perfmodel.techniques.record import Technique, TechniqueStep
from fleetplan.perfmodel.techniques.sampling import SAMPLING
from fleetplan.perfmodel.techniques.session_cache import SESSION_CACHE
from fleetplan.perfmodel.techniques.speculative import SPECULATIVE

TECHNIQUES: Final[tuple[Technique, ...]] = (
    CHUNKED_PREFILL,
    SPECULATIVE,
    SHARED_CACHE,
    SESSION_CACHE,
    OFFLOAD,
    EXPERTS,
    SAMPLING,
    IMAGES,
)
"""A draft's tokens are further heads of attention before it is split at the end of a shared prefix."""


def technique_problem(architecture: ModelArchitecture, framework: str, techniques: Techniques) -> str:
    """Return why a model or a framework cannot use the techniques, with the switch; empty if it can."""
    problems = (each.problem(architecture, framework, techniques) for each in TECHNIQUES)
    return next((problem for problem in problems if problem), "")


def computed_shape(shape: StepShape, techniques: Techniques) -> StepShape:
    """Return a step with the tokens that the model computes in it."""
    for technique in TECHNIQUES:
        shape = technique.shape(shape, techniques)
    return shape


def with_their_operators(operators: Iterable[Operator], step: TechniqueStep) -> Iterable[Operator]:
    """Return the operators of a step with those that techniques change and add."""
    for technique in TECHNIQUES:
        operators = technique.operators(operators, step)
    return operators

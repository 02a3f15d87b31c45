"""Verify the launch inputs of placements: facts of the model, and the longest sequence that fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory import Accelerator, ModelVariant, Precision, Service
from fleetplan.perfmodel.architecture import (
    CompressedAttention,
    GroupedQueryAttention,
    LatentAttention,
    ModelArchitecture,
    load_architecture,
)
from fleetplan.perfmodel.parallelism import Configuration
from fleetplan.perfmodel.steps import part_dtypes, state_slots
from fleetplan.perfmodel.steps.room import LONGEST_TRIED_TOKENS, SequenceTokens, sequence_fits
from fleetplan.perfmodel.steps.state_slots import StateSlots
from fleetplan.planner.plan import Placement
from fleetplan.planner.plan.inputs import LaunchInput
from fleetplan.planner.problem import Candidate
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.records import FORMATS_WITHOUT_PARTS, OLDER_FORMATS, compared
from fleetplan.planner.verify.violations import Violation

LAUNCH_KEY = ("service", "phase", "hardware", "config")


@dataclass(frozen=True, slots=True)
class _Placed:
    """A placed configuration of a model, read from the fleet."""

    row: Placement
    service: Service
    accelerator: Accelerator
    variant: ModelVariant
    architecture: ModelArchitecture
    candidate: Candidate

    @property
    def batches(self) -> dict[str, int]:
        """Batch of each class, if the configuration has none for all classes."""
        if Configuration.parse(self.row.config).batch is not None:
            return {}
        names = [each.name for each in self.service.classes]
        return {
            name: self.candidate.batch[index]  # type: ignore[misc]
            for index, name in enumerate(names[: len(self.candidate.batch)])
            if self.candidate.batch[index] is not None
        }

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.row.service, self.row.phase, self.row.hardware, self.row.config

    def holds(self, tokens: int) -> bool:
        """Return whether an attention-DP rank has memory for a sequence of a given length."""
        configuration, techniques = Configuration.parse(self.row.config), self.service.techniques
        step = techniques.chunk_tokens
        if self.row.phase == "decode":
            step = configuration.batch or 1
        draft = techniques.speculative
        return sequence_fits(
            self.architecture,
            part_dtypes(self.architecture, Precision(self.variant.weights, self.variant.kv)),
            self.accelerator,
            configuration.layout,
            SequenceTokens(tokens, tokens if step is None else step),
            0.0 if draft is None else draft.draft_gib_per_accelerator,
            self._slots,
        )

    @property
    def _slots(self) -> StateSlots | None:
        """Recurrent-state slots of its servers; servers for decode only keep no prefixes."""
        keeps = self.service.keeps_prefixes and self.row.phase != "decode"
        return state_slots(
            self.service.framework, self.accelerator.vendor, self.architecture, prefix_cache=keeps
        )


def check_launches(check: PlanCheck) -> Iterator[Violation]:
    """Check the launch inputs of every placed configuration, and that no longer sequence fits."""
    inputs = check.plan.inputs
    if inputs is None or (check.plan.format_version in OLDER_FORMATS and not inputs.launches):
        return
    services = {each.name: each for each in check.problem.fleet.services}
    rows = ((row, services[row.service], candidate) for row, candidate in check.rows)
    placed = {each.key: each for run in rows if (each := _placed(check, *run)) is not None}
    says_batches = check.plan.format_version not in FORMATS_WITHOUT_PARTS
    stated = {tuple(getattr(row, name) for name in LAUNCH_KEY): row for row in inputs.launches}
    expected = []
    for key, each in placed.items():
        tokens = stated[key].sequence_tokens if key in stated else 0
        expected.append(_facts(each, tokens, each.batches if says_batches else {}))
        if key in stated:
            yield from _room(each, tokens)
    yield from compared("inputs", inputs.launches, expected, LAUNCH_KEY)


def _placed(check: PlanCheck, row: Placement, service: Service, candidate: Candidate) -> _Placed | None:
    """Return the model of a placement; None for a service with its own rates."""
    fleet = check.problem.fleet
    accelerator = fleet.hardware[row.hardware].accelerator
    variants = {each.name: each for each in service.variants}
    if not variants and service.model is not None:
        precision = service.precision
        variants[""] = ModelVariant("", service.model, precision.weights, precision.kv, 1.0, 1.0)
    if accelerator is None or not variants:
        return None
    variant = variants[Configuration.parse(row.config).variant]
    architecture = load_architecture(variant.model, fleet.path.parent)
    return _Placed(row, service, accelerator, variant, architecture, candidate)


def _room(each: _Placed, tokens: int) -> Iterator[Violation]:
    label = " ".join(each.key)
    if not 0 <= tokens <= LONGEST_TRIED_TOKENS or (tokens > 0 and not each.holds(tokens)):
        yield Violation("inputs", f"{label}: a sequence of {counted(tokens, 'token')} does not fit in memory")
    elif tokens < LONGEST_TRIED_TOKENS and each.holds(tokens + 1):
        text = f"{label}: a sequence longer than {counted(tokens, 'token')} fits in memory"
        yield Violation("inputs", text)


_WITH_HEADS = GroupedQueryAttention | LatentAttention | CompressedAttention


def _facts(each: _Placed, sequence_tokens: int, batches: dict[str, int]) -> LaunchInput:
    """Return the expected launch inputs, with the stated longest sequence and batches."""
    row, architecture, stored = each.row, each.architecture, each.architecture.quantisation
    softmax = [
        attention for group in architecture.groups if isinstance(attention := group.attention, _WITH_HEADS)
    ]
    grouped = [attention for attention in softmax if isinstance(attention, GroupedQueryAttention)]
    return LaunchInput(
        service=row.service,
        phase=row.phase,
        hardware=row.hardware,
        config=row.config,
        stored_weights=None if stored is None else stored.dtype or stored.method,
        heads=_only({attention.heads for attention in softmax}),
        kv_heads=_only({attention.kv_heads for attention in grouped}),
        latent_attention=all(
            isinstance(group.attention, LatentAttention | CompressedAttention)
            for group in architecture.groups
        ),
        experts=architecture.routed_experts > 0,
        max_context_tokens=architecture.max_context_tokens,
        sequence_tokens=sequence_tokens,
        longest_request_tokens=_longest_request_tokens(each.service),
        batches=batches,
    )


def _only(values: set[int]) -> int | None:
    return next(iter(values)) if len(values) == 1 else None


def _longest_request_tokens(service: Service) -> int | None:
    """Return the longest request including cached tokens; None if a class has only mean lengths."""
    found = 0
    for each in service.classes:
        lengths = None if service.traffic is None else service.traffic.lengths_of(each.name)
        if lengths is None:
            return None
        cached = max(0, (each.context_tokens or 0) - (each.input_tokens or 0))
        found = max(found, lengths.longest_tokens + cached)
    return found

"""Placements as deployments: a model, a layout and a batch, read from the plan."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from typing import Final

from fleetplan.fleet.errors import InputError, Issue, names_hint
from fleetplan.perfmodel.parallelism import Configuration, Parallelism
from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.plan.inputs import HardwareInput, LaunchInput, PlanInputs, ServiceInput, VariantInput

LONGEST_NAME: Final = 40
"""Letters of a Kubernetes name, with room for what tools append to it within 63."""

DIGEST_LETTERS: Final = 6
"""Letters of the digest that keeps shortened names apart."""


@dataclass(frozen=True, slots=True)
class LaunchedGroup:
    """Replicas of one configuration.

    Attributes
    ----------
    placement : Placement
        The row of the plan, of the moment of the period in which it has most replicas.
    service : ServiceInput
        With its targets and techniques.
    variant : VariantInput
        Model and data types.
    hardware : HardwareInput
        What it runs on.
    layout : Parallelism
        How a replica is split.
    batch : int or None
        Sequences of a micro-batch and attention-DP rank; None where each class has its own.
    facts : LaunchInput
        What its model's config says, and how long a sequence there is memory for.
    """

    placement: Placement
    service: ServiceInput
    variant: VariantInput
    hardware: HardwareInput
    layout: Parallelism
    batch: int | None
    facts: LaunchInput

    @property
    def hosts(self) -> int:
        """Hosts of a replica."""
        return math.ceil(self.layout.accelerators / self.hardware.accelerators_per_host)

    @property
    def accelerators_on_a_host(self) -> int:
        """Accelerators that a replica takes on each of its hosts."""
        return math.ceil(self.layout.accelerators / self.hosts)

    @property
    def fills_hosts_evenly(self) -> bool:
        """Whether all hosts of a replica have equally many of its accelerators."""
        return self.layout.accelerators % self.hosts == 0

    @property
    def name(self) -> str:
        """A name that Kubernetes takes, the same for the same row."""
        row = self.placement
        return dns_name(f"{row.service}-{row.pool}-{row.phase}-{row.config}")

    @property
    def running_sequences(self) -> int | None:
        """Sequences that one attention-DP rank has at once: a micro-batch in each pipeline stage."""
        return None if self.batch is None else self.batch * self.layout.pp

    @property
    def label(self) -> str:
        """How messages call it."""
        return _label(self.placement)


@dataclass(frozen=True, slots=True)
class NotLaunched:
    """A placement that no flags can be given for, with the reason."""

    placement: Placement
    reason: str

    @property
    def label(self) -> str:
        """How messages call it."""
        return _label(self.placement)


def deployments(plan: Plan, period: str | None) -> tuple[tuple[LaunchedGroup, ...], tuple[NotLaunched, ...]]:
    """Return the placements of a period that can be launched, and those that cannot.

    Parameters
    ----------
    plan : Plan
        With its inputs.
    period : str or None
        A period of the plan; None is its first.

    Raises
    ------
    InputError
        The plan has no such period, or states no models.
    """
    if plan.inputs is None:
        raise InputError([Issue("plan", 0, 0, "format_version", "states no models; solve it again")])
    if period is not None and period not in plan.periods:
        raise InputError(
            [Issue("plan", 0, 0, "--period", f"there is no {period!r}", names_hint(period, plan.periods))]
        )
    found, refused = [], []
    for row in _largest(plan, period or plan.periods[0]):
        read = _read(row, plan.inputs)
        if isinstance(read, str):
            refused.append(NotLaunched(row, read))
        else:
            found.append(read)
    return tuple(found), tuple(refused)


def _largest(plan: Plan, period: str) -> list[Placement]:
    """Rows of a period; of several moments the one in which a configuration has most replicas."""
    kept: dict[tuple[str, str, str, str], Placement] = {}
    for row in plan.placements:
        key = (row.service, row.pool, row.phase, row.config)
        if row.period == period and (key not in kept or kept[key].replicas < row.replicas):
            kept[key] = row
    return list(kept.values())


def _read(row: Placement, inputs: PlanInputs) -> LaunchedGroup | str:
    """The deployment of a row, or why there is none."""
    service = next(each for each in inputs.services if each.name == row.service)
    if not service.variants:
        return "the service brings its own rates: its configuration is a name, not a layout"
    try:
        configuration = Configuration.parse(row.config)
    except ValueError as error:
        return str(error)
    name = configuration.variant
    variant = next((each for each in service.variants if each.name == name), None)
    if variant is None:
        return f"the service has no variant {name!r}" if name else "the service's variant is not named"
    facts = next(
        (
            each
            for each in inputs.launches
            if (each.service, each.phase, each.hardware, each.config)
            == (row.service, row.phase, row.hardware, row.config)
        ),
        None,
    )
    if facts is None:
        return "the plan does not say what its models need: solve it again"
    return LaunchedGroup(
        facts=facts,
        placement=row,
        service=service,
        variant=variant,
        hardware=next(each for each in inputs.hardware if each.name == row.hardware),
        layout=configuration.layout,
        batch=configuration.batch,
    )


def _label(row: Placement) -> str:
    return f"{row.service} {row.phase} {row.config} on {row.hardware} in {row.pool}"


def dns_name(text: str, longest: int = LONGEST_NAME) -> str:
    """A name of lower-case letters, digits and dashes (RFC 1035); one that was changed ends in a digest.

    Parameters
    ----------
    text : str
        Any text.
    longest : int
        Most letters.
    """
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if plain == text and len(plain) <= longest and plain[:1].isalpha():
        return plain
    if plain[:1].isdigit():
        plain = f"n{plain}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LETTERS]
    start = plain[: longest - DIGEST_LETTERS - 1].strip("-") or "name"
    return f"{start}-{digest}"

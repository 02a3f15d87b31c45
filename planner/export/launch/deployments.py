"""Read placements of a plan as deployments: a model, a layout and a batch."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from fleetplan.fleet.errors import InputError, Issue, names_hint
from fleetplan.perfmodel.parallelism import Configuration, Parallelism
from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.plan.inputs import HardwareInput, LaunchInput, PlanInputs, ServiceInput, VariantInput

_KeyT = TypeVar("_KeyT")

LONGEST_NAME: Final = 40
"""Maximum length of a Kubernetes name, with room for suffixes of tools within 63. [letters]"""

DIGEST_LETTERS: Final = 6
"""Length of the digest that keeps shortened names distinct. [letters]"""


@dataclass(frozen=True, slots=True)
class LaunchedGroup:
    """Replicas of one configuration.

    Attributes
    ----------
    placement : Placement
        Row of the plan, from the moment of the period with the most replicas.
    service : ServiceInput
        Service with its targets and techniques.
    variant : VariantInput
        Model and data types.
    hardware : HardwareInput
        Hardware of the replicas.
    layout : Parallelism
        Parallelism of a replica.
    batch : int or None
        Sequences per micro-batch and attention-DP rank, the largest if classes differ; None if the plan
        states none.
    facts : LaunchInput
        Facts of the model's config, and the longest sequence that fits into memory.
    own_batches : Mapping[str, int]
        Batches of classes, if they differ.
    alike : bool
        Whether another row would have the same name.
    moments : Mapping[str, int]
        Replicas by slice and scenario of the period; empty if they are equal in all.
    crowded_by : int
        Accelerators by which the rows of the pool, each in its busiest moment, exceed the pool.
    prompt_stages, answer_stages : frozenset[int]
        Pipeline stages of the prefill and decode servers of its service on hardware of its vendor.
    """

    placement: Placement
    service: ServiceInput
    variant: VariantInput
    hardware: HardwareInput
    layout: Parallelism
    batch: int | None
    facts: LaunchInput
    own_batches: Mapping[str, int] = field(default_factory=dict)
    alike: bool = False
    moments: Mapping[str, int] = field(default_factory=dict)
    crowded_by: int = 0
    prompt_stages: frozenset[int] = frozenset()
    answer_stages: frozenset[int] = frozenset()

    @property
    def hosts(self) -> int:
        """Hosts per replica."""
        return math.ceil(self.layout.accelerators / self.hardware.accelerators_per_host)

    @property
    def accelerators_on_a_host(self) -> int:
        """Accelerators of a replica on each of its hosts."""
        return math.ceil(self.layout.accelerators / self.hosts)

    @property
    def fills_hosts_evenly(self) -> bool:
        """Return whether all hosts of a replica hold the same number of its accelerators."""
        return self.layout.accelerators % self.hosts == 0

    @property
    def name(self) -> str:
        """Valid Kubernetes name, equal for equal rows."""
        key = _row_key(self.placement)
        name = dns_name("-".join(key))
        return _with_digest(name, repr(key), LONGEST_NAME) if self.alike else name

    @property
    def staged(self) -> bool:
        """Return whether it transfers caches between servers, of which some have several pipeline stages."""
        phased = self.placement.phase != "aggregated"
        return phased and max(self.prompt_stages | self.answer_stages | {self.layout.pp}) > 1

    @property
    def running_sequences(self) -> int | None:
        """Concurrent sequences of an attention-DP rank: a micro-batch per pipeline stage."""
        return None if self.batch is None else self.batch * self.layout.pp

    @property
    def label(self) -> str:
        """Label in messages."""
        return _label(self.placement)


@dataclass(frozen=True, slots=True)
class NotLaunched:
    """A placement that cannot be launched, with the reason."""

    placement: Placement
    reason: str

    @property
    def label(self) -> str:
        """Label in messages."""
        return _label(self.placement)


def left_out(each: NotLaunched) -> str:
    """Return a note on an omitted placement; JSON escapes its name, so that it cannot end the comment."""
    return f"not launched: {each.placement.replicas} x {json.dumps(each.label)}: {each.reason}"


def deployments(plan: Plan, period: str | None) -> tuple[tuple[LaunchedGroup, ...], tuple[NotLaunched, ...]]:
    """Return the placements of a period that can be launched, and those that cannot.

    Parameters
    ----------
    plan : Plan
        Plan with its inputs.
    period : str or None
        Period of the plan; None for the first.

    Raises
    ------
    InputError
        The period does not exist, or the plan states no models.
    """
    if plan.inputs is None:
        raise InputError([Issue("plan", 0, 0, "format_version", "states no models; solve it again")])
    if period is not None and period not in plan.periods:
        raise InputError(
            [Issue("plan", 0, 0, "--period", f"there is no {period!r}", names_hint(period, plan.periods))]
        )
    found, refused = [], []
    asked = period or plan.periods[0]
    moments, crowded_by = _by_moment(plan, asked), _crowded_by(plan, asked)
    for row in _largest(plan, asked):
        read = _read(row, plan.inputs)
        if isinstance(read, str):
            refused.append(NotLaunched(row, read))
            continue
        own = moments[_row_key(row)]
        differ = len(set(own.values())) > 1
        found.append(
            replace(read, moments=own if differ else {}, crowded_by=crowded_by[row.pool] if differ else 0)
        )
    names = Counter(each.name for each in found)
    stages: dict[tuple[str, str | None, str], set[int]] = {}
    for each in found:
        stages.setdefault(_servers_of(each, each.placement.phase), set()).add(each.layout.pp)
    return tuple(
        replace(
            each,
            alike=names[each.name] > 1,
            prompt_stages=frozenset(stages.get(_servers_of(each, "prefill"), ())),
            answer_stages=frozenset(stages.get(_servers_of(each, "decode"), ())),
        )
        for each in found
    ), tuple(refused)


def _servers_of(each: LaunchedGroup, phase: str) -> tuple[str, str | None, str]:
    return each.service.name, each.hardware.vendor, phase


def _largest(plan: Plan, period: str) -> list[Placement]:
    """Return the rows of a period; for each configuration, those of the moment with the most replicas."""
    kept: dict[tuple[str, str, str, str], Placement] = {}
    for row in plan.placements:
        key = _row_key(row)
        if row.period == period and (key not in kept or kept[key].replicas < row.replicas):
            kept[key] = row
    return list(kept.values())


def _by_moment(plan: Plan, period: str) -> dict[tuple[str, str, str, str], dict[str, int]]:
    """Return the replicas of each configuration in every moment of a period, by slice and scenario."""
    rows = [row for row in plan.placements if row.period == period]
    every = {_moment(row): 0 for row in rows}
    found = {_row_key(row): every.copy() for row in rows}
    for row in rows:
        found[_row_key(row)][_moment(row)] = row.replicas
    return found


def _moment(row: Placement) -> str:
    return ", ".join(name for name in (row.slice, row.scenario) if name)


def _crowded_by(plan: Plan, period: str) -> Counter[str]:
    """Return the accelerators by which the largest rows of each pool exceed it."""
    taken: Counter[str] = Counter()
    for row in _largest(plan, period):
        taken[row.pool] += row.accelerators
    held = {use.pool: use.accelerators for use in plan.pools if use.period == period}
    return Counter({pool: max(0, each - held.get(pool, each)) for pool, each in taken.items()})


def _read(row: Placement, inputs: PlanInputs) -> LaunchedGroup | str:
    """Return the deployment of a row, or the reason why there is none."""
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
        batch=max(facts.batches.values(), default=None)
        if configuration.batch is None
        else configuration.batch,
        own_batches=facts.batches,
    )


def _row_key(row: Placement) -> tuple[str, str, str, str]:
    return row.service, row.pool, row.phase, row.config


def _label(row: Placement) -> str:
    return f"{row.service} {row.phase} {row.config} on {row.hardware} in {row.pool}"


def dns_name(text: str, longest: int = LONGEST_NAME) -> str:
    """Return a name of lower-case letters, digits and dashes (RFC 1035); changed names end in a digest.

    Parameters
    ----------
    text : str
        Any text.
    longest : int
        Maximum length. [letters]
    """
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if plain == text and len(plain) <= longest and plain[:1].isalpha():
        return plain
    return _with_digest(plain, text, longest)


def dns_names(texts: Mapping[_KeyT, str], longest: int = LONGEST_NAME) -> dict[_KeyT, str]:
    """Return distinct names as in `dns_name`: `a-b` in `c` and `a` in `b-c` would be equal without digests.

    Parameters
    ----------
    texts : Mapping
        Text for each key. Equal names end in digests of their keys.
    longest : int
        Maximum length. [letters]
    """
    names = {key: dns_name(text, longest) for key, text in texts.items()}
    shared = {name for name, count in Counter(names.values()).items() if count > 1}
    return {
        key: _with_digest(name, repr(key), longest) if name in shared else name for key, name in names.items()
    }


def _with_digest(plain: str, of: str, longest: int) -> str:
    start = f"n{plain}" if plain[:1].isdigit() else plain
    digest = hashlib.sha256(of.encode()).hexdigest()[:DIGEST_LETTERS]
    return f"{start[: longest - DIGEST_LETTERS - 1].strip('-') or 'name'}-{digest}"

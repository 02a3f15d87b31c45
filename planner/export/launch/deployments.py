"""Placements as deployments: a model, a layout and a batch, read from the plan."""

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
        Sequences of a micro-batch and attention-DP rank, of classes with batches of their own the largest;
        None where the plan states none.
    facts : LaunchInput
        What its model's config says, and how long a sequence there is memory for.
    own_batches : Mapping[str, int]
        Batches of classes that have each their own.
    alike : bool
        Whether another row would have the same name.
    moments : Mapping[str, int]
        Its replicas by slice and scenario of the period; empty where they are as many in each.
    crowded_by : int
        Accelerators that the rows of its pool, each in its busiest moment, take beyond those of the pool.
    prompt_stages, answer_stages : frozenset[int]
        Pipeline stages of the prefill and of the decode servers of its service on parts of its vendor.
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
        key = _row_key(self.placement)
        name = dns_name("-".join(key))
        return _with_digest(name, repr(key), LONGEST_NAME) if self.alike else name

    @property
    def staged(self) -> bool:
        """Whether it passes caches between servers of one phase of which some have several stages."""
        phased = self.placement.phase != "aggregated"
        return phased and max(self.prompt_stages | self.answer_stages | {self.layout.pp}) > 1

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


def left_out(each: NotLaunched) -> str:
    """Return a note on a placement that a file lacks; its name is written in JSON, so that none ends it."""
    return f"not launched: {each.placement.replicas} x {json.dumps(each.label)}: {each.reason}"


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
    """Rows of a period; of several moments the one in which a configuration has most replicas."""
    kept: dict[tuple[str, str, str, str], Placement] = {}
    for row in plan.placements:
        key = _row_key(row)
        if row.period == period and (key not in kept or kept[key].replicas < row.replicas):
            kept[key] = row
    return list(kept.values())


def _by_moment(plan: Plan, period: str) -> dict[tuple[str, str, str, str], dict[str, int]]:
    """Replicas of each configuration in every moment of a period, by its slice and scenario."""
    rows = [row for row in plan.placements if row.period == period]
    every = {_moment(row): 0 for row in rows}
    found = {_row_key(row): every.copy() for row in rows}
    for row in rows:
        found[_row_key(row)][_moment(row)] = row.replicas
    return found


def _moment(row: Placement) -> str:
    return ", ".join(name for name in (row.slice, row.scenario) if name)


def _crowded_by(plan: Plan, period: str) -> Counter[str]:
    """Accelerators by pool that the largest rows take beyond those that there are."""
    taken: Counter[str] = Counter()
    for row in _largest(plan, period):
        taken[row.pool] += row.accelerators
    held = {use.pool: use.accelerators for use in plan.pools if use.period == period}
    return Counter({pool: max(0, each - held.get(pool, each)) for pool, each in taken.items()})


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
    return _with_digest(plain, text, longest)


def dns_names(texts: Mapping[_KeyT, str], longest: int = LONGEST_NAME) -> dict[_KeyT, str]:
    """Names as `dns_name` makes them, one for each thing: `a-b` in `c` and `a` in `b-c` read alike.

    Parameters
    ----------
    texts : Mapping
        What each thing would be called; the keys say what it is. Names that would be alike end in digests
        of the keys.
    longest : int
        Most letters.
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

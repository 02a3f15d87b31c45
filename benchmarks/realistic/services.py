"""The services of a realistic fleet: what they run, what is asked of them, where and when."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from benchmarks.realistic.kinds import KINDS, Kind, Model
from benchmarks.realistic.places import PLACES, round_trip_ms, slice_names, slice_ratios
from benchmarks.realistic.sizes import Size, Switch, slice_count

TEAM_KINDS: Final = (
    ("assistant", "support-chat"),
    ("code-completion", "coding-agent", "tool-agent"),
    ("rag", "document-agent", "translation"),
    ("embeddings", "classifier", "query-rewriting"),
    ("summaries", "scoring"),
)
"""Of each row a team has one service."""

COMPANY_KINDS: Final = (
    "assistant",
    "reasoning",
    "tool-agent",
    "code-completion",
    "classifier",
    "embeddings",
    "rag",
    "voice",
    "coding-agent",
    "safety",
    "summaries",
    "scoring",
)
"""What a company of twelve services has, three of them exchanged by the seed."""

EXCHANGED: Final = 3
"""Services of a company that are of other kinds."""

DEPARTMENTS: Final = ("mobile", "web", "partners", "sales", "legal", "studio", "labs", "field", "finance")
"""What sets services of one kind apart in a large company."""

BATCH_SHARE: Final = 1 / 3
"""Services that are batch work where offline work is switched on."""

DEADLINES_HOURS: Final = (4, 8, 12, 24)

PERCENTILE_FACTOR: Final = {"ttft_ms": ("ttft_p95_ms", 2.5), "tpot_ms": ("tpot_p95_ms", 1.3)}
"""A limit on the 95th percentile over that on the mean; assumptions. The 95th percentile of prompts is 3.5
times their mean in the conversation trace of `benchmarks.realistic.kinds`."""

SHARE_OF_TTFT: Final = 0.35
"""Most of a TTFT limit that the way to another region may take where one serves for another."""

SECONDS_PER_DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class ServiceDemand:
    """A service with what it takes.

    Attributes
    ----------
    name, kind : str
        What plans call it, and its kind.
    model : Model
        What it runs.
    need : mapping
        Accelerators, as H100, by region and quarter.
    spec : dict
        Its block of the file.
    """

    name: str
    kind: str
    model: Model
    need: Mapping[tuple[str, str], float]
    spec: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """What all services of a fleet share."""

    size: Size
    switches: frozenset[Switch]
    regions: tuple[str, ...]
    periods: tuple[str, ...]


def services(rng: random.Random, setting: Setting) -> list[ServiceDemand]:
    """Draw the services of a fleet; those that follow another one come after it."""
    kinds = _kinds(rng, setting)
    accelerators = rng.uniform(*setting.size.accelerators)
    weights = {name: KINDS[kind].weight * math.exp(rng.gauss(0.0, 0.5)) for name, kind in kinds.items()}
    total = sum(weight for name, weight in weights.items() if not KINDS[kinds[name]].follows)
    found: dict[str, ServiceDemand] = {}
    for name, kind in kinds.items():
        followed = [each for each in found.values() if each.kind == KINDS[kind].follows]
        if followed:
            # Each follows another one, as long as there are any.
            before = sum(each.kind == kind for each in found.values())
            found[name] = _follower(rng, setting, name, kind, followed[before % len(followed)])
        else:
            found[name] = _service(rng, setting, name, kind, accelerators * weights[name] / total)
    return list(found.values())


def _kinds(rng: random.Random, setting: Setting) -> dict[str, str]:
    """Kind by name of service."""
    count = setting.size.services
    if count == len(TEAM_KINDS):
        kinds = [rng.choice(row) for row in TEAM_KINDS]
    else:
        kinds = list(COMPANY_KINDS)
        others = [kind for kind in KINDS if kind not in kinds]
        for place in rng.sample(range(1, 9), EXCHANGED):
            kinds[place] = others.pop(rng.randrange(len(others)))
        kinds += [rng.choice(list(KINDS)) for _ in range(count - len(kinds))]
    if Switch.OFFLINE in setting.switches:
        batch = [kind for kind in KINDS if KINDS[kind].batch]
        while sum(KINDS[kind].batch for kind in kinds) < round(BATCH_SHARE * count):
            places = [i for i, kind in enumerate(kinds) if i and not KINDS[kind].batch]
            kinds[rng.choice(places)] = rng.choice(batch)
    # A service that follows another one comes after the first of those.
    kinds.sort(key=lambda kind: bool(KINDS[kind].follows))
    named: dict[str, str] = {}
    for kind in kinds:
        taken = [name for name in (kind, *(f"{kind}-{each}" for each in DEPARTMENTS)) if name not in named]
        named[taken[0]] = kind
    return named


def _service(
    rng: random.Random, setting: Setting, name: str, kind_name: str, accelerators: float
) -> ServiceDemand:
    kind = KINDS[kind_name]
    model = rng.choice(kind.models)
    places = _places(rng, setting, kind)
    shares = {place: PLACES[place].share * rng.uniform(0.7, 1.3) for place in places}
    growth = rng.uniform(1.0, 1.06) if kind.priority > 1 else rng.uniform(1.03, 1.16)
    need = {
        (place, period): accelerators * share / sum(shares.values()) * growth**q
        for place, share in shares.items()
        for q, period in enumerate(setting.periods)
    }
    headroom = 0.0 if kind.batch else rng.choice((0.1, 0.15, 0.2))
    rates = {key: each * model.pace / (1 + headroom) for key, each in need.items()}
    spec, elsewhere = _what(setting, name, kind, model), _serve_from(rng, setting, kind, places)
    # The way to another region is added to means, so it does not go with limits under load.
    if "traffic" not in spec:
        spec |= elsewhere
    if kind.batch:
        hours = rng.choice(DEADLINES_HOURS) if Switch.OFFLINE in setting.switches else 24
        per_day = {
            place: {period: _rounded(rates[place, period] * SECONDS_PER_DAY) for period in setting.periods}
            for place in places
        }
        spec["offline"] = {"requests_per_day": per_day, "deadline_hours": hours}
        spec |= _arising(setting, kind, places[0])
    else:
        spec["demand"] = _demand(setting, kind, places, rates)
        spec["headroom"] = headroom
    return ServiceDemand(name, kind_name, model, need, {**spec, "priority": kind.priority})


def _follower(
    rng: random.Random, setting: Setting, name: str, kind_name: str, other: ServiceDemand
) -> ServiceDemand:
    """A service whose requests are those of another one, twice: a prompt and its answer."""
    kind = KINDS[kind_name]
    model = rng.choice(kind.models)
    ratio = 2
    need = {key: each * other.model.pace * ratio / model.pace for key, each in other.need.items()}
    spec = _what(setting, name, kind, model)
    spec |= {"follows": {"service": other.name, "ratio": ratio}, "headroom": other.spec["headroom"]}
    return ServiceDemand(name, kind_name, model, need, {**spec, "priority": kind.priority})


def _what(setting: Setting, name: str, kind: Kind, model: Model) -> dict[str, Any]:
    """What a service runs, its requests and its limits."""
    spec: dict[str, Any] = {"name": name, "model": model.name}
    if model.variants:
        spec["variants"] = [
            {"name": label, "quality": quality, "precision": {"weights": weights, "kv": kv}}
            for label, quality, weights, kv in model.variants
        ]
        spec["quality_floor"] = min(quality for _, quality, _, _ in model.variants)
    else:
        spec["precision"] = {"weights": model.weights, "kv": model.kv}
    spec["workload"] = dict(kind.workload)
    if kind.slo:
        spec["slo"] = dict(kind.slo)
    if Switch.PERCENTILES in setting.switches and kind.slo and kind.priority == 1:
        spec["slo"] = {
            PERCENTILE_FACTOR[key][0]: round(limit * PERCENTILE_FACTOR[key][1])
            for key, limit in kind.slo.items()
        }
        spec["traffic"] = {"burstiness": 2}
        if kind.lengths:
            spec["workload"]["lengths"] = f"traffic/{kind.lengths}"
    return {**spec, **kind.extra}


def _places(rng: random.Random, setting: Setting, kind: Kind) -> list[str]:
    """Regions that a service is asked for in: all of them for people, some for the rest."""
    regions = list(setting.regions)
    if kind.protected or rng.random() < 0.4:
        return regions
    kept = rng.sample(regions, rng.randint(1, len(regions)))
    return [region for region in regions if region in kept]


def _serve_from(rng: random.Random, setting: Setting, kind: Kind, places: Sequence[str]) -> dict[str, Any]:
    """Regions that serve for others, for half of the services that can bear the way."""
    if kind.batch:
        return {"serve_from": "any"} if rng.random() < 0.5 else {}
    allowed_ms = SHARE_OF_TTFT * kind.slo["ttft_ms"] - sum(kind.extra.get("outside_ms", {}).values())
    ways = {
        place: [
            other for other in setting.regions if other != place and round_trip_ms(place, other) <= allowed_ms
        ]
        for place in places
    }
    # The nearest region alone, a hub that serves for the others, or whichever can.
    style = rng.choice(("none", "none", "none", "nearest", "hub", "all"))
    hub = setting.regions[0]
    if style == "nearest":
        ways = {
            place: sorted(others, key=partial(round_trip_ms, place))[:1] for place, others in ways.items()
        }
    elif style == "hub":
        ways = {place: [other for other in others if other == hub] for place, others in ways.items()}
    ways = {place: others for place, others in ways.items() if others}
    return {"serve_from": ways, "mb_per_request": 0.02} if ways and style != "none" else {}


def _demand(
    setting: Setting, kind: Kind, places: Sequence[str], rates: Mapping[tuple[str, str], float]
) -> dict[str, Any]:
    """Demand by region, quarter and, where the day has parts, by part."""
    parts = slice_count(setting.switches)
    if parts == 1:
        return {
            place: {period: _rounded(rates[place, period]) for period in setting.periods} for place in places
        }
    return {
        place: {
            period: {
                part: _rounded(rates[place, period] * ratio)
                for part, ratio in zip(
                    slice_names(parts), slice_ratios(place, kind.shape, parts), strict=True
                )
            }
            for period in setting.periods
        }
        for place in places
    }


def _arising(setting: Setting, kind: Kind, region: str) -> dict[str, Any]:
    """When the work of a day arises, by the hours of the first region that asks for it."""
    parts = slice_count(setting.switches)
    if parts == 1:
        return {}
    ratios = slice_ratios(region, kind.shape, parts)
    return {
        "demand_by_slice": {
            name: round(ratio, 2) for name, ratio in zip(slice_names(parts), ratios, strict=True)
        }
    }


def _rounded(rate: float) -> float:
    """A rate to four digits, as forecasts give it."""
    return float(f"{rate:.4g}")

"""FLOPS waterfall: losses from the data-sheet peak to served FLOPS."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.landscape import LatencyTarget, Points, sweep
from fleetplan.planner.landscape.explain import Explanation, explain
from fleetplan.planner.landscape.question import Capacity, Question
from fleetplan.planner.units import exact


@dataclass(frozen=True, slots=True)
class Stage:
    """Rate left after one kind of loss.

    Attributes
    ----------
    name : str
        Name of the loss.
    tflops : float
        Useful operations per second of an accelerator after the loss. [10^12/s]
    """

    name: str
    tflops: float


def waterfall(question: Question, point: Points) -> tuple[Stage, ...]:
    """Return the losses of one configuration, from peak FLOPS to served FLOPS.

    Losses from kernels, memory, network and latency are those of the configuration with the highest rate
    without latency targets, on the same hardware and phase; the step to the given configuration is the cost
    of the targets. Headroom, rounding and reserve need a service of a fleet.

    Parameters
    ----------
    question : Question
        The search.
    point : Points
        One point of it.
    """
    position = int(point.option[0])
    free = replace(
        question.space,
        options=(question.space.options[position],),
        requests=(question.space.requests[int(point.request[0])],),
        target=LatencyTarget(),
    )
    found = sweep(free).candidates
    found = found.take(found.phase == point.phase[0])
    best = found.take(np.array([int(np.argmax(found.requests_per_s_per_accelerator))]))
    taken = explain(free.options[0], str(best.phase[0]), best.layout[0], int(best.batch[0]), free.requests[0])
    stages = list(kernel_stages(taken))
    slo = float(point.requests_per_s_per_accelerator[0] / best.requests_per_s_per_accelerator[0])
    stages.append(Stage("latency targets", stages[-1].tflops * slo))
    if question.capacity is not None:
        stages += _planning(question, question.capacity, point, stages[-1].tflops)
    return tuple(stages)


def kernel_stages(taken: Explanation) -> tuple[Stage, ...]:
    """Return the peak, and the rate left after kernels, memory, network and latency."""
    tflop = sum(line.tflop for line in taken.lines)
    time_ms = sum(line.compute_ms for line in taken.lines)
    own = [line for line in taken.lines if line.is_kernel]
    links = [line for line in taken.lines if line.is_link]
    rest = [line for line in taken.lines if not (line.is_kernel or line.is_link)]
    losses = {
        "peak of the data sheet": 0.0,
        "kernel efficiency": sum(max(0.0, line.time_ms - line.light_ms) for line in own),
        "memory bound": sum(min(line.light_ms, line.time_ms) - line.compute_ms for line in own)
        + sum(min(line.light_ms, line.time_ms) for line in rest),
        "network bound": sum(min(line.light_ms, line.time_ms) for line in links),
        "latency bound": sum(max(0.0, line.time_ms - line.light_ms) for line in (*links, *rest)),
    }
    stages = []
    for name, lost_ms in losses.items():
        time_ms += lost_ms
        stages.append(Stage(name, tflop / time_ms * MS_PER_S))
    return tuple(stages)


def _planning(question: Question, capacity: Capacity, point: Points, tflops: float) -> list[Stage]:
    hardware = question.space.options[int(point.option[0])].hardware
    accelerators = point.layout[0].accelerators
    rate = float(point.requests_per_s_per_accelerator[0]) * accelerators
    peak = capacity.peak_requests_per_s[question.request_names[int(point.request[0])]]
    stages = [Stage("headroom", tflops / (1.0 + capacity.headroom))]
    wanted = peak * (1.0 + capacity.headroom) / rate
    if wanted <= 0:
        return stages
    replicas = math.ceil(wanted)
    per_host = capacity.accelerators_per_host[hardware]
    hosts = math.ceil(replicas * accelerators / per_host)
    whole = hosts * per_host
    stages.append(Stage("whole replicas and hosts", stages[-1].tflops * wanted * accelerators / whole))
    kept = capacity.reserve_hosts + math.ceil(exact(capacity.reserve_percent) * hosts / 100)
    reserve = hosts / (hosts + kept)
    stages.append(Stage("reserve", stages[-1].tflops * reserve))
    return stages

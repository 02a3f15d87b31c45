"""Candidates of services that the performance model evaluates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from fleetplan.fleet.inventory import Fleet, Hardware, Service
from fleetplan.fleet.units import BYTES_PER_GB
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.landscape import PREFILL
from fleetplan.perfmodel.operators import BYTES_PER_ELEMENT, IntArray
from fleetplan.perfmodel.optables import OperatorSource, TableSource
from fleetplan.perfmodel.parallelism import Configuration, parse_parallelism
from fleetplan.perfmodel.queueing import CapacityLine
from fleetplan.planner.candidates.dominance import undominated
from fleetplan.planner.candidates.figures import (
    Row,
    optional_figure,
    replica_power_kw,
    replica_uncapped_kw,
    table_rows,
)
from fleetplan.planner.candidates.load_question import load_question
from fleetplan.planner.candidates.queueing import CARRIED, LOADS, lines_of, under_load
from fleetplan.planner.candidates.rejections import DOMINATED, UNDER_LOAD, RejectionLog
from fleetplan.planner.candidates.service_evaluation import is_prefill_alone
from fleetplan.planner.candidates.waiting_service import WaitingService
from fleetplan.planner.plan import StatedTable
from fleetplan.planner.problem import Candidate, Phase, ProvenanceShares

ROW_COLUMNS: Final = [
    "phase",
    "parallelism",
    "batch",
    "accelerators_per_replica",
    "requests_per_s",
    "ttft_ms",
    "tpot_ms",
    "share_measured",
    "share_interpolated",
    "share_extrapolated",
    "share_roofline",
]
"""Columns from which a candidate is built, besides its pools' load under latency limits."""


def landscape_candidates(
    fleet: Fleet, waiting: WaitingService, log: RejectionLog, way_ms: float = 0.0, prunes: bool = False
) -> tuple[list[Candidate], tuple[StatedTable, ...]]:
    """Return the candidates of a service on one hardware from the performance model.

    Parameters
    ----------
    fleet : Fleet
        Fleet; with KV links, caches get a size.
    waiting : WaitingService
        The service on the hardware.
    log : RejectionLog
        Receives the rejections.
    way_ms : float
        Round trip to the served region, which reduces the TTFT limit. [ms]
    prunes : bool
        Whether to remove what `prune_dominated` would, where numbers alone suffice: building a candidate
        takes longer than detecting that it is dominated, and nine of ten are.

    Returns
    -------
    tuple[list[Candidate], tuple[TableSource, ...]]
        One per (phase, layout), at the batch size that serves most within the SLO, class by class; and the
        operator tables read.
    """
    service, hardware, evaluator = waiting.service, waiting.hardware, waiting.evaluator
    best = _best_rows(waiting, log, way_ms, prunes)
    candidates = [
        _candidate_of_rows(service, hardware, Phase(phase), layout, rows, way_ms)
        for (phase, layout), rows in best.items()
    ]
    if is_prefill_alone(service):
        candidates = [
            replace(each, phase=Phase.AGGREGATED) for each in candidates if each.phase is Phase.PREFILL
        ]
    if fleet.kv_links:
        caches = _caches_gb(service, evaluator)
        prefill = [replace(each, kv_gb=caches) for each in candidates if each.phase is Phase.PREFILL]
        candidates = [*prefill, *(each for each in candidates if each.phase is not Phase.PREFILL)]
    read = evaluator.source.table_sources() if isinstance(evaluator.source, OperatorSource) else ()
    return candidates, tuple(map(_stated, read))


def _best_rows(
    waiting: WaitingService, log: RejectionLog, way_ms: float, prunes: bool
) -> dict[tuple[str, str], dict[int, Row]]:
    """Return the best row of each phase and layout, by class position."""
    service, hardware = waiting.service, waiting.hardware
    outside = replace(service.outside_ms, network_ms=service.outside_ms.network_ms + way_ms)
    farther = replace(service, outside_ms=outside)
    best: dict[tuple[str, str], dict[int, Row]] = defaultdict(dict)
    for k, request_class in enumerate(service.classes):
        without_load = _usable_rows(waiting, k, way_ms, log)
        question = load_question(farther, request_class)
        usable = without_load if question is None else under_load(question, waiting.evaluator, without_load)
        log.add(service.name, hardware.name, UNDER_LOAD, len(without_load) - len(usable))
        best_rows = _best_of_each(usable, "requests_per_s" if question is None else CARRIED)
        left_out = len(usable) - best_rows.size
        if prunes and question is None and len(service.classes) == 1:
            needed = _undominated_rows(usable, best_rows, service, hardware)
            left_out += best_rows.size - needed.size
            best_rows = needed
        log.add(service.name, hardware.name, DOMINATED, left_out)
        columns = ROW_COLUMNS if question is None else [*ROW_COLUMNS, LOADS]
        for row in table_rows(usable, columns, best_rows):
            best[row["phase"], row["parallelism"]][k] = row
    return best


def _stated(read: TableSource) -> StatedTable:
    return StatedTable(
        package=read.package,
        package_version=read.package_version,
        system=read.system,
        framework=read.framework,
        framework_version=read.framework_version,
        path=read.path,
        sha256=read.sha256,
    )


def _best_of_each(usable: pd.DataFrame, carried: str) -> IntArray:
    """Return the row of each phase and layout that carries most; of equals, the smallest batch."""
    phases, layouts = (pd.factorize(usable[name].array)[0] for name in ("phase", "parallelism"))
    ranked = np.lexsort((usable["batch"].to_numpy(), -usable[carried].to_numpy()))
    groups = (phases.astype(np.int64) * (int(layouts.max(initial=0)) + 1) + layouts)[ranked]
    first_of_each = np.sort(np.unique(groups, return_index=True)[1])
    best: IntArray = ranked[first_of_each]
    return best


def _undominated_rows(usable: pd.DataFrame, rows: IntArray, service: Service, hardware: Hardware) -> IntArray:
    """Return those rows that no other row of their phase can always replace."""
    ratio = service.rate_ratio.get(hardware.name, 1.0)
    accelerators = usable["accelerators_per_replica"].to_numpy()[rows]
    rates = usable["requests_per_s"].to_numpy()[rows] * ratio
    codes, phases = pd.factorize(usable["phase"].array.take(rows))
    found = [np.zeros(0, dtype=np.int64)]
    for code, phase in enumerate(phases):
        at = np.flatnonzero(codes == code)
        # A service with prefill only has no candidates in other phases, so these are not counted.
        if phase == PREFILL or not is_prefill_alone(service):
            at = at[
                undominated(accelerators[at].tolist(), rates[at].tolist(), hardware.accelerators_per_host)
            ]
        found.append(rows[at])
    return np.concatenate(found)


def _caches_gb(service: Service, evaluator: Evaluator) -> tuple[float, ...]:
    """Return the KV cache that a request of each class brings to decode, without shared prefixes. [GB]"""
    size = BYTES_PER_ELEMENT[evaluator.dtypes.kv]
    caches = []
    for request_class in service.classes:
        tokens = request_class.context_tokens or request_class.input_tokens or 0
        sent = max(0, tokens - service.techniques.shared_prefix_tokens)
        held = evaluator.architecture.kv_bytes_per_sequence(sent, size) if sent else 0.0
        caches.append(held / BYTES_PER_GB)
    return tuple(caches)


def _usable_rows(waiting: WaitingService, position: int, way_ms: float, log: RejectionLog) -> pd.DataFrame:
    """Return the landscape rows of one class that meet the SLO over a round trip and fit memory.

    One landscape serves all round trips: a stricter limit leaves fewer of its rows.
    """
    service, hardware = waiting.service, waiting.hardware
    landscape = waiting.landscapes[position].found()
    for reason, count in landscape.excluded_counts.items():
        log.add(service.name, hardware.name, reason, count)
    usable = landscape.usable
    ttft_ms = service.inner_ttft_ms
    if ttft_ms is None or not way_ms:
        return usable
    late = usable["ttft_ms"] > ttft_ms - way_ms
    log.add(service.name, hardware.name, "ttft", int(late.sum()))
    return usable[~late]


def _candidate_of_rows(
    service: Service, hardware: Hardware, phase: Phase, layout: str, rows: Mapping[int, Row], way_ms: float
) -> Candidate:
    """Build the candidate of one layout, with its best batch size for every class it can serve."""
    any_row = next(iter(rows.values()))
    accelerators = int(any_row["accelerators_per_replica"])
    classes = range(len(service.classes))
    shares = {
        name: sum(float(row[f"share_{name}"]) for row in rows.values()) / len(rows)
        for name in ("measured", "interpolated", "extrapolated", "roofline")
    }
    # A layout that serves several classes has one batch size per class, so its configuration has none.
    one = len(service.classes) == 1
    configuration = Configuration(parse_parallelism(layout), int(any_row["batch"]) if one else None)
    return Candidate(
        service=service.name,
        phase=phase,
        hardware=hardware.name,
        config=configuration.label,
        configuration=configuration,
        accelerators=accelerators,
        requests_per_s=tuple(float(rows[k]["requests_per_s"]) if k in rows else 0.0 for k in classes),
        ttft_ms=tuple(optional_figure(rows.get(k), "ttft_ms") for k in classes),
        tpot_ms=tuple(optional_figure(rows.get(k), "tpot_ms") or None for k in classes),
        power_kw=replica_power_kw(hardware, accelerators),
        uncapped_kw=replica_uncapped_kw(hardware, accelerators),
        provenance=ProvenanceShares(**shares),
        pooling=_pooling(service, phase, rows),
        batch=tuple(int(rows[k]["batch"]) if k in rows else None for k in classes),
        reach_ms=way_ms if service.ttft_under_load and phase is not Phase.DECODE else None,
    )


def _pooling(service: Service, phase: Phase, rows: Mapping[int, Row]) -> tuple[CapacityLine, ...]:
    """Return the capacity lines of a configuration, from its rows by class."""
    needed = []
    for k, row in rows.items():
        question = load_question(service, service.classes[k])
        if question is None:
            return ()
        needed += [demand / float(row["requests_per_s"]) for demand in question.demand_per_s]
    return lines_of([row[LOADS] for row in rows.values()], needed, simulated=phase is Phase.AGGREGATED)

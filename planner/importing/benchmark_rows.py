"""One run of a load generator, common to all result formats."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MeasuredDeployment:
    """Measured deployment; None for parts that the files do not state.

    Attributes
    ----------
    model, hardware, framework, framework_version, weights, kv : str or None
        Names of the parts.
    tp, pp, dp, ep, cp : int or None
        Degrees of parallelism.
    """

    model: str | None = None
    hardware: str | None = None
    framework: str | None = None
    framework_version: str | None = None
    weights: str | None = None
    kv: str | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    ep: int | None = None
    cp: int | None = None


@dataclass(frozen=True, slots=True)
class BenchmarkRow:
    """One run with mean lengths; None if not stated. [tokens, ms, requests/s]"""

    deployment: MeasuredDeployment
    input_tokens: float | None
    output_tokens: float
    concurrency: float | None
    requests_per_s: float | None
    ttft_ms: float | None
    tpot_ms: float | None

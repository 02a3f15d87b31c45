"""One run of a load generator, as every format of results is read into it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MeasuredDeployment:
    """Deployment that was measured; None for what the files do not say.

    Attributes
    ----------
    model, hardware, framework, framework_version, weights, kv : str or None
        Names.
    tp, pp, dp, ep, cp : int or None
        Degrees.
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
    """One run, with lengths that are means, None where the file does not say. [tokens, ms, 1/s]"""

    deployment: MeasuredDeployment
    input_tokens: float | None
    output_tokens: float
    concurrency: float | None
    requests_per_s: float | None
    ttft_ms: float | None
    tpot_ms: float | None

"""Measured times for a part whose figures differ from those of the part that was measured.

A power cap, a figure of the fleet file, or a question about more bandwidth changes the roofline of an
operator. Its measured time is multiplied by the ratio of the two rooflines, so the loss of kernels against
the data sheet stays the same share. The ratio never falls when a figure gets worse, so neither do the times.

Another part of the same architecture is no slower clock: an H20 has a seventh of the matrix units of an H100
and more bandwidth, so its products wait less for memory and reach more of their peak. Its times are those of
the measured part plus the difference of the two speeds of light: what kernels lose stays the same time. Where
the part is the faster one, they fall by the ratio at most. Published prompts of DeepSeek-R1 on eight H20
(16,500 tokens/s a host) are predicted to -13 % by the difference, and to -52 % by the ratio.
"""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import ByteArray, FloatArray, Provenance
from fleetplan.perfmodel.optables.interpolation.light import light_of_rows
from fleetplan.perfmodel.optables.rows import MeasuredRows


def scaled_rows(rows: MeasuredRows, part: Accelerator) -> tuple[MeasuredRows, ByteArray]:
    """Return the rows of a table as `part` would take, and how sure they are.

    Parameters
    ----------
    rows : MeasuredRows
        Measured with the figures of `part.as_measured`.
    part : Accelerator
        Accelerator with the figures.

    Returns
    -------
    tuple[MeasuredRows, ByteArray]
        The rows, their provenance still telling whose framework they are of; and their labels, EXTRAPOLATED
        where a time is not the measured one, shape (n_rows,).
    """
    latency_ms, known = rows.latency_ms, part.as_measured
    if part.carried_figures is not None:
        carried = replace(known, **asdict(part.carried_figures))
        latency_ms = _carried_over(rows, known, carried)
        known = carried
    latency_ms = latency_ms * _ratio(light_of_rows(part, rows), light_of_rows(known, rows))
    label = np.where(
        latency_ms == rows.latency_ms,
        rows.provenance,
        np.maximum(rows.provenance, np.uint8(Provenance.EXTRAPOLATED)),
    )
    return replace(rows, latency_ms=latency_ms), label.astype(np.uint8)


def _carried_over(rows: MeasuredRows, measured: Accelerator, part: Accelerator) -> FloatArray:
    """Return the times of another part of the same architecture, in ms."""
    before, after = (light_of_rows(_at_its_peak(each), rows) for each in (measured, part))
    slower = np.where(np.isfinite(after - before), after - before, 0.0)
    faster = np.minimum(1.0, _ratio(after, before))
    found: FloatArray = np.maximum(rows.latency_ms + slower, rows.latency_ms * faster)
    return found


def _ratio(after: FloatArray, before: FloatArray) -> FloatArray:
    ratio = after / before
    # A group of one rank sends nothing at any bandwidth.
    return np.where(np.isfinite(ratio), ratio, 1.0)


def _at_its_peak(part: Accelerator) -> Accelerator:
    """Return the part with efficiencies of 1."""
    whole = {name: 1.0 for name in asdict(part.efficiency) if name.endswith("_ratio")}
    return replace(part, efficiency=replace(part.efficiency, **whole))  # type: ignore[arg-type]

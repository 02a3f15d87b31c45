"""The way of a prompt's cache from prefill to decode."""

from __future__ import annotations

import numpy as np

from fleetplan.fleet.inventory import Accelerator, KvTransfer
from fleetplan.fleet.units import BYTES_PER_MS_OF_GB_PER_S
from fleetplan.perfmodel.operators import FloatArray, IntArray


def transfer_ms(
    accelerator: Accelerator, transfer: KvTransfer, kv_bytes: FloatArray, accelerators: IntArray
) -> FloatArray:
    """Return the time that the links need for a prompt's cache, in ms.

    All accelerators that hold a part of it send that over their links: those that `transfer` states, else
    the network, else (where a part has no network figure) the scale-up domain.
    """
    link_gb_per_s = transfer.gb_per_s or accelerator.scale_out_gb_per_s or accelerator.scale_up_gb_per_s
    time: FloatArray = kv_bytes / (link_gb_per_s * BYTES_PER_MS_OF_GB_PER_S * accelerators)
    return time


def exposed_ms(
    transfer: KvTransfer, whole_ms: FloatArray, prefill_ms: FloatArray | None, layers: int
) -> FloatArray:
    """Return the part of a transfer that follows the prompt's computation, in ms.

    Without overlap that is all of it. With overlap a layer's cache leaves when the layer is done: the last
    layer's part is never hidden, and what the link has not sent by then is not either.

    Parameters
    ----------
    transfer : KvTransfer
        Whether the two overlap.
    whole_ms : FloatArray
        The transfer alone. [ms]
    prefill_ms : FloatArray or None
        The computation; overlap needs it. [ms]
    layers : int
        Decoder layers.

    Raises
    ------
    ValueError
        Overlap, and no time of the computation.
    """
    if not transfer.overlap:
        return whole_ms
    if prefill_ms is None:
        raise ValueError("an overlapped transfer needs the time of the prompt that hides it")
    hidden = prefill_ms * (layers - 1) / layers
    exposed: FloatArray = np.maximum(whole_ms / layers, whole_ms - hidden)
    return exposed

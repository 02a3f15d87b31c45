"""Tables of a package, and questions to a source that reads them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

GemmFrame = Callable[..., pd.DataFrame]


def gemm(m: int, n: int = 64, k: int = 32) -> dict[str, np.ndarray]:
    return {"m": np.array([m]), "n": np.array([n]), "k": np.array([k])}


def all_reduce_frame(ranks: tuple[int, ...]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "kernel_source": "graph",
                "num_gpus": n_ranks,
                "message_size": size,
                "latency": 0.003 + 0.001 * n_ranks + size / 1e8,
            }
            for n_ranks in ranks
            for size in (128, 2**10, 2**20, 2**25)
        ]
    )

"""Profiling CSVs of the Vidur simulator in our long format.

Three of its files hold operators that we have: `mlp.csv` the four products of a layer, `attention.csv`
prefill and decode attention, `all_reduce.csv` collectives. A line of `mlp.csv` becomes four rows. Times are
medians in milliseconds, taken in FP16, which has the width and the peak of BF16. Norms, activations, rotary
embeddings and the saving of the KV cache have no table here and are left out. Columns as in microsoft/vidur,
data/profiling (2024).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.tables import numbers_of
from fleetplan.fleet.units import US_PER_MS
from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.optables.own.long_files import LINE_COLUMN, LongFile

if TYPE_CHECKING:
    import pandas as pd

_PREFIX: Final = "time_stats."
_PRECISION_COLUMN: Final = "profiling_precision"

_MLP: Final = ("n_head", "n_kv_head", "n_embd", "n_expanded_embd", "use_gated_mlp", "num_tokens")
_ATTENTION: Final = (
    "n_q_head",
    "n_kv_head",
    "n_embd",
    "batch_size",
    "prefill_chunk_size",
    "kv_cache_size",
    "is_prefill",
)
_COLLECTIVE: Final = ("size", "num_workers", "devices_per_node", "collective")
_MAY_BE_ZERO: Final = frozenset({"prefill_chunk_size", "kv_cache_size"})
_SPLIT: Final = "num_tensor_parallel_workers"


def is_vidur(frame: pd.DataFrame) -> bool:
    """Return whether a file is a profiling CSV of Vidur, by its columns."""
    return any(str(name).startswith(_PREFIX) for name in frame.columns)


def long_format(file: LongFile) -> tuple[pd.DataFrame, tuple[Issue, ...]]:
    """Convert a profiling CSV to our long format.

    Returns
    -------
    tuple[pandas.DataFrame, tuple[Issue, ...]]
        The rows, and a reason for each line that has no place in our tables.

    Raises
    ------
    InputError
        None of the three kinds of file, or columns of it are missing.
    """
    given = set(file.columns)
    refused = _Refused(str(file.path))
    if given >= {*_COLLECTIVE}:
        frame = _collective(_whole(file.frame, _COLLECTIVE[:3], refused), refused)
    elif given >= {*_ATTENTION, _SPLIT}:
        frame = _attention(_whole(file.frame, (*_ATTENTION[:-1], _SPLIT), refused), refused)
    elif given >= {*_MLP, _SPLIT}:
        numbers = tuple(name for name in _MLP if name != "use_gated_mlp")
        frame = _products(_whole(file.frame, (*numbers, _SPLIT), refused))
    else:
        kinds = {"mlp": {*_MLP, _SPLIT}, "attention": {*_ATTENTION, _SPLIT}, "all_reduce": {*_COLLECTIVE}}
        closest = min(kinds, key=lambda name: len(kinds[name] - given))
        missing = ", ".join(sorted(kinds[closest] - given))
        what = "has columns of Vidur, but is not one of its mlp, attention and all_reduce files"
        raise InputError([Issue(str(file.path), 1, 1, "", what, f"a file of {closest} also has {missing}")])
    return frame, tuple(refused.issues)


class _Refused:
    def __init__(self, path: str) -> None:
        self._path = path
        self.issues: list[Issue] = []

    def without(self, frame: pd.DataFrame, rows: pd.Series[bool], column: str, why: str) -> pd.DataFrame:
        """Return the frame without some rows, and keep why."""
        self.issues += [Issue(self._path, int(line), 1, column, why) for line in frame.loc[rows, LINE_COLUMN]]
        return frame[~rows]


def _whole(frame: pd.DataFrame, columns: tuple[str, ...], refused: _Refused) -> pd.DataFrame:
    """Return the lines whose figures are whole numbers, as integers."""
    for column in columns:
        values = numbers_of(frame[column])
        least = 0 if column in _MAY_BE_ZERO else 1
        wrong = ~((values == values.round()) & (values >= least))
        frame = refused.without(frame, wrong, column, f"must be a whole number, {least} or more")
        frame = frame.assign(**{column: values[~wrong].astype("int64")})
    return frame


def _products(frame: pd.DataFrame) -> pd.DataFrame:
    split = frame[_SPLIT]
    head_dim = frame["n_embd"] // frame["n_head"]
    query = frame["n_head"] // split * head_dim
    key = np.maximum(frame["n_kv_head"] // split, 1) * head_dim
    gated = frame["use_gated_mlp"].astype(str).str.lower().isin(["true", "1", "1.0"])
    inner = frame["n_expanded_embd"] // split
    width = frame["n_embd"]
    shapes = {
        "attn_pre_proj": (query + 2 * key, width),
        "attn_post_proj": (width, query),
        "mlp_up_proj": (inner * np.where(gated, 2, 1), width),
        "mlp_down_proj": (width, inner),
    }
    return _joined(
        [
            _rows(frame, OperatorKind.GEMM, name, {"m": frame["num_tokens"], "n": n, "k": k})
            for name, (n, k) in shapes.items()
        ]
    )


def _attention(frame: pd.DataFrame, refused: _Refused) -> pd.DataFrame:
    prefill = frame["is_prefill"].astype(str).str.lower().isin(["true", "1", "1.0"])
    frame = refused.without(
        frame,
        prefill & (frame["kv_cache_size"] > 0),
        "kv_cache_size",
        "the table has no prompts over a cached prefix: they are computed from prompts without one",
    )
    prefill = prefill[frame.index]
    frame = refused.without(
        frame, ~prefill & (frame["kv_cache_size"] < 1), "kv_cache_size", "a decode step needs a context"
    )
    prefill = prefill[frame.index]
    split = frame[_SPLIT]
    shared = {
        "batch": frame["batch_size"],
        "heads": frame["n_q_head"] // split,
        "kv_heads": np.maximum(frame["n_kv_head"] // split, 1),
        "head_dim": frame["n_embd"] // frame["n_q_head"],
        "window": frame["n_embd"] * 0,
    }
    prompts = _rows(
        frame,
        OperatorKind.PREFILL_ATTENTION,
        "attn_prefill",
        shared | {"new_tokens": frame["prefill_chunk_size"]},
    )
    tokens = _rows(
        frame,
        OperatorKind.DECODE_ATTENTION,
        "attn_decode",
        shared | {"context_tokens": frame["kv_cache_size"]},
    )
    return _joined([prompts[prefill.to_numpy()], tokens[~prefill.to_numpy()]])


def _collective(frame: pd.DataFrame, refused: _Refused) -> pd.DataFrame:
    other = frame["collective"] != "all_reduce"
    frame = refused.without(frame, other, "collective", "only all_reduce has an equivalent table")
    apart = frame["devices_per_node"] != frame["num_workers"]
    frame = refused.without(
        frame, apart, "devices_per_node", "ranks on several hosts: tables hold one domain"
    )
    dims = {"ranks": frame["num_workers"], "message_bytes": frame["size"]}
    return _rows(frame, OperatorKind.ALL_REDUCE, "all_reduce", dims)


def _rows(
    frame: pd.DataFrame, kind: OperatorKind, stage: str, dims: dict[str, pd.Series[int]]
) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415

    column = f"{_PREFIX}{stage}.median"
    times = frame[column] if column in frame.columns else frame[LINE_COLUMN] * np.nan
    precision = frame.get(_PRECISION_COLUMN, pd.Series("fp16", index=frame.index))
    # The kernels of a collective are the same for all 16-bit types.
    dtype = "bf16" if kind is OperatorKind.ALL_REDUCE else precision.astype(str).str.lower()
    return pd.DataFrame(
        {
            LINE_COLUMN: frame[LINE_COLUMN],
            "operator": kind.value,
            "dtype": dtype,
            **dims,
            "latency_us": numbers_of(times) * US_PER_MS,
        }
    )


def _joined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415

    return pd.concat(parts, ignore_index=True)

"""GEMM in FP8 without the quantisation of its activations, where the package measured that apart.

The GEMM tables of TensorRT-LLM in FP8 time a linear layer that looks for the scale of its activations while
it runs: a kernel for the largest value, one that quantises, and the product. A checkpoint with static scales
has no first kernel, and the second is part of the kernel before. The package times both alone, on the same
part under the same version (`computescale`, `scale_matrix`: the two operators that the layer calls), so that
the product alone is what is left. On H100 and H200, which have one die, products of 2,048 rows and more then
take equally long (median ratio 1.00 to 1.01; from 512 rows on 1.04), 95 % of them below 0.8 of the peak. The
tables as they are differ by 3 % there, and those of vLLM by up to 13 %.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import FloatArray, OperatorKind
from fleetplan.perfmodel.optables.rows import MeasuredRows
from fleetplan.perfmodel.optables.unique import unique_rows

PRODUCT_ALONE: Final = "fp8_product"
"""Data type of an import for GEMM in FP8 without its quantisation."""

QUANTISATION_FAMILIES: Final = ("computescale", "scale_matrix")
"""Families of the package whose times are part of its GEMM in FP8."""

_QUANTISED_FRAMEWORKS: Final = frozenset({"trtllm"})
"""Frameworks whose layer runs the kernels that these tables time. Those of SGLang time another kernel, which
on H100 takes longer than its whole GEMM; what vLLM fuses with the kernel before differs by layer."""


def quantisation_files(gemm_file: Path, family: str, framework: str) -> tuple[Path, ...]:
    """List the tables of the quantisation that a GEMM table holds; empty if one of them is absent.

    Parameters
    ----------
    gemm_file : Path
        SYSTEM/gemm/FRAMEWORK/VERSION/gemm_perf.parquet.
    family, framework : str
        Rows of that file.
    """
    if family != "gemm" or framework not in _QUANTISED_FRAMEWORKS:
        return ()
    version = gemm_file.parent
    folder = version.parents[2] / "quantize" / framework / version.name
    files = tuple(folder / f"{name}_perf.parquet" for name in QUANTISATION_FAMILIES)
    return files if all(file.is_file() for file in files) else ()


def products_alone(tables: list[MeasuredRows], files: tuple[Path, ...]) -> list[MeasuredRows]:
    """Return the FP8 GEMM of `tables` less the times in `files`, as a separate table.

    None without files. Sizes without a measured quantisation are left out, and so are products with no
    remaining time.
    """
    if not files:
        return []
    quantisation = [_quantisation_ms(file) for file in files]
    found = []
    for rows in tables:
        if (rows.kind, rows.dtype) != (OperatorKind.GEMM, "fp8"):
            continue
        sizes = unique_rows({name: rows.dims[name] for name in ("m", "k")})
        pairs = zip(sizes.dims["m"].tolist(), sizes.dims["k"].tolist(), strict=True)
        spent = np.array([sum(each.get(pair, np.nan) for each in quantisation) for pair in pairs])
        left: FloatArray = rows.latency_ms - spent[sizes.codes]
        alone = MeasuredRows(rows.kind, PRODUCT_ALONE, rows.dims, left, rows.provenance)
        # Missing measurements are NaN, which is not above zero either.
        found.append(alone.select(left > 0))
    return found


def _quantisation_ms(file: Path) -> dict[tuple[int, int], float]:
    """Return the time by tokens and width; of repeats the fastest, as for the products."""
    import pyarrow.parquet  # noqa: PLC0415  (half a second that a cached import does not need)

    frame = pyarrow.parquet.read_table(file).to_pandas()
    fastest = frame[frame["quant_dtype"] == "fp8"].groupby(["m", "k"])["latency"].min()
    return {(int(m), int(k)): float(latency_ms) for (m, k), latency_ms in fastest.items()}

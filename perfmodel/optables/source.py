"""The one answer that the evaluator needs: how long an operator takes, and how that is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from threading import Lock
from typing import Final

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.interruption import checkpoint
from fleetplan.perfmodel.operators import (
    AXES,
    COLLECTIVE_KINDS,
    CURVES,
    DIMENSIONS,
    WEIGHT_KINDS,
    ActivationScales,
    FloatArray,
    IntArray,
    OperatorKind,
    Provenance,
)
from fleetplan.perfmodel.optables.block_sparse import rows_without_projections
from fleetplan.perfmodel.optables.choice import ChosenRows, TableLibrary, TableSource
from fleetplan.perfmodel.optables.cold_memory import read_from_memory
from fleetplan.perfmodel.optables.collectives import collective_times
from fleetplan.perfmodel.optables.dispatch import GATHERED, gathered
from fleetplan.perfmodel.optables.dispatched import ORDINARY_KIND, dispatched_times
from fleetplan.perfmodel.optables.formulas.collectives import NetworkAllReduce, group_ms
from fleetplan.perfmodel.optables.formulas.roofline import matrix_flops_per_ms, roofline_ms
from fleetplan.perfmodel.optables.formulas.small_kernels import quantisation_ms, small_kernel_ms
from fleetplan.perfmodel.optables.formulas.token_sampling import sampling_ms
from fleetplan.perfmodel.optables.interpolation.curves import Curve, curve_of, curve_times
from fleetplan.perfmodel.optables.interpolation.lookup import LookupTable, lookup_table
from fleetplan.perfmodel.optables.measured.experts import FASTEST_EXPERTS, ExpertKernels
from fleetplan.perfmodel.optables.measured.tables import FRAMEWORKS
from fleetplan.perfmodel.optables.own.store import OwnTables, own_before
from fleetplan.perfmodel.optables.scaled import scaled_rows
from fleetplan.perfmodel.optables.special import SPECIAL
from fleetplan.perfmodel.optables.times import MAY_BE_ZERO, OperatorTimes
from fleetplan.perfmodel.optables.unique import unique_rows

KEPT_SOURCES: Final = 32
"""Sources that a process keeps, those used last: about as many as a large fleet has kinds of hardware and
frameworks. Each takes up to 15 MB."""

FEW_ROWS: Final = 16
"""So many rows are answered faster than they are searched for equal ones."""


class OperatorSource:
    """Operator times of one accelerator under one serving framework.

    Attributes
    ----------
    accelerator : Accelerator
        The part.
    framework : str
        trtllm, sglang or vllm.
    version : str
        Requested version of the framework; empty for the newest of every site.
    network_all_reduce : {"hierarchical", "ring"}
        All-reduce of its communication library across scale-up domains.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        framework: str,
        library: TableLibrary | None,
        network_all_reduce: NetworkAllReduce = "hierarchical",
        own: OwnTables | None = None,
    ) -> None:
        self.accelerator = accelerator
        self.framework = framework
        self.network_all_reduce = network_all_reduce
        self.version = "" if library is None else library.version
        self._library = library
        self._own = own
        self._tables: dict[tuple[OperatorKind, str], LookupTable | None] = {}
        self._curves: dict[OperatorKind, Curve | None] = {}
        self._sources: dict[TableSource, None] = {}
        self._lock = Lock()

    def times(self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> OperatorTimes:
        """Return the time and provenance of an operator for an array of configurations.

        Parameters
        ----------
        kind, dtype, dims
            As in `fleetplan.perfmodel.operators.Operator`.

        Returns
        -------
        OperatorTimes
            Shape (n_configs,) each.

        Raises
        ------
        UnsupportedDtype
            The accelerator has no matrix units for the weights of a gemm or moe.
        WorkInterruptedError
            The time of an interruptible computation is over.
        """
        if next(iter(dims.values())).size <= FEW_ROWS:
            return self.times_of_distinct(kind, dtype, dims)
        distinct = unique_rows(dims)
        found = self.times_of_distinct(kind, dtype, distinct.dims)
        return OperatorTimes(found.latency_ms[distinct.codes], found.provenance[distinct.codes])

    def times_of_distinct(self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> OperatorTimes:
        """Return the answer as `times` does, without looking for equal rows first.

        Raises
        ------
        UnsupportedDtype, WorkInterruptedError
            As `times`.
        """
        checkpoint()
        if dims.keys() != set(DIMENSIONS[kind]):
            raise ValueError(f"{kind} has dimensions {DIMENSIONS[kind]}, not {tuple(dims)}")
        if kind in WEIGHT_KINDS:
            matrix_flops_per_ms(self.accelerator, dtype)
        return self._working_times(kind, dtype, dims)

    def table_sources(self) -> tuple[TableSource, ...]:
        """Return the files behind the answers given so far, in the order of their first use."""
        return tuple(self._sources)

    def recall(self, sources: Iterable[TableSource]) -> None:
        """Count files as read whose answers were kept from an earlier run."""
        with self._lock:
            self._sources |= dict.fromkeys(sources)

    def fingerprint(self) -> tuple[str, ...]:
        """Return all inputs of its results except the program: part, rules, files."""
        library = () if self._library is None else self._library.file_hashes()
        own = () if self._own is None else self._own.fingerprint()
        settings: tuple[str, ...] = ()
        if self._library is not None:
            kernels = self._library.expert_kernels
            settings = (self._library.activation_scales, *sorted(kernels.triton), "own", *sorted(kernels.own))
        rules = (repr(self.accelerator), self.framework, self.version, self.network_all_reduce)
        return (*rules, *settings, *library, *own)

    def table(self, kind: OperatorKind, dtype: str) -> LookupTable | None:
        """Return the measured sites of an operator; None without any."""
        if kind not in AXES:
            return None
        # Collectives move BF16 activations for all data types of weights.
        key = (kind, "bf16" if kind in COLLECTIVE_KINDS else dtype)
        with self._lock:
            if key not in self._tables:
                self._tables[key] = self._built_table(*key)
            return self._tables[key]

    def _built_table(self, kind: OperatorKind, dtype: str) -> LookupTable | None:
        """Return the table of an operator; times of the package are those of the part as it was measured."""
        checkpoint()
        chosen = self.measured_rows(kind, dtype)
        if chosen is None:
            return None
        self._sources |= dict.fromkeys(chosen.sources)
        if self.accelerator.measured_figures is None:
            return lookup_table(self.accelerator, chosen.rows)
        own = self._own_rows(kind, dtype)
        if own is None:
            return lookup_table(self.accelerator, *scaled_rows(chosen.rows, self.accelerator))
        # User tables were measured on this part and are used unscaled, before the scaled ones.
        packaged = self._packaged_rows(kind, dtype)
        if packaged is not None:
            rows, labels = scaled_rows(packaged.rows, self.accelerator)
            packaged = replace(packaged, rows=replace(rows, provenance=labels))
        return lookup_table(self.accelerator, own_before(own, packaged).rows)

    def measured_rows(self, kind: OperatorKind, dtype: str) -> ChosenRows | None:
        """Return the rows of an operator, the user's before the package's; None without any."""
        packaged = self._packaged_rows(kind, dtype)
        own = self._own_rows(kind, dtype)
        return packaged if own is None else own_before(own, packaged)

    def _packaged_rows(self, kind: OperatorKind, dtype: str) -> ChosenRows | None:
        if self._library is None:
            return None
        found = rows_without_projections(self._library, self.accelerator, kind, dtype, self.framework)
        return found and replace(found, rows=read_from_memory(found.rows, self.accelerator.as_measured))

    def _own_rows(self, kind: OperatorKind, dtype: str) -> ChosenRows | None:
        return None if self._own is None else self._own.rows(kind, dtype, self.framework)

    def _working_times(self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> OperatorTimes:
        """Return the times; 0 ms, labelled measured, if a dimension is 0."""
        least = {name: int(values.min(initial=1)) for name, values in dims.items()}
        for name, smallest in least.items():
            if smallest < 0:
                raise ValueError(f"{kind} has a negative {name}")
        zeros = [
            dims[name] == 0 for name, smallest in least.items() if not smallest and name not in MAY_BE_ZERO
        ]
        if not zeros:
            return self._distinct_times(kind, dtype, dims)
        idle = np.logical_or.reduce(zeros)
        # A one instead of the zero keeps logarithms and shares finite; the answer is not used.
        busy = {
            name: values if name in MAY_BE_ZERO else np.maximum(values, 1) for name, values in dims.items()
        }
        found = self._distinct_times(kind, dtype, busy)
        return OperatorTimes(
            np.where(idle, 0.0, found.latency_ms),
            np.where(idle, np.uint8(Provenance.MEASURED), found.provenance),
        )

    def _distinct_times(self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> OperatorTimes:
        if kind in CURVES and (curve := self._curve(kind)) is not None:
            return curve_times(curve, self.accelerator, kind, dims)
        if kind in ORDINARY_KIND:

            def ordinary(other: dict[str, IntArray]) -> OperatorTimes:
                return self._distinct_times(ORDINARY_KIND[kind], dtype, other)

            return dispatched_times(self.table(kind, dtype), dims, ordinary)
        if kind is OperatorKind.EVEN_MOE:
            return self._even_times(dtype, dims)
        if kind in GATHERED and self._library is not None and self.table(kind, dtype) is None:
            return self._tabled_times(GATHERED[kind], "bf16", gathered(dtype, dims))
        return self._tabled_times(kind, dtype, dims)

    def _even_times(self, dtype: str, dims: dict[str, IntArray]) -> OperatorTimes:
        """Return times of experts whose tokens are spread evenly: never more than of as many that are not.

        Tables of an even spread activate more experts with few tokens than real ones do, so the other may be
        shorter. User measurements of experts do not state the spread of tokens, and count for both.
        """
        skewed = self._tabled_times(OperatorKind.MOE, dtype, dims)
        own = None if self._own is None else self._own.rows(OperatorKind.MOE, dtype, self.framework)
        if own is not None or self.table(OperatorKind.EVEN_MOE, dtype) is None:
            return skewed
        even = self._tabled_times(OperatorKind.EVEN_MOE, dtype, dims)
        less = even.latency_ms <= skewed.latency_ms
        return OperatorTimes(
            np.where(less, even.latency_ms, skewed.latency_ms),
            np.where(less, even.provenance, skewed.provenance),
        )

    def _tabled_times(self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> OperatorTimes:
        if kind is OperatorKind.TOKEN_SAMPLING or (
            kind is OperatorKind.ELEMENTWISE and self._library is not None
        ):
            return OperatorTimes.labelled(self._untabled_ms(kind, dims), Provenance.ROOFLINE)
        table = self.table(kind, dtype)
        if table is None or not next(iter(dims.values())).size:
            if kind in COLLECTIVE_KINDS:
                latency_ms = group_ms(self.accelerator, kind, dims, self.network_all_reduce)
            else:
                latency_ms = roofline_ms(self.accelerator, kind, dtype, dims)
            return OperatorTimes.labelled(latency_ms, Provenance.ROOFLINE)
        special = SPECIAL.get(kind)
        if special is not None:
            return special(table, dims)
        if kind in COLLECTIVE_KINDS:
            return collective_times(table, dims, self.network_all_reduce)
        found = table.times(dims)
        if kind is OperatorKind.GEMM:
            before_ms = quantisation_ms(self.accelerator, self.framework, dtype, dims)
            return OperatorTimes(before_ms + found.latency_ms, found.provenance)
        return found

    def _curve(self, kind: OperatorKind) -> Curve | None:
        """Return the user's measurements of an operator with one dimension."""
        with self._lock:
            if kind not in self._curves:
                own = self._own_rows(kind, "bf16")
                self._curves[kind] = None if own is None else curve_of(own.rows)
                if own is not None:
                    self._sources |= dict.fromkeys(own.sources)
            return self._curves[kind]

    def _untabled_ms(self, kind: OperatorKind, dims: dict[str, IntArray]) -> FloatArray:
        """Return the times of what no table holds and the data sheet does not decide."""
        if kind is OperatorKind.TOKEN_SAMPLING:
            return sampling_ms(self.framework, dims)
        return small_kernel_ms(self.accelerator, self.framework, dims["traffic_bytes"])


@lru_cache(maxsize=KEPT_SOURCES)
def operator_source(
    accelerator: Accelerator,
    framework: str,
    version: str = "",
    activation_scales: ActivationScales = "static",
    expert_kernels: ExpertKernels = FASTEST_EXPERTS,
) -> OperatorSource:
    """Return the operator times of `accelerator` under `framework`, cached while in use.

    Parameters
    ----------
    accelerator : Accelerator
        `measured_system` names the tables of the package, its name and `operator_tables` those of the user;
        without any, all times are from the roofline.
    framework : str
        trtllm, sglang or vllm.
    version : str
        Version of the framework; empty for the newest of every site. A part that was not measured under it
        borrows from its other versions; see `measured_versions`.
    activation_scales : {"static", "dynamic"}
        Quantisation of activations for products in FP8; see `fleetplan.perfmodel.optables.choice`.
    expert_kernels : ExpertKernels
        Experts that do not run by the fastest kernel; see `fleetplan.perfmodel.steps.expert_kernels`.

    Raises
    ------
    ValueError
        The framework is none of these.
    """
    if framework not in FRAMEWORKS:
        raise ValueError(f"unknown framework {framework!r}; known are {', '.join(FRAMEWORKS)}")
    system = accelerator.measured_system
    library = (
        None
        if system is None
        else TableLibrary(
            system,
            version=version,
            activation_scales=activation_scales,
            expert_kernels=expert_kernels,
        )
    )
    own = OwnTables(accelerator.name, accelerator.operator_tables)
    return OperatorSource(accelerator, framework, library, own=own)


def measured_versions(accelerator: Accelerator, framework: str) -> tuple[str, ...]:
    """Return the measured releases of a framework on a part, newest first; empty without tables."""
    system = accelerator.measured_system
    known = () if system is None else TableLibrary(system).versions(framework)
    # Some operators were measured under a development build only, which no user runs.
    return tuple(version for version in known if "dev" not in version)

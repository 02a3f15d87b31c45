"""Figures of an accelerator, with units."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace


@dataclass(frozen=True, slots=True)
class Maturity:
    """Factor on the launch gaps of a part's software, compared with the constants of other parts.

    Attributes
    ----------
    framework : str
        Framework: trtllm, sglang or vllm.
    since : str
        First year and month (YYYY-MM) of the software.
    factor : float
        Measured launch gaps divided by those of other parts.
    source : str
        Rows of the fit, and its error on other rows.
    weights : str
        Data type of the feed-forward weights that it applies to; empty for all types without a factor of
        their own.
    """

    framework: str
    since: str
    factor: float
    source: str
    weights: str = ""


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Shares of the data-sheet figures that an accelerator reaches, for operators without measurements.

    Attributes
    ----------
    gemm_ratio : float
        Matrix throughput over the dense peak of the data type.
    weight_read_ratio : float
        Weight-streaming bandwidth over the HBM bandwidth.
    kv_read_ratio : float
        Decode-attention bandwidth over the HBM bandwidth.
    prefill_attention_ratio : float
        Prefill-attention throughput over the dense BF16 peak.
    link_ratio : float
        Collective bandwidth over the link bandwidth.
    collective_latency_us : float
        Fixed time of a collective within the scale-up domain.
    inter_host_latency_us : float
        Fixed time of an all-reduce between scale-up domains, which crosses the network twice; operations that
        cross it once take half.
    layer_overhead_us : float
        Launches and gaps of one dense decoder layer.
    source : str
        Source of the constants: rows of the fit, or the part that they come from.
    maturity : tuple[Maturity, ...]
        Maturity factors of the part's software; empty without evidence.
    maturity_factor : float
        Factor in force, which multiplies the launch gaps; 1 without evidence.
    maturity_source : str
        Rows of its fit; empty if it is 1.
    mesh_link_ratio : float
        Bandwidth of a copy over one link of a mesh, divided by that of the link; only for parts with a mesh.
    """

    gemm_ratio: float
    weight_read_ratio: float
    kv_read_ratio: float
    prefill_attention_ratio: float
    link_ratio: float
    collective_latency_us: float
    inter_host_latency_us: float
    layer_overhead_us: float
    source: str
    maturity: tuple[Maturity, ...] = ()
    maturity_factor: float = 1.0
    maturity_source: str = ""
    mesh_link_ratio: float = 1.0


@dataclass(frozen=True, slots=True)
class SpeedFigures:
    """Figures of a part that determine its speed of computing and sending; units as in `Accelerator`."""

    bf16_tflops: float
    fp8_tflops: float | None
    fp4_tflops: float | None
    int8_tops: float | None
    hbm_gb_per_s: float
    scale_up_gb_per_s: float
    scale_up_accelerators: int
    scale_out_gb_per_s: float | None


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One kind of accelerator. `None` means that no source gives the figure.

    Attributes
    ----------
    name : str
        The name that fleet files use.
    vendor : str
        Manufacturer.
    bf16_tflops, fp8_tflops, fp4_tflops, int8_tops : float or None
        Dense peak by data type; None if the part has no such units.
    hbm_gib : float
        Usable memory. [GiB]
    hbm_gb_per_s : float
        Memory bandwidth. [GB/s]
    scale_up_gb_per_s : float
        Link bandwidth per card and direction within the scale-up domain. [GB/s]
    scale_up_accelerators : int
        Cards in one scale-up domain (a host of 8, a pod of 72).
    scale_out_gb_per_s : float or None
        Network bandwidth per card and direction between scale-up domains. [GB/s]
    tdp_w : float or None
        Board power. [W]
    all_in_w : float or None
        Power of a card with its share of host, network and fans, before PUE. [W]
    idle_board_w : float or None
        Idle power of the card alone. [W]
    idle_w : float or None
        Idle power of a card with its share of host, network and fans, before PUE. [W]
    installed_w : float or None
        `all_in_w` without the power cap; None for a part without a cap. [W]
    accelerators_per_host : int
        Cards that are bought, rented and placed together.
    lifecycle : str
        preview, stable, deprecated or end-of-life.
    measured_system : str or None
        Name of the system in the measured operator tables; None without measurements.
    efficiency : Efficiency
        The roofline constants.
    sources : tuple[str, ...]
        Sources of the figures, with dates.
    operator_tables : tuple[str, ...]
        Files with measured operators of this part that the fleet file names.
    sram_only : bool
        Whether all memory (`hbm_gib`, `hbm_gb_per_s`) is on the chip. A compiler lays a model out over a
        pipeline of many chips with synchronous links and places every byte: weights stay resident, stages
        need not end at layers, and no framework or communication library reserves memory.
    scale_up_mesh : bool
        Whether each part has a separate link to every other part of its scale-up domain, without a switch: a
        group of n uses n - 1 links, a group of two uses one.
    measured_figures : SpeedFigures or None
        Figures of the part in `measured_system`, if they differ from this part's: measured times are then
        multiplied by the ratio of the two rooflines.
    carried_figures : SpeedFigures or None
        Figures of a catalogue part whose tables come from another part of the same architecture (`like`),
        without caps and changes of the fleet file; None for other parts.
    """

    name: str
    vendor: str
    bf16_tflops: float
    fp8_tflops: float | None
    fp4_tflops: float | None
    int8_tops: float | None
    hbm_gib: float
    hbm_gb_per_s: float
    scale_up_gb_per_s: float
    scale_up_accelerators: int
    scale_out_gb_per_s: float | None
    tdp_w: float | None
    all_in_w: float | None
    accelerators_per_host: int
    lifecycle: str
    measured_system: str | None
    efficiency: Efficiency
    sources: tuple[str, ...]
    operator_tables: tuple[str, ...] = ()
    sram_only: bool = False
    measured_figures: SpeedFigures | None = None
    carried_figures: SpeedFigures | None = None
    idle_board_w: float | None = None
    idle_w: float | None = None
    installed_w: float | None = None
    scale_up_mesh: bool = False

    @property
    def speed_figures(self) -> SpeedFigures:
        """Figures that determine the part's speed."""
        return SpeedFigures(**{name: getattr(self, name) for name in SpeedFigures.__slots__})

    @property
    def as_measured(self) -> Accelerator:
        """The part with the figures of the measured one; itself if they are equal."""
        if self.measured_figures is None:
            return self
        return replace(self, measured_figures=None, carried_figures=None, **asdict(self.measured_figures))

    def with_figures(self, **figures: object) -> Accelerator:
        """Return the part with other figures; its measured tables will be scaled.

        Parameters
        ----------
        **figures
            Fields of `Accelerator` with their new values.
        """
        changed = replace(self, **figures)  # type: ignore[arg-type]
        if self.measured_system is None:
            return changed
        measured = self.as_measured.speed_figures
        same = self.carried_figures is None and changed.speed_figures == measured
        return replace(changed, measured_figures=None if same else measured)

    def peak_tflops(self, dtype: str) -> float | None:
        """Return the dense matrix peak for weights of `dtype`, or None without such units.

        Weight-only formats (int4, and mxfp4 where the part has no FP4 units) compute in BF16.
        """
        match dtype:
            case "bf16" | "int4":
                return self.bf16_tflops
            case "fp8" | "fp8_block":
                return self.fp8_tflops
            case "int8":
                return self.int8_tops
            case "fp4":
                return self.fp4_tflops
            case "mxfp4":
                return self.fp4_tflops if self.fp4_tflops is not None else self.bf16_tflops
            case _:
                raise ValueError(f"unknown data type {dtype!r}")

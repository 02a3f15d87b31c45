"""An accelerator as the catalogue knows it: every figure with its unit."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace


@dataclass(frozen=True, slots=True)
class Maturity:
    """How much longer the launches and gaps of a part's software take than constants of other parts say.

    Attributes
    ----------
    framework : str
        Whose software: trtllm, sglang or vllm.
    since : str
        First year and month (YYYY-MM) of that software.
    factor : float
        Measured over carried-over launches and gaps.
    source : str
        What it was fitted on, and how well it predicts what it was not fitted on.
    weights : str
        Data type of the feed-forward weights that it holds for; empty for those without one of their own.
    """

    framework: str
    since: str
    factor: float
    source: str
    weights: str = ""


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Which share of the data-sheet figures an accelerator reaches, where nothing was measured.

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
        Fixed time of an all-reduce that leaves the scale-up domain, which crosses the network twice; what
        crosses it once takes half.
    layer_overhead_us : float
        Launches and gaps of one dense decoder layer.
    source : str
        How the constants were obtained: fitted on what, or carried over from what.
    maturity : tuple[Maturity, ...]
        What is known of the part's software; empty without evidence.
    maturity_factor : float
        The one of them that is in force: launches and gaps are multiplied by it. 1 without evidence.
    maturity_source : str
        What it was fitted on; empty where it is 1.
    mesh_link_ratio : float
        Bandwidth that a copy over one link of a mesh reaches, over that of the link; only of parts whose
        scale-up domain is one.
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
    """The figures of a part that decide how fast it computes and sends; units as in `Accelerator`."""

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
    """One accelerator kind. `None` means that no read source gives the figure.

    Attributes
    ----------
    name : str
        The name that fleet files use.
    vendor : str
        Who makes it.
    bf16_tflops, fp8_tflops, fp4_tflops, int8_tops : float or None
        Dense peak by data type; None where the part has no such units.
    hbm_gib : float
        Memory that can be used. [GiB]
    hbm_gb_per_s : float
        Memory bandwidth. [GB/s]
    scale_up_gb_per_s : float
        Link bandwidth a card and direction within the scale-up domain. [GB/s]
    scale_up_accelerators : int
        Cards in one scale-up domain (a host of 8, a pod of 72).
    scale_out_gb_per_s : float or None
        Network bandwidth a card and direction between scale-up domains. [GB/s]
    tdp_w : float or None
        Board power. [W]
    all_in_w : float or None
        Power a card with its share of host, network and fans, before PUE. [W]
    idle_board_w : float or None
        Power of a card alone that runs nothing. [W]
    idle_w : float or None
        Power of a card that runs nothing, with its share of host, network and fans, before PUE. [W]
    installed_w : float or None
        `all_in_w` without the power cap of the part; None where it has no cap. [W]
    accelerators_per_host : int
        Cards that are bought, rented and placed together.
    lifecycle : str
        preview, stable, deprecated or end-of-life.
    measured_system : str or None
        Name of the system in the measured operator tables; None where nothing was measured.
    efficiency : Efficiency
        The roofline constants.
    sources : tuple[str, ...]
        Where the figures come from, with dates.
    operator_tables : tuple[str, ...]
        Files with measured operators that the fleet file names for this part.
    sram_only : bool
        The memory (`hbm_gib`, `hbm_gb_per_s`) is on the chip and there is no other. A compiler lays a model
        out over a pipeline of many chips with synchronous links and places every byte: weights stay resident,
        stages need not end at layers, and no framework or communication library keeps memory for itself.
    scale_up_mesh : bool
        Each part has links of its own to every other one of its scale-up domain, and no switch: a group of n
        uses the links of n - 1 others, and two use those of one.
    measured_figures : SpeedFigures or None
        Figures of the part that `measured_system` was measured on, where those of this part differ: measured
        times are then multiplied by the ratio of the two rooflines.
    carried_figures : SpeedFigures or None
        Figures of a part of the catalogue whose operators were measured on another part of the same
        architecture (`like`), as they are without caps and figures of one's own; None for all others.
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
        """The figures that decide how fast the part computes and sends."""
        return SpeedFigures(**{name: getattr(self, name) for name in SpeedFigures.__slots__})

    @property
    def as_measured(self) -> Accelerator:
        """The part with the figures of the one that was measured; itself where they do not differ."""
        if self.measured_figures is None:
            return self
        return replace(self, measured_figures=None, carried_figures=None, **asdict(self.measured_figures))

    def with_figures(self, **figures: object) -> Accelerator:
        """The part with other figures; its measured tables are kept, to be scaled.

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
        """Dense matrix peak for weights of `dtype`, or None where the part has no units for it.

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

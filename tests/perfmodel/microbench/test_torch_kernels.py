"""The kernels on a CPU with torch: shapes, times, refusals, processes, and a reference decoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.perfmodel.fakes import accelerator, configurations

torch = pytest.importorskip("torch", reason="needs the extra microbench (torch)")

from fleetplan.fleet.errors import InputError  # noqa: E402
from fleetplan.fleet.inventory import Precision  # noqa: E402
from fleetplan.perfmodel.architecture import (  # noqa: E402
    DenseFfn,
    GroupedQueryAttention,
    LayerGroup,
    LinearAttention,
    LinearVariant,
    ModelArchitecture,
)
from fleetplan.perfmodel.microbench import kernels  # noqa: E402
from fleetplan.perfmodel.microbench.device import CpuDevice, CudaDevice, DeviceState, open_device  # noqa: E402
from fleetplan.perfmodel.microbench.figures import measured_figures  # noqa: E402
from fleetplan.perfmodel.microbench.journal import Journal, Origin  # noqa: E402
from fleetplan.perfmodel.microbench.points import Measurement, Point, Unmeasurable, point  # noqa: E402
from fleetplan.perfmodel.microbench.ranks import measure_groups  # noqa: E402
from fleetplan.perfmodel.microbench.reference import ReferenceDecoder  # noqa: E402
from fleetplan.perfmodel.microbench.single import measure_alone  # noqa: E402
from fleetplan.perfmodel.microbench.sites import model_sites  # noqa: E402
from fleetplan.perfmodel.microbench.timing import Effort, quantile_of, stable_timing  # noqa: E402
from fleetplan.perfmodel.operators import OperatorKind  # noqa: E402
from fleetplan.perfmodel.shapes import decode_shape, prefill_shape  # noqa: E402
from fleetplan.perfmodel.steps import step_operators  # noqa: E402

QUICK = Effort(most_repeats=14, most_s=0.2)
ATTENTION = {"heads": 4, "kv_heads": 2, "head_dim": 16, "window": 0}
POINTS = [
    point(OperatorKind.GEMM, "bf16", m=5, n=32, k=16),
    point(OperatorKind.BATCHED_GEMM, "bf16", m=5, groups=3, n=8, k=16),
    point(OperatorKind.PREFILL_ATTENTION, "bf16", batch=2, new_tokens=7, **ATTENTION),
    point(OperatorKind.DECODE_ATTENTION, "bf16", batch=2, context_tokens=9, **ATTENTION),
    point(
        OperatorKind.LATENT_PREFILL_ATTENTION,
        "bf16",
        batch=1,
        new_tokens=6,
        heads=2,
        key_head_dim=24,
        value_head_dim=16,
    ),
    point(
        OperatorKind.LATENT_DECODE_ATTENTION,
        "bf16",
        batch=2,
        context_tokens=6,
        heads=2,
        kv_rank=16,
        rope_head_dim=8,
    ),
    point(
        OperatorKind.MOE, "bf16", tokens=6, hidden=16, intermediate=8, top_k=2, experts=8, moe_tp=2, moe_ep=2
    ),
    point(OperatorKind.ELEMENTWISE, "bf16", traffic_bytes=65536),
]


@pytest.fixture(scope="module")
def cpu() -> CpuDevice:
    return CpuDevice(threads=1, flush_bytes=2**16)


def ids(each: object) -> str:
    return each.kind.value if isinstance(each, Point) else str(each)


@pytest.mark.parametrize("each", POINTS, ids=ids)
def test_every_operator_of_one_device_has_a_kernel(each: Point, cpu: CpuDevice) -> None:
    measured = measure_alone(each, cpu, QUICK)
    assert measured.point == each
    assert measured.latency_us > 0
    assert measured.repeats >= 7
    assert kernels.operand_bytes(each) > 0


def test_attention_kernels_agree() -> None:
    queries, keys, values = (torch.randn(2, heads, 5, 16) for heads in (4, 2, 2))
    whole = kernels.prompt_attention(queries, keys, values)
    torch.testing.assert_close(whole, kernels.prompt_attention_repeated(queries, keys, values))
    last = kernels.token_attention(queries[:, :, -1:], keys, values)
    torch.testing.assert_close(last, kernels.token_attention_gqa(queries[:, :, -1:], keys, values))
    # The last query of a causal prompt sees what a generated token sees.
    torch.testing.assert_close(last[:, :, 0], whole[:, :, -1])


def test_larger_products_take_longer(cpu: CpuDevice) -> None:
    small, large = (
        measure_alone(point(OperatorKind.GEMM, "bf16", m=m, n=512, k=512), cpu, QUICK).latency_us
        for m in (8, 2048)
    )
    assert large > 3 * small


@pytest.mark.parametrize(
    ("each", "reason"),
    [
        (point(OperatorKind.GEMM, "fp8", m=1, n=16, k=16), "has no kernels for fp8"),
        (point(OperatorKind.GEMM, "bf16", m=2**20, n=2**20, k=2**20), "GiB of operands"),
        (
            point(
                OperatorKind.DECODE_ATTENTION, "bf16", batch=1, context_tokens=9, **{**ATTENTION, "window": 4}
            ),
            "no kernel for attention with a window",
        ),
        (
            point(
                OperatorKind.UNGATED_MOE,
                "bf16",
                tokens=1,
                hidden=1,
                intermediate=1,
                top_k=1,
                experts=1,
                moe_tp=1,
                moe_ep=1,
            ),
            "no kernel of torch stands for ungated_moe",
        ),
    ],
)
def test_what_cannot_run_says_why(each: Point, reason: str, cpu: CpuDevice) -> None:
    with pytest.raises(Unmeasurable, match=reason):
        kernels.kernel(each, cpu)


def test_kernels_that_fail_are_passed_over_and_running_out_of_memory_is_named(
    cpu: CpuDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = POINTS[0]

    def makes(*runs: object) -> None:
        monkeypatch.setitem(kernels.MAKERS, each.kind, lambda asked, where: runs)

    def fails() -> None:
        raise RuntimeError("no such kernel\nand more")

    def too_large() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    makes(fails, lambda: 1)
    assert kernels.kernel(each, cpu)() == 1
    makes(fails)
    with pytest.raises(Unmeasurable, match=r"torch cannot run it here: no such kernel$"):
        kernels.kernel(each, cpu)
    makes(too_large)
    with pytest.raises(Unmeasurable, match="ran out of memory"):
        kernels.kernel(each, cpu)


class Clock:
    """A device whose times are given."""

    name, where = "clock", torch.device("cpu")

    def __init__(self, times: list[float]) -> None:
        self._times = iter(times)
        self.asked = 0

    def missing(self, dtype: str) -> str:
        return ""

    def free_bytes(self) -> float:
        return 1e9

    def times_us(self, run: object, repeats: int) -> list[float]:
        self.asked += repeats
        return [next(self._times) for _ in range(repeats)]

    def state(self) -> DeviceState:
        return DeviceState(power_w=1.0)


def test_a_kernel_runs_until_its_median_stands_still() -> None:
    settling = [9.0] * 3 + [9.0] * 7 + [5.0] * 1000
    clock = Clock(settling)
    timing = stable_timing(lambda: None, clock, Effort())
    # 7 of 9 us, then 14 of 5: two blocks without a change follow.
    assert timing.latency_us == 5.0
    assert timing.repeats == 7 + 7 + 7 + 14
    assert clock.asked == timing.repeats + 3
    noisy = Clock([float(2 + position % 5) * (1 + position) for position in range(2000)])
    assert stable_timing(lambda: None, noisy, Effort(most_repeats=70)).repeats == 70
    slow = Clock([1e6] * 100)
    assert stable_timing(lambda: None, slow, Effort(most_s=3.0)).repeats == 7


def test_the_fastest_may_count_instead() -> None:
    assert [quantile_of([3.0, 1.0, 2.0], share) for share in (0.0, 0.5, 1.0)] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("name", "message"),
    [("tpu", "is no device; allowed: cpu, cuda"), ("cuda:x", "is no device")],
)
def test_devices_that_there_are_not(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_device(name)


class FakeCuda:
    """What `CudaDevice` asks of torch.cuda, in words."""

    def __init__(self, count: int, busy: float, capability: tuple[int, int] = (8, 0)) -> None:
        self._count, self._busy, self._capability = count, busy, capability

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answers = {
            "is_available": lambda: self._count > 0,
            "device_count": lambda: self._count,
            "set_device": lambda device: None,
            "get_device_properties": lambda device: type("P", (), {"name": "GPU", "L2_cache_size": 4096})(),
            "get_device_capability": lambda device: self._capability,
            "power_draw": lambda device: 250_000,
            "clock_rate": lambda device: 1700,
            "temperature": lambda device: 55,
            "utilization": lambda device: self._busy * 100,
            "mem_get_info": lambda device: (8 * 2**30, 80 * 2**30),
        }
        for name, answer in answers.items():
            monkeypatch.setattr(torch.cuda, name, answer)
        zeros = torch.zeros

        def on_the_cpu(*shape: int, device: object = None, **options: object) -> object:
            return zeros(*shape, **options)

        monkeypatch.setattr(torch, "zeros", on_the_cpu)


def test_a_gpu_that_others_use_is_refused_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(2, busy=0.9).install(monkeypatch)
    with pytest.raises(InputError, match=r"in use for 90% of the time.*--allow-busy"):
        CudaDevice(0)
    device = CudaDevice(1, allow_busy=True)
    assert device.state() == DeviceState(250.0, 1700.0, 55.0, 0.9)
    assert device.free_bytes() == 8 * 2**30
    with pytest.raises(InputError, match="there is no such GPU; allowed: cuda:0, cuda:1"):
        CudaDevice(2)


def test_fp8_needs_a_gpu_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(1, busy=0.0).install(monkeypatch)
    assert "has no FP8 units" in CudaDevice().missing("fp8")
    FakeCuda(1, busy=0.0, capability=(9, 0)).install(monkeypatch)
    assert CudaDevice().missing("fp8") == ""
    assert "no kernels for int4" in CudaDevice().missing("int4")


def test_other_operators_than_products_run_in_bf16_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(1, busy=0.0, capability=(9, 0)).install(monkeypatch)
    narrow = Point(OperatorKind.MOE, "fp8", POINTS[6].dims)
    with pytest.raises(Unmeasurable, match="torch has no kernel for moe in fp8"):
        kernels.kernel(narrow, CudaDevice())


def test_a_machine_without_a_gpu_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(0, busy=0.0).install(monkeypatch)
    with pytest.raises(InputError, match="this torch sees no GPU; --device cpu"):
        open_device("cuda")


def test_nothing_of_nvml_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(1, busy=0.0).install(monkeypatch)

    def missing(device: object) -> float:
        raise ModuleNotFoundError("pynvml")

    monkeypatch.setattr(torch.cuda, "power_draw", missing)
    assert CudaDevice().state() == DeviceState()


def test_figures_of_a_cpu(cpu: CpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleetplan.perfmodel.microbench.figures.COPY_BYTES", 2**22)
    monkeypatch.setattr("fleetplan.perfmodel.microbench.figures.PRODUCT_SIDE", {"cpu": 128})
    found = measured_figures(cpu, QUICK)
    assert min(found.bf16_tflops, found.memory_gb_per_s, found.memory_gib) > 0
    assert found.host_to_device_gb_per_s is None


def test_collectives_run_in_processes_of_their_own() -> None:
    asked = [
        point(OperatorKind.ALL_REDUCE, "bf16", message_bytes=4096, ranks=2),
        point(OperatorKind.ALL_GATHER, "bf16", message_bytes=4096, ranks=2),
        point(OperatorKind.REDUCE_SCATTER, "bf16", message_bytes=4096, ranks=2),
        point(OperatorKind.ALL_TO_ALL, "bf16", message_bytes=4096, ranks=2),
        point(OperatorKind.SEND_RECV, "bf16", message_bytes=4096),
    ]
    found: dict[Point, object] = {}

    def keep(result: Measurement | tuple[Point, str]) -> None:
        key = result.point if isinstance(result, Measurement) else result[0]
        found[key] = result

    measure_groups(asked, "cpu", QUICK, keep)
    assert list(found) == asked
    for each in (asked[0], asked[1], asked[4]):
        result = found[each]
        assert isinstance(result, Measurement), result
        assert result.latency_us > 0
    # What gloo cannot do is left out with its name.
    for result in found.values():
        assert isinstance(result, Measurement) or result[1].startswith("gloo: ")


DECODER = ModelArchitecture(
    name="small",
    model_type="llama",
    hidden_size=64,
    vocab_size=128,
    tied_embeddings=False,
    groups=(LayerGroup(2, GroupedQueryAttention(4, 2, 16, 16), DenseFfn(96)),),
)


def test_a_generated_token_of_the_reference_continues_its_prompt() -> None:
    decoder = ReferenceDecoder(DECODER, torch.device("cpu"))
    prompt = torch.randint(128, (2, 6))
    whole, cache = decoder.prefill(prompt)
    _, shorter = decoder.prefill(prompt[:, :-1])
    room = [
        tuple(torch.cat([each, torch.zeros_like(each[:, :, :1])], dim=2) for each in layer)
        for layer in shorter
    ]
    torch.testing.assert_close(decoder.decode(prompt[:, -1:], room), whole, rtol=0.1, atol=0.02)
    assert cache[0][0].shape == (2, 2, 6, 16)
    recurrent = LinearAttention(LinearVariant.MAMBA2, 1, 1, 1, 1, 1)
    with pytest.raises(ValueError, match="grouped-query attention"):
        ReferenceDecoder(
            ModelArchitecture("m", "llama", 8, 8, False, (LayerGroup(1, recurrent, DenseFfn(8)),)),
            torch.device("cpu"),
        )


def test_the_sites_of_a_decoder_are_all_that_its_steps_look_up() -> None:
    sites = {(site.kind, site.fixed) for site in model_sites([(DECODER, Precision("bf16", "bf16"))], (1,))}
    dtypes_of = {kind for kind, _ in sites}
    asked = configurations(("TP1",), (3,), input_tokens=11, context_tokens=17)
    from fleetplan.perfmodel.precision import part_dtypes  # noqa: PLC0415

    dtypes = part_dtypes(DECODER, Precision("bf16", "bf16"))
    for shape in (prefill_shape(asked), decode_shape(asked)):
        for operator in step_operators(DECODER, dtypes, shape):
            if (
                operator.kind in dtypes_of
                and operator.kind is not OperatorKind.ELEMENTWISE
                and operator.count.any()
            ):
                fixed = {name: int(values[0]) for name, values in operator.dims.items()}
                assert any(
                    kind is operator.kind and dict(held).items() <= fixed.items() for kind, held in sites
                ), operator.name
    assert np.isfinite(accelerator().hbm_gib)


def test_a_journal_keeps_what_the_device_says(tmp_path: Path) -> None:
    journal = Journal(tmp_path, Origin("x", "clock", "torch", 0.5))
    clock = Clock([5.0] * 1000)
    journal.add(measure_alone(POINTS[-1], clock, QUICK))
    (found,) = Journal(tmp_path, Origin("x", "clock", "torch", 0.5)).measured.values()
    assert (found.power_w, found.clock_mhz) == (1.0, None)

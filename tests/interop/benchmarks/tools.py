"""Commands of each load generator, and the paths of its output."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.interop.benchmarks.waiting import ProcessorWait, watched

INPUT_TOKENS: Final = 32
OUTPUT_TOKENS: Final = 8

_SGLANG: Final = Path(__file__).parents[1] / "bench_sglang.py"


@dataclass(frozen=True)
class AskedLoad:
    """Requested load: a rate [1/s], a cap on requests in flight, or both; and the number of requests."""

    rate: float | None
    cap: int | None
    requests: int
    warmup: int = 0


def tokenizer(folder: Path) -> Path:
    """Write a tokenizer of a thousand words, so that no tool asks a hub for one."""
    folder.mkdir(parents=True, exist_ok=True)
    special = ["[BOS]", "[EOS]"]
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    # An unknown word is an ordinary token: what is special some tools leave out of their prompts.
    words = {word: index for index, word in enumerate([*special, *(f"w{each}" for each in range(998))])}
    whole = {
        "version": "1.0",
        "added_tokens": [{"id": index, "content": word, **added} for index, word in enumerate(special)],
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "w0"},
        **dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder")),
    }
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 4096}
    config |= dict(zip(("bos_token", "eos_token"), special, strict=True))
    (folder / "tokenizer.json").write_text(json.dumps(whole), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def _vllm(url: str, load: AskedLoad, words: Path, out: Path) -> list[str]:
    return [
        *("vllm", "bench", "serve", "--backend", "openai", "--base-url", url, "--model", "mock"),
        *("--tokenizer", str(words), "--dataset-name", "random", "--ignore-eos"),
        *("--random-input-len", str(INPUT_TOKENS), "--random-output-len", str(OUTPUT_TOKENS)),
        *("--num-prompts", str(load.requests), "--num-warmups", str(load.warmup)),
        *("--save-result", "--result-dir", str(out), "--result-filename", "result.json"),
        *(() if load.rate is None else ("--request-rate", str(load.rate))),
        *(() if load.cap is None else ("--max-concurrency", str(load.cap))),
    ]


def _sglang(url: str, load: AskedLoad, words: Path, out: Path) -> list[str]:
    return [
        *("python", str(_SGLANG), "--backend", "sglang-oai", "--base-url", url),
        *("--model", "mock", "--tokenizer", str(words), "--dataset-name", "random-ids"),
        *("--random-input-len", str(INPUT_TOKENS), "--random-output-len", str(OUTPUT_TOKENS)),
        *("--random-range-ratio", "1", "--num-prompts", str(load.requests)),
        *(
            "--warmup-requests",
            str(load.warmup),
            "--output-details",
            "--output-file",
            str(out / "result.jsonl"),
        ),
        *(() if load.rate is None else ("--request-rate", str(load.rate))),
        *(() if load.cap is None else ("--max-concurrency", str(load.cap))),
    ]


def _aiperf(url: str, load: AskedLoad, words: Path, out: Path) -> list[str]:
    return [
        *("aiperf", "profile", "--model", "mock", "--url", url, "--endpoint-type", "completions"),
        *("--streaming", "--tokenizer", str(words), "--artifact-dir", str(out), "--ui", "none"),
        *("--isl", str(INPUT_TOKENS), "--osl", str(OUTPUT_TOKENS), "--request-count", str(load.requests)),
        *(("--warmup-request-count", str(load.warmup)) if load.warmup else ()),
        *(() if load.rate is None else ("--request-rate", str(load.rate))),
        *(() if load.cap is None else ("--concurrency", str(load.cap))),
    ]


def _guidellm(url: str, load: AskedLoad, words: Path, out: Path) -> list[str]:
    profile = f"kind=concurrent,streams={load.cap}"
    if load.rate is not None:
        profile = f"kind=poisson,rate={load.rate}"
        profile += "" if load.cap is None else f",max_concurrency={load.cap}"
    if load.warmup:
        # A share of the requests, of which its figures leave out those.
        profile += f",warmup={load.warmup / load.requests}"
    return [
        *("guidellm", "run", "--backend", f"kind=openai_http,target={url},model=mock"),
        *("--tokenizer", f"kind=huggingface_auto,model={words}", "--profile", profile),
        *("--data", f"kind=synthetic_text,prompt_tokens={INPUT_TOKENS},output_tokens={OUTPUT_TOKENS}"),
        *("--constraint", f"kind=max_requests,count={load.requests}", "--disable-console"),
        *("--output", f"kind=json,path={out / 'result.json'}"),
    ]


def _inference_perf(url: str, load: AskedLoad, words: Path, out: Path) -> list[str]:
    lengths = {"std_dev": 0, "total_count": load.requests + load.warmup}
    stage: dict[str, object] = {"num_requests": load.requests, "concurrency_level": load.cap}
    kind = "concurrent"
    if load.rate is not None:
        kind, stage = "constant", {"rate": load.rate, "duration": round(load.requests / load.rate)}
    stages = [stage]
    if load.warmup:
        # A warm-up is a stage of its own, whose file nobody reads.
        stages.insert(0, {**stage, "num_requests": load.warmup})
    config = {
        "api": {"type": "completion", "streaming": True},
        "server": {"type": "vllm", "model_name": "mock", "base_url": url, "ignore_eos": True},
        "tokenizer": {"pretrained_model_name_or_path": str(words)},
        "data": {
            "type": "random",
            "input_distribution": {"min": INPUT_TOKENS, "max": INPUT_TOKENS, "mean": INPUT_TOKENS, **lengths},
            "output_distribution": {
                "min": OUTPUT_TOKENS, "max": OUTPUT_TOKENS, "mean": OUTPUT_TOKENS, **lengths
            },
        },
        "load": {"type": kind, "num_workers": 1, "stages": stages},
        "storage": {"local_storage": {"path": str(out)}},
    }  # fmt: skip
    (out / "config.yml").write_text(json.dumps(config), encoding="utf-8")
    return ["inference-perf", "--config_file", str(out / "config.yml")]


TOOLS: Final[Mapping[str, tuple[Callable[[str, AskedLoad, Path, Path], list[str]], str]]] = {
    "vllm": (_vllm, "result.json"),
    "sglang": (_sglang, "result.jsonl"),
    "aiperf": (_aiperf, "profile_export_aiperf.json"),
    "guidellm": (_guidellm, "result.json"),
    "inference-perf": (_inference_perf, "stage_*_lifecycle_metrics.json"),
}
"""AskedLoad generators by the name of their format: their command, and the file that they write."""

LONGEST_S: Final = 600
"""Time that a tool may take for a run of seconds: most of it are its imports, which take minutes on a machine
that others keep busy. [s]"""


class NoResultError(Exception):
    """A tool gave no file to import."""


def written_by(
    tool: str, programs: Path, url: str, load: AskedLoad, words: Path, out: Path
) -> tuple[Path, ProcessorWait]:
    """Run a tool; return the file that it wrote, and how long it and the server waited for a processor.

    Raises
    ------
    NoResultError
        It wrote none, or took too long.
    """
    command, name = TOOLS[tool]
    program, *options = command(url, load, words, out)
    # No tool may look for models, or tell of its use. AIPerf told so takes a folder for a name of the hub.
    alone = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    if tool != "aiperf":
        alone |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with (
        subprocess.Popen(
            [str(programs / program), *options],
            cwd=out,
            env={**environment, **alone, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running,
        watched(running.pid, os.getpid()) as waiting,
    ):
        try:
            said, _ = running.communicate(timeout=LONGEST_S)
        except subprocess.TimeoutExpired as error:
            running.kill()
            raise NoResultError(f"{tool} took longer than {LONGEST_S} s") from error
    # The last stage, and of several files of one name that of the whole run.
    found = sorted(out.rglob(name), key=lambda each: (-len(each.parts), each.name))
    if not found:
        raise NoResultError(f"{tool} wrote no {name}: {said[-1500:]}")
    return found[-1], waiting

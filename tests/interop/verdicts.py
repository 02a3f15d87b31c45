"""Input and output of the checks in the interop environment: cases on stdin, verdicts on stdout."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from pathlib import Path


@contextlib.contextmanager
def checkpoint(config):
    """Return a checkpoint folder with its config only.

    What the catalogue leaves out of a config is filled in: the usual architecture, and the activations of
    checkpoints in FP8, which DeepSeek and its kind publish as dynamic.
    """
    # Some ten seconds: not every check has checkpoints.
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES  # noqa: PLC0415

    config = dict(config)
    if config.get("quantization_config", {}).get("quant_method") == "fp8":
        config["quantization_config"] = {"activation_scheme": "dynamic", **config["quantization_config"]}
    architecture = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(config["model_type"], "LlamaForCausalLM")
    with tempfile.TemporaryDirectory() as folder:
        text = json.dumps({"architectures": [architecture], **config})
        Path(folder, "config.json").write_text(text, encoding="utf-8")
        yield folder


def draft(config):
    """A folder in the place of a draft's checkpoint, which only a hub has: one layer of its target."""
    inner = config.get("text_config")
    small = {name: value for name, value in config.items() if name != "quantization_config"}
    nested = {"text_config": inner | {"num_hidden_layers": 1}} if inner else {}
    return checkpoint({**small, "num_hidden_layers": 1, **nested})


def write_verdicts(verdict):
    """Write what `verdict` sees in each case, in order, or why it refuses it; its prints go to stderr."""
    out, sys.stdout = sys.stdout, sys.stderr
    found = []
    for case in json.load(sys.stdin):
        try:
            found.append({"seen": verdict(case)})
        except (Exception, SystemExit) as error:
            found.append({"refused": f"{type(error).__name__}: {str(error)[:600]}"})
    json.dump(found, out)

"""What the checks of the interop environment share: cases on standard input, verdicts on standard output."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from pathlib import Path

from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES


@contextlib.contextmanager
def checkpoint(config):
    """A checkpoint's folder that holds its config alone; without an architecture it gets the usual one."""
    architecture = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(config["model_type"], "LlamaForCausalLM")
    with tempfile.TemporaryDirectory() as folder:
        text = json.dumps({"architectures": [architecture], **config})
        Path(folder, "config.json").write_text(text, encoding="utf-8")
        yield folder


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

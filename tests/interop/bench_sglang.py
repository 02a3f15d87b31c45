"""Runs SGLang's serving benchmark with its own options; runs in the interop environment, on a CPU."""

from __future__ import annotations

import runpy

import stand_ins  # noqa: F401  (before SGLang)

runpy.run_module("sglang.benchmark.serving", run_name="__main__", alter_sys=True)

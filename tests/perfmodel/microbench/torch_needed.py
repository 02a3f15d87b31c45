"""Tests of kernels need torch, which is an extra."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra microbench (torch)")

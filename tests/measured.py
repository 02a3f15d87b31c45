"""Tests whose figures rest on the measured tables, which have no wheel for Python 3.14 or other platforms."""

from __future__ import annotations

import pytest

from fleetplan.perfmodel.optables.measured.folders import data_folder

needs_tables = pytest.mark.skipif(data_folder() is None, reason="aiconfigurator-core is not installed here")

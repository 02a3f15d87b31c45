"""Evaluates policies of Rego on documents with regorus; runs in the interop environment.

Usage: python check_rego.py < cases.json > verdicts.json. A case has `policy`, a module of the package
fleetplan with the set `deny`, and `input`; what is seen are the messages of `deny`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from opa_eval import OpaEval
from verdicts import write_verdicts


def verdict(case):
    """The messages of a policy."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "policy.rego")
        file.write_text(case["policy"], encoding="utf-8")
        rego = OpaEval(str(file), query="data.fleetplan.deny")
        return list(rego.evaluate_parsed(json.dumps(case["input"])))


write_verdicts(verdict)

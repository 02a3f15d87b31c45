"""Holds pod specs to the schema of Kubernetes; runs in the interop environment.

Usage: python check_kubernetes.py < pods.json > verdicts.json, with a list of pod specs.
"""

from __future__ import annotations

import kubernetes_validate
from verdicts import write_verdicts

VERSION = "1.33"
"""Kubernetes release whose schema is taken."""


def verdict(spec):
    """Nothing, if the schema admits the pod."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}
    kubernetes_validate.validate(pod, VERSION, strict=True)
    return {}


write_verdicts(verdict)

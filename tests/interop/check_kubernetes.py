"""Holds pod specs to the schema of Kubernetes; runs in the interop environment.

Usage: python check_kubernetes.py < pods.json > verdicts.json, with a list of pod specs.
"""

from __future__ import annotations

import json
import sys

import kubernetes_validate

VERSION = "1.33"
"""Kubernetes release whose schema is taken."""


def main():
    """Write a verdict for each pod spec, in order."""
    found = []
    for spec in json.load(sys.stdin):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}
        try:
            kubernetes_validate.validate(pod, VERSION, strict=True)
            found.append({"seen": {}})
        except kubernetes_validate.ValidationError as error:
            found.append({"refused": str(error)[:600]})
    json.dump(found, sys.stdout)


main()

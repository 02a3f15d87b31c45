"""Asks the rules in CEL of CustomResourceDefinitions of values; runs in the interop environment.

Usage: python check_cel.py < cases.json > verdicts.json. A case has `rule`, `self` and `message`; a rule that
does not hold, or cannot be asked, is refused.
"""

from __future__ import annotations

import re
from functools import cache

import celpy
from celpy import celtypes
from verdicts import write_verdicts


def find(text, pattern):
    """The first match of a pattern, empty without one: Kubernetes adds it to CEL."""
    found = re.search(str(pattern), str(text))
    return celtypes.StringType(found.group(0) if found else "")


@cache
def program(rule):
    """A rule that can be asked."""
    environment = celpy.Environment()
    return environment.program(environment.compile(rule), functions={"find": find})


def verdict(case):
    """Nothing, if the rule holds."""
    if not program(case["rule"]).evaluate({"self": celpy.json_to_cel(case["self"])}):
        raise ValueError(case["message"])
    return {}


write_verdicts(verdict)

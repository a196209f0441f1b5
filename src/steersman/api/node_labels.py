"""Labels of nodes that have a new name, and the warnings about selectors that use the old one.

Source: kubernetes `pkg/api/node/util.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.apimachinery import names

Object = Mapping[str, Any]
_DEPRECATED = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": ('deprecated since v1.17; use "topology.kubernetes.io/region" instead'),
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def deprecation(label: str) -> str:
    """What to use instead of a label; "" for one that is not deprecated."""
    return _DEPRECATED.get(label, "")


def term_warnings(term: Object, place: str, *, check_values: bool) -> list[str]:
    """Of the expressions of a node selector's term; `check_values` tells of values that no label can have too."""
    found = []
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        here, key = f"{place}.matchExpressions[{index}]", expression.get("key") or ""
        if text := deprecation(key):
            found.append(f"{here}.key: {key} is {text}")
        if check_values:
            found += [
                f"{here}.values[{number}]: {value} is invalid, {text}"
                for number, value in enumerate(expression.get("values") or ())
                for text in names.label_value(value)
            ]
    return found

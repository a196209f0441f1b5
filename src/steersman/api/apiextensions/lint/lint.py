"""All rules about one definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api.apiextensions.lint.bounds import bound_findings
from steersman.api.apiextensions.lint.defaults import default_findings
from steersman.api.apiextensions.lint.findings import LintFinding
from steersman.api.apiextensions.lint.places import versions_of
from steersman.api.apiextensions.lint.shapes import shape_findings
from steersman.api.apiextensions.lint.surface import definition_findings, surface_findings
from steersman.api.apiextensions.lint.versions import version_findings

_OF_A_VERSION = (default_findings, bound_findings, shape_findings, surface_findings)


def lint(crd: Mapping[str, Any]) -> list[LintFinding]:
    """What the author of a definition should know of it: version by version, rule by rule."""
    findings = list(definition_findings(crd))
    versions = versions_of(crd)
    for version in versions:
        for rules in _OF_A_VERSION:
            findings += rules(version)
    return findings + list(version_findings(crd, versions))

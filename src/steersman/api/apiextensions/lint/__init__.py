"""What the author of a CustomResourceDefinition should know of it, beyond what the server refuses.

Definitions are JSON (apiextensions.k8s.io/v1) that the server could decode; they may break its other rules.
"""

from steersman.api.apiextensions.lint.breaking import compare
from steersman.api.apiextensions.lint.findings import RULES, LintFinding, Severity
from steersman.api.apiextensions.lint.lint import lint

__all__ = ["RULES", "LintFinding", "Severity", "compare", "lint"]

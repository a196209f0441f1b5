"""CEL, the expression language of `x-kubernetes-validations`: compiled to Python, within Kubernetes' limits.

Source: cel-go; apiserver `pkg/cel`; apiextensions `pkg/apiserver/schema/cel`.
"""

from steersman.apimachinery.schema.cel.rule_tree import RuleTree

__all__ = ["RuleTree"]

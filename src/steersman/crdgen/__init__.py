"""CustomResourceDefinitions from Python types, and Python types from CustomResourceDefinitions."""

from steersman.crdgen.definition import crd_for, crds
from steersman.crdgen.errors import SchemaError

__all__ = ["SchemaError", "crd_for", "crds"]

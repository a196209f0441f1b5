"""CustomResourceDefinitions from Python types, and Python types from CustomResourceDefinitions."""

from steersman.crdgen.definition import crd_for, crds
from steersman.crdgen.errors import SchemaError
from steersman.crdgen.modules import module_for

__all__ = ["SchemaError", "crd_for", "crds", "module_for"]

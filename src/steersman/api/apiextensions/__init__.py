"""Rules of the CustomResourceDefinition kind (apiextensions.k8s.io/v1), on objects as JSON."""

from steersman.api.apiextensions.conditions import (
    Naming,
    accept_names,
    approval_condition,
    establish,
    find_condition,
    is_condition_true,
    non_structural_violations,
    remove_condition,
    set_condition,
)
from steersman.api.apiextensions.defaults import (
    crd_warnings,
    default_crd,
    prepare_crd_for_create,
    prepare_crd_for_status_update,
    prepare_crd_for_update,
)
from steersman.api.apiextensions.validation import validate_crd, validate_crd_status_update, validate_crd_update

__all__ = [
    "Naming",
    "accept_names",
    "approval_condition",
    "crd_warnings",
    "default_crd",
    "establish",
    "find_condition",
    "is_condition_true",
    "non_structural_violations",
    "prepare_crd_for_create",
    "prepare_crd_for_status_update",
    "prepare_crd_for_update",
    "remove_condition",
    "set_condition",
    "validate_crd",
    "validate_crd_status_update",
    "validate_crd_update",
]

"""Admission: what may stop or change a write after authorization and before the store."""

from steersman.apiserver.admission.chain import Admission, Attributes, Form, Plugin, Reinvocable, Validator
from steersman.apiserver.admission.functions import AdmittedWrite, Denied, mutating, validating

__all__ = [
    "Admission",
    "AdmittedWrite",
    "Attributes",
    "Denied",
    "Form",
    "Plugin",
    "Reinvocable",
    "Validator",
    "mutating",
    "validating",
]

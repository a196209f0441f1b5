"""Admission: what may stop or change a write after authorization and before the store."""

from steersman.apiserver.admission.chain import Admission, Attributes, Form, Plugin, Reinvocable, Validator

__all__ = ["Admission", "Attributes", "Form", "Plugin", "Reinvocable", "Validator"]

"""Admission: what may stop or change a write after authorization and before the store."""

from steersman.apiserver.admission.chain import Admission, Attributes, Plugin

__all__ = ["Admission", "Attributes", "Plugin"]

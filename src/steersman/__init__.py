"""steersman: a Kubernetes-compatible API server for custom resources, and an operator runtime, in Python."""

__version__ = "0.1.0"

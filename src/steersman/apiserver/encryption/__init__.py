"""Encryption at rest: values are encrypted on their way into the store, as kube-apiserver does it."""

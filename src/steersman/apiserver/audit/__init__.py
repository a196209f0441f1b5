"""Audit: who asked for what, and what came of it, as events of audit.k8s.io/v1.

Loaded only by servers that have an audit policy.
"""

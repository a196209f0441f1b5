"""The Pod Security Standards: what Pods may ask of their node, by level and version.

Source: `k8s.io/pod-security-admission`, KEP-2579.
"""

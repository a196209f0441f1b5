"""The three kinds of patches that merge decoded JSON: `json_patch`, `merge_patch` and `strategic`.

All of them leave their arguments alone and share with them what they do not touch; errors are ApiErrors.
"""

"""Manifests and projects for operators, from their own Python files."""

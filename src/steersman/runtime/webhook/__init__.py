"""Webhooks of an operator: admission (validating, mutating) and conversion, and the server that they stand on."""

"""Structural schemas of custom resources: pruning, defaulting and validation as the API server does them."""

from steersman.apimachinery.schema.embedded import SchemaDecodeError
from steersman.apimachinery.schema.pipeline import SchemaPipeline, compile_schema

__all__ = ["SchemaDecodeError", "SchemaPipeline", "compile_schema"]

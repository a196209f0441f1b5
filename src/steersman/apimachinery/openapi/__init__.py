"""OpenAPI documents of the API: built from what is served, as plain JSON values.

`crd_schemas` publishes the schemas of custom resources, `resources` and `routes` describe resources and their
operations once for both versions of OpenAPI, `v3` and `v2` write documents, `v2_protobuf` encodes the v2 document as
client-go wants it.
"""

"""etcd's messages as classes, made from the descriptors that `make stubs` compiles `rpc.proto` to.

Descriptors, unlike generated code, work with every version of the protobuf library.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "etcdserverpb"


def _classes() -> dict[str, Any]:
    compiled = resources.files(__package__).joinpath("rpc.binpb").read_bytes()
    [file] = descriptor_pb2.FileDescriptorSet.FromString(compiled).file
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = message_factory.GetMessageClassesForFiles([file.name], pool)
    return {name.removeprefix(f"{PACKAGE}."): cls for name, cls in found.items()}


_CLASSES = _classes()
KeyValue = _CLASSES["KeyValue"]
RangeRequest = _CLASSES["RangeRequest"]
RangeResponse = _CLASSES["RangeResponse"]
PutRequest = _CLASSES["PutRequest"]
DeleteRangeRequest = _CLASSES["DeleteRangeRequest"]
RequestOp = _CLASSES["RequestOp"]
Compare = _CLASSES["Compare"]
TxnRequest = _CLASSES["TxnRequest"]
TxnResponse = _CLASSES["TxnResponse"]
CompactionRequest = _CLASSES["CompactionRequest"]
CompactionResponse = _CLASSES["CompactionResponse"]
WatchRequest = _CLASSES["WatchRequest"]
WatchCreateRequest = _CLASSES["WatchCreateRequest"]
WatchProgressRequest = _CLASSES["WatchProgressRequest"]
WatchResponse = _CLASSES["WatchResponse"]
LeaseGrantRequest = _CLASSES["LeaseGrantRequest"]
LeaseGrantResponse = _CLASSES["LeaseGrantResponse"]
AuthenticateRequest = _CLASSES["AuthenticateRequest"]
AuthenticateResponse = _CLASSES["AuthenticateResponse"]
StatusRequest = _CLASSES["StatusRequest"]
StatusResponse = _CLASSES["StatusResponse"]
SnapshotRequest = _CLASSES["SnapshotRequest"]
SnapshotResponse = _CLASSES["SnapshotResponse"]

DELETE = 1
"""Event.EventType of a deletion."""
VERSION, MOD = 0, 2
"""Compare.CompareTarget: a key's version, its mod_revision."""
LESS = 2
"""Compare.CompareResult; EQUAL is what is meant without one."""

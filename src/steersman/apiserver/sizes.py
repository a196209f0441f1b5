"""How large an object may be in the store: as etcd has it, so that what fits here fits there.

Source: etcd `server/embed/config.go` (DefaultMaxRequestBytes), `server/etcdserver/v3_server.go` and
`client/v3/options.go`; the request that apiserver `pkg/storage/etcd3` makes of a write. Built-in kinds, which lie in
etcd in protobuf, are measured in JSON like all others.
"""

from __future__ import annotations

from steersman.apimachinery.errors import ApiError

MAX_REQUEST = 3 * 512 * 1024
"""Bytes of a write's request that etcd takes."""
_MAX_MESSAGE = 2 * 1024 * 1024
_LOG_HEAD = 17  # what etcd's log adds to a request


class TooLarge(ApiError):
    """What is to be stored is too large (500 without a reason, as upstream)."""


def check_size(key: bytes, value: bytes, expected: int) -> None:
    """Raise TooLarge for a value that etcd would not take under this key, which is at revision `expected`."""
    if len(value) < _MAX_MESSAGE // 2:
        return
    size = _request_size(len(key), len(value) + 1, expected)  # upstream's encoder adds a line feed
    if size > _MAX_MESSAGE:
        why = f"trying to send message larger than max ({size} vs. {_MAX_MESSAGE})"
        raise TooLarge(f"rpc error: code = ResourceExhausted desc = {why}")
    if size + _LOG_HEAD > MAX_REQUEST:
        raise TooLarge("etcdserver: request is too large")


def _request_size(key: int, value: int, expected: int) -> int:
    """The length of a transaction in protobuf: compare the revision, put; else read, if there is something."""
    compare = 2 + _field(key) + 1 + _varint(expected)
    size = _field(compare) + _field(_field(_field(key) + _field(value)))
    return size + _field(_field(_field(key))) if expected else size


def _field(length: int) -> int:
    return 1 + _varint(length) + length


def _varint(number: int) -> int:
    return max(1, (number.bit_length() + 6) // 7)

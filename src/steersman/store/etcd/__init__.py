"""A store in etcd; needs the extra `etcd` (hpack, protobuf).

It is spoken to with `steersman.net.grpc`, a client of our own: grpcio takes three times the processor time for a call.
"""

from steersman.store.etcd.settings import TLS, EtcdSettings, parse_url
from steersman.store.etcd.store import EtcdStore

__all__ = ["TLS", "EtcdSettings", "EtcdStore", "parse_url"]

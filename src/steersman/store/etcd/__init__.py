"""A store in etcd; needs the extra `etcd` (hpack, protobuf)."""

from steersman.store.etcd.settings import TLS, EtcdSettings, parse_url
from steersman.store.etcd.store import EtcdStore

__all__ = ["TLS", "EtcdSettings", "EtcdStore", "parse_url"]

"""How to reach a cluster: kubeconfig files, in-cluster service accounts, exec plugins."""

from steersman.client.config.credentials import Credentials, StaticCredentials, TokenFile
from steersman.client.config.load import in_cluster, load
from steersman.client.config.model import Config, Impersonation, Tls
from steersman.client.errors import ConfigError

__all__ = [
    "Config",
    "ConfigError",
    "Credentials",
    "Impersonation",
    "StaticCredentials",
    "Tls",
    "TokenFile",
    "in_cluster",
    "load",
]

"""Leader election: of several processes one works at a time, with any Kubernetes API, with or without a manager.

elector = LeaderElector(client, LeaseLock("myspace", "my-operator"))
await elector.run(work)                         # async def work(leadership): ...
"""

from steersman.runtime.leaderelection.elector import LeaderElector, default_identity
from steersman.runtime.leaderelection.gate import LeaderTransport
from steersman.runtime.leaderelection.leadership import Leadership, LeadershipLost
from steersman.runtime.leaderelection.locks import (
    ConfigMapLock,
    EndpointsLock,
    LeaseLock,
    Lock,
    MultiLock,
    ObjectLock,
    Observation,
    Place,
)
from steersman.runtime.leaderelection.metrics import ElectionMetrics
from steersman.runtime.leaderelection.record import UNKNOWN_LEADER, Record
from steersman.runtime.leaderelection.timing import Timing

__all__ = [
    "UNKNOWN_LEADER",
    "ConfigMapLock",
    "ElectionMetrics",
    "EndpointsLock",
    "LeaderElector",
    "LeaderTransport",
    "Leadership",
    "LeadershipLost",
    "LeaseLock",
    "Lock",
    "MultiLock",
    "ObjectLock",
    "Observation",
    "Place",
    "Record",
    "Timing",
    "default_identity",
]

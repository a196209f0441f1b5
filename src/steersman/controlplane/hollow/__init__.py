"""Hollow workloads: Deployments, StatefulSets, DaemonSets, Jobs and Pods progress although nothing runs, and budgets
count them.

Pods are placed on a node that is none, and report what their annotation `steersman.dev/hollow` says; everything above
them follows as on a cluster. Off by default: `--hollow-workloads`.
"""

from __future__ import annotations

from steersman.apiserver.core import Core
from steersman.client.client import Client
from steersman.controlplane.hollow.base import HollowController
from steersman.controlplane.hollow.daemonsets import DaemonSets
from steersman.controlplane.hollow.deployments import Deployments
from steersman.controlplane.hollow.disruptions import DisruptionBudgets
from steersman.controlplane.hollow.jobs import Jobs
from steersman.controlplane.hollow.pods import Pods
from steersman.controlplane.hollow.replicasets import ReplicaSets
from steersman.controlplane.hollow.statefulsets import StatefulSets

_ALL = (Pods, ReplicaSets, Deployments, StatefulSets, DaemonSets, Jobs, DisruptionBudgets)
NAMES = tuple(each.name for each in _ALL)


def hollow_controllers(client: Client, core: Core) -> list[HollowController]:
    """All of them."""
    return [make(client, core) for make in _ALL]

"""What every namespace has: the ServiceAccount `default`, and the ConfigMap `kube-root-ca.crt`.

Source: kubernetes `pkg/controller/serviceaccount/serviceaccounts_controller.go`,
`pkg/controller/certificates/rootcacertpublisher/publisher.go`.
"""

from __future__ import annotations

from typing import Any

from steersman.apimachinery.errors import AlreadyExists, Forbidden, NotFound
from steersman.apiserver.core import Core
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.watchcache import Change
from steersman.client.client import Client
from steersman.controlplane.queue import WorkQueue

Object = dict[str, Any]
ROOT_CA = "kube-root-ca.crt"
DESCRIPTION = "kubernetes.io/description"
_DESCRIBED = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class NamespaceContents:
    """Keeps one object of one kind in every active namespace; a subclass says which, and repairs it."""

    name = ""
    resource = ""
    object_name = ""

    def __init__(self, client: Client, core: Core) -> None:
        self._client = client
        self._namespaces = _scope(core, "namespaces")
        self._scope = _scope(core, self.resource)
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._sync)

    async def run(self) -> None:
        """Works until it is cancelled."""
        followed = ((self._namespaces, self._on_namespace), (self._scope, self._on_object))
        for scope, notify in followed:
            scope.cache.watchers.append(notify)
        for key in self._namespaces.cache.keys:
            self._queue.add(key)
        try:
            await self._queue.run()
        finally:
            for scope, notify in followed:
                scope.cache.watchers.remove(notify)

    def _on_namespace(self, change: Change) -> None:
        if (
            change.new is not None
            and self._scope.key(change.new.key, self.object_name) not in self._scope.cache.entries
        ):
            self._queue.add(change.new.key)

    def _on_object(self, change: Change) -> None:
        namespace, _, name = change.last.key.rpartition("/")
        if name == self.object_name:
            self._queue.add(namespace)

    async def _sync(self, namespace: str) -> None:
        entry = self._namespaces.cache.get(namespace)
        if entry is None or entry.decode()["status"].get("phase") != "Active":
            return
        found = self._scope.cache.get(self._scope.key(namespace, self.object_name))
        path = f"/api/v1/namespaces/{namespace}/{self.resource}"
        try:
            if found is None:
                await self._client.rest.json("POST", path, body=self.wanted())
            elif (repaired := self.repaired(found.decode())) is not None:
                await self._client.rest.json("PUT", f"{path}/{self.object_name}", body=repaired)
        except (AlreadyExists, NotFound, Forbidden):
            return

    def wanted(self) -> Object:
        """The object to create."""
        raise NotImplementedError

    def repaired(self, found: Object) -> Object | None:
        """The object to write over one that was changed; None when it is as it should be."""
        return None


class DefaultServiceAccounts(NamespaceContents):
    name = "serviceaccount-controller"
    resource = "serviceaccounts"
    object_name = "default"

    def wanted(self) -> Object:
        return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": self.object_name}}


class RootCertificates(NamespaceContents):
    """`ca` is the certificate (PEM) that verifies this server."""

    name = "root-ca-certificate-publisher-controller"
    resource = "configmaps"
    object_name = ROOT_CA

    def __init__(self, client: Client, core: Core, ca: bytes) -> None:
        super().__init__(client, core)
        self._data = {"ca.crt": ca.decode()}

    def wanted(self) -> Object:
        meta = {"name": self.object_name, "annotations": {DESCRIPTION: _DESCRIBED}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": self._data}

    def repaired(self, found: Object) -> Object | None:
        annotations = found["metadata"].get("annotations") or {}
        if found.get("data") == self._data and annotations.get(DESCRIPTION):
            return None
        meta = {**found["metadata"], "annotations": {**annotations, DESCRIPTION: _DESCRIBED}}
        return {**found, "metadata": meta, "data": self._data}


def _scope(core: Core, resource: str) -> ResourceScope:
    scope = core.catalog.look_up("", "v1", resource)
    assert scope is not None
    return scope

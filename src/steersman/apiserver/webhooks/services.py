"""Where a Service that a webhook stands behind can be reached.

Source: apiserver `pkg/util/proxy/proxy.go`, kube-aggregator `pkg/apiserver/resolvers.go`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from steersman._util.gotext import quote
from steersman.apiserver.strategy import Object

Address = tuple[str, int]
ServiceResolver = Callable[[str, str, int], Address]
"""From (namespace, name, port) to where to connect. Raises ServiceError."""
Find = Callable[[str, str, str], Object | None]
"""An object of the core group by resource, namespace and name."""


class ServiceError(Exception):
    """The Service leads nowhere."""


def known_services(
    addresses: Mapping[tuple[str, str], Address], find: Find, slices: Callable[[str, str], Iterator[Object]]
) -> ServiceResolver:
    """A resolver that knows some Services' addresses, and looks the others up in the API.

    A Service leads to its ExternalName, to a ready endpoint of its EndpointSlices (`slices` gives those of a namespace
    and Service), else to its cluster IP.
    """

    def resolve(namespace: str, name: str, port: int) -> Address:
        if (namespace, name) in addresses:
            return addresses[namespace, name]
        service = find("services", namespace, name)
        if service is None:
            raise ServiceError(f"service {quote(name)} not found")
        spec = service.get("spec") or {}
        if spec.get("type") == "ExternalName":
            return spec["externalName"], port
        found = next((item for item in spec.get("ports") or () if item.get("port") == port), None)
        if found is None:
            raise ServiceError(f"no service port {port} found for service {quote(name)}")
        endpoints = list(_endpoints(slices(namespace, name), found.get("name") or ""))
        if endpoints:
            return random.choice(endpoints)  # noqa: S311
        if spec.get("clusterIP") in (None, "", "None"):
            raise ServiceError('cannot route to service with ClusterIP "None"')
        return spec["clusterIP"], port

    return resolve


def _endpoints(slices: Iterator[Object], port_name: str) -> Iterator[Address]:
    for item in slices:
        for port in item.get("ports") or ():
            if (port.get("name") or "") != port_name or not port.get("port"):
                continue
            for endpoint in item.get("endpoints") or ():
                if _is_ready(endpoint):
                    yield endpoint["addresses"][0], port["port"]


def _is_ready(endpoint: Mapping[str, Any]) -> bool:
    return (endpoint.get("conditions") or {}).get("ready") is not False

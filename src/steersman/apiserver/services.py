"""What Services are given: cluster addresses and node ports, each to one Service at a time.

What is taken is what the stored Services have, so it outlives a restart; what a write in progress was given is held
until that write is stored or has failed.
Source: kubernetes `pkg/registry/core/service/{storage/alloc.go,ipallocator,portallocator}`.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable
from typing import Any

from steersman.api.core.service import carry_over, needs_health_check
from steersman.api.core.service_rules import address_errors, family_of, is_headless
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.errors import ApiError, Invalid, internal, invalid
from steersman.apimachinery.field_errors import FieldError
from steersman.apiserver.watchcache import Change, Entry, ResourceCache

Object = dict[str, Any]
Finish = Callable[[bool], None]
CLUSTER_RANGE = "10.0.0.0/24"
NODE_PORTS = range(30000, 32768)
RESERVED = 1
"""How many addresses at the start of the range are not given out: the first is the API server's own."""


class ServiceAllocator:
    """Gives out the addresses of a range (IPv4 or IPv6, one family) and node ports."""

    def __init__(self, cache: ResourceCache, cluster_range: str = CLUSTER_RANGE) -> None:
        self._network = ipaddress.ip_network(cluster_range)
        self._taken: dict[tuple[str, Any], int] = {}
        self._held: set[tuple[str, Any]] = set()
        self._random = random.Random()  # noqa: S311
        for entry in cache.entries.values():
            self._count(entry, 1)
        cache.watchers.append(self._on_change)

    @property
    def family(self) -> str:
        return f"IPv{self._network.version}"

    def begin(self, obj: Object, old: Object | None, dry_run: bool = False) -> Finish:
        """Complete a Service that is about to be written; raises Invalid for what cannot be given.

        What is returned is to be called once with whether the Service was stored. A dry run gets values that are
        nobody's, and may ask for ports outside the range.
        """
        spec = carry_over(obj.get("spec") or {}, (old or {}).get("spec") if old else None)
        kind = _Rehearsal if dry_run else _Allocation
        run = kind(self, obj["metadata"].get("name") or "", (old or {}).get("spec") or {})
        try:
            obj["spec"] = run.complete(spec)
        except ApiError:
            run.finish(False)
            raise
        return run.finish

    def take(self, kind: str, value: Any) -> bool:
        """Hold a value for a write in progress; False when it is another's."""
        item = (kind, value)
        if item in self._held or self._taken.get(item):
            return False
        self._held.add(item)
        return True

    def release(self, kind: str, value: Any) -> None:
        self._held.discard((kind, value))

    def contains(self, address: str) -> bool:
        """Whether a Service may ask for the address: those of the network itself and of its broadcast are nobody's."""
        network, wanted = self._network, ipaddress.ip_address(address)
        if wanted not in network or wanted == network.network_address:
            return False
        return network.version == 6 or wanted != network.broadcast_address

    def has_port(self, number: int) -> bool:
        """Whether a node port is another's now."""
        item = ("port", number)
        return item in self._held or bool(self._taken.get(item))

    @property
    def nobodys_address(self) -> str:
        return str(self._network.network_address)

    def next_address(self) -> str | None:
        """Any free address, held; None when there is none."""
        size = min(self._network.num_addresses, 1 << 20)
        last = size - 1 if self._network.version == 4 else size
        count = last - RESERVED - 1
        start = self._random.randrange(max(count, 1))
        for step in range(count):
            address = str(self._network[RESERVED + 1 + (start + step) % count])
            if self.take("ip", address):
                return address
        return None

    def next_port(self) -> int | None:
        """Any free node port, held; None when there is none."""
        start = self._random.randrange(len(NODE_PORTS))
        for step in range(len(NODE_PORTS)):
            port = NODE_PORTS[(start + step) % len(NODE_PORTS)]
            if self.take("port", port):
                return port
        return None

    def _on_change(self, change: Change) -> None:
        if change.old is not None:
            self._count(change.old, -1)
        if change.new is not None:
            self._count(change.new, 1)

    def _count(self, entry: Entry, step: int) -> None:
        for item in given_to(entry.decode()):
            left = self._taken.get(item, 0) + step
            if left > 0:
                self._taken[item] = left
            else:
                self._taken.pop(item, None)
            self._held.discard(item)


def given_to(service: Object) -> set[tuple[str, Any]]:
    """What a Service has been given: addresses, as ("ip", text), and node ports, as ("port", number)."""
    return _given(service.get("spec") or {})


def _given(spec: Object) -> set[tuple[str, Any]]:
    """What a Service has been given."""
    found = {("ip", address) for address in spec.get("clusterIPs") or () if address != "None"}
    found |= {("port", port["nodePort"]) for port in spec.get("ports") or () if port.get("nodePort")}
    if spec.get("healthCheckNodePort"):
        found.add(("port", spec["healthCheckNodePort"]))
    return found


def _stays_dual(spec: Object, old: Object) -> bool:
    """Whether a Service that prefers two families is left as it is, whatever the cluster has now."""
    return (
        spec.get("ipFamilyPolicy") == "PreferDualStack"
        and old.get("ipFamilyPolicy") in (None, "PreferDualStack")
        and all((spec.get(key) or None) == (old.get(key) or None) for key in ("type", "clusterIPs", "ipFamilies"))
    )


class _Allocation:
    """One Service's share: what was taken for it is given back unless it is stored."""

    def __init__(self, allocator: ServiceAllocator, name: str, old: Object) -> None:
        self._allocator = allocator
        self._name = name
        self._old = old
        self._own = _given(old)
        self._taken: list[tuple[str, Any]] = []

    def finish(self, stored: bool) -> None:
        if not stored:
            for kind, value in self._taken:
                self._allocator.release(kind, value)

    def complete(self, spec: Object) -> Object:
        out = dict(spec)
        if out.get("type") != "ExternalName":
            if not _stays_dual(out, self._old) and (errors := self._families(out)):
                raise self._invalid(errors)
            if self._old.get("type") in (None, "ExternalName"):  # else it has what it needs, and keeps it
                self._addresses(out)
        if out.get("type") in ("NodePort", "LoadBalancer"):
            self._node_ports(out)
        if needs_health_check(out):
            self._health_port(out)
        return out

    def _invalid(self, errors: list[FieldError]) -> Invalid:
        return invalid("", "Service", self._name, errors)

    def _families(self, spec: Object) -> list[FieldError]:
        """ipFamilies and ipFamilyPolicy, which follow from the addresses and from what the cluster has."""
        family, dual_headless = self._allocator.family, is_headless(spec) and not spec.get("selector")
        policy = spec.get("ipFamilyPolicy")
        if policy is None:
            policy = self._old.get("ipFamilyPolicy") or ("RequireDualStack" if dual_headless else "SingleStack")
            spec["ipFamilyPolicy"] = policy
        if errors := address_errors(spec, self._old):
            return errors
        errors = self._released(spec, policy) + self._too_many(spec, policy)
        families = list(spec.get("ipFamilies") or ())
        several = [address for address in spec.get("clusterIPs") or () if address != "None"]
        for index, address in enumerate(several):
            if index >= len(families):
                families.append(family_of(address))
                if families[-1] != family:
                    text = f"{families[-1]} is not configured on this cluster"
                    errors.append(fe.invalid(f"spec.clusterIPs[{index}]", several, text))
        if errors:
            return errors
        families = families or [family]
        if dual_headless:
            if len(families) < 2 and policy != "SingleStack":
                families.append("IPv6" if families[0] == "IPv4" else "IPv4")
        else:
            if policy == "RequireDualStack":
                text = "this cluster is not configured for dual-stack services"
                errors.append(fe.invalid("spec.ipFamilyPolicy", policy, text))
            for index, wanted in enumerate(families):
                if wanted != family:
                    errors.append(fe.invalid(f"spec.ipFamilies[{index}]", wanted, "not configured on this cluster"))
        spec["ipFamilies"] = families
        return errors

    def _released(self, spec: Object, policy: str) -> list[FieldError]:
        """What an update to one family lets go; with another policy nothing may be left out."""
        errors = []
        for key, what in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
            given, before = spec.get(key) or [], self._old.get(key) or []
            if policy == "SingleStack":
                if given == before and len(given) > 1:
                    spec[key] = given[:1]
            elif given and len(given) < len(before):
                text = f"must be 'SingleStack' to release the secondary {what}"
                errors.append(fe.invalid("spec.ipFamilyPolicy", policy, text))
        return errors

    @staticmethod
    def _too_many(spec: Object, policy: str) -> list[FieldError]:
        errors = []
        text = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
        for key, what in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")):
            if policy == "SingleStack" and len(spec.get(key) or ()) == 2:
                errors.append(fe.invalid("spec.ipFamilyPolicy", policy, text.format(what)))
        return errors

    def _addresses(self, spec: Object) -> None:
        if is_headless(spec):
            return
        given = list(spec.get("clusterIPs") or ())
        if given:
            for address in given:
                self._take_address(address, given)
            return
        address = self._any_address()
        spec["clusterIP"], spec["clusterIPs"] = address, [address]

    def _any_address(self) -> str:
        address = self._allocator.next_address()
        if address is None:
            raise internal("failed to allocate a serviceIP: range is full")
        self._taken.append(("ip", address))
        return address

    def _take_address(self, address: str, given: list[str]) -> None:
        if ("ip", address) in self._own:
            return
        problem = ""
        if not self._allocator.contains(address):
            problem = "the provided network does not match the current range"
        elif not self._allocator.take("ip", address):
            problem = "provided IP is already allocated"
        if problem:
            text = f"failed to allocate IP {address}: {problem}"
            raise self._invalid([fe.invalid("spec.clusterIPs", given, text)])
        self._taken.append(("ip", address))

    def _node_ports(self, spec: Object) -> None:
        """A node port for each port. In a new Service, ports of one number, such as TCP and UDP 53, share theirs."""
        wanted = spec["type"] == "NodePort" or spec.get("allocateLoadBalancerNodePorts") is not False
        created, asked, given = not self._old, dict[int, int](), set[tuple[int, int]]()
        for port in spec.get("ports") or () if created else ():
            if port.get("nodePort"):
                asked.setdefault(port.get("port") or 0, port["nodePort"])
        ports = []
        for index, port in enumerate(spec.get("ports") or ()):
            own = port.get("port") or 0 if created else 0
            number = port.get("nodePort") or (asked.get(own) if wanted else 0)
            if number and (own, number) not in given:
                self._take_port(number, f"spec.ports[{index}].nodePort")
            elif wanted and not number:
                number = self._any_port()
                if created:
                    asked[own] = number
            given.add((own, number or 0))
            ports.append({**port, "nodePort": number} if number else port)
        spec["ports"] = ports

    def _take_port(self, number: int, field: str) -> None:
        problem = "" if ("port", number) in self._own else self._port_problem(number)
        if problem:
            raise self._invalid([fe.invalid(field, number, problem)])

    def _port_problem(self, number: int) -> str:
        """Why the port cannot be taken; "" when it is taken now."""
        if number not in NODE_PORTS:
            valid = f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
            return f"provided port is not in the valid range. The range of valid ports is {valid}"
        if not self._allocator.take("port", number):
            return "provided port is already allocated"
        self._taken.append(("port", number))
        return ""

    def _any_port(self) -> int:
        port = self._allocator.next_port()
        if port is None:
            raise internal("failed to allocate a nodePort: range is full")
        self._taken.append(("port", port))
        return port

    def _health_port(self, spec: Object) -> None:
        number = spec.get("healthCheckNodePort")
        if not number:
            spec["healthCheckNodePort"] = self._any_port()
        elif number != self._old.get("healthCheckNodePort") and (problem := self._port_problem(number)):
            raise internal(f"failed to allocate requested HealthCheck NodePort {number}: {problem}")


class _Rehearsal(_Allocation):
    """A dry run's share: upstream gives it the network's own address, and ports above the range, counted up."""

    def _any_address(self) -> str:
        return self._allocator.nobodys_address

    def _any_port(self) -> int:
        asked = [number for kind, number in self._taken if kind == "port"]
        self._taken.append(("port", max(asked, default=NODE_PORTS.stop) + 1))
        return int(self._taken[-1][1])

    def _port_problem(self, number: int) -> str:
        if ("port", number) in self._taken or self._allocator.has_port(number):
            return "provided port is already allocated"
        self._taken.append(("port", number))
        return ""

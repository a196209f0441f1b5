"""What is put under load: servers, etcd if they share one, candidates and an operator, and the network between them."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults.network import Network
from faults.processes import EtcdMember, Knobs, Process, Server, Serving, compiled_shim
from faults.relays import Relays
from steersman.controlplane.kubeconfig import kubeconfig

TOKEN = "admintoken"
CLIENTS = "clients"
_PEER_PORT = 2380


@dataclass(frozen=True)
class Shape:
    """What a cluster consists of. Without members of etcd there is one server, on SQLite."""

    members: int = 0
    servers: int = 1
    candidates: int = 2
    etcd: str = "etcd"
    server: Sequence[str] = (sys.executable, "-m", "steersman.cli")
    network: Callable[[], Network] = Relays

    def __post_init__(self) -> None:
        if self.servers != 1 and not self.members:
            raise ValueError("several servers need etcd")


@dataclass
class Cluster:
    """A running cluster, whose files are in `directory`."""

    shape: Shape
    directory: Path
    network: Network
    serving: Serving = field(default_factory=Serving)
    members: list[EtcdMember] = field(default_factory=list)
    servers: list[Server] = field(default_factory=list)
    kubeconfigs: list[Path] = field(default_factory=list)
    candidates: list[Process] = field(default_factory=list)
    operator: Process | None = None

    @property
    def processes(self) -> list[Process]:
        operator = [] if self.operator is None else [self.operator]
        return [*self.members, *self.servers, *self.candidates, *operator]

    @property
    def claims(self) -> Path:
        """Where candidates write down that they lead."""
        return self.directory / "claims"

    async def recover(self) -> None:
        """Wait until all run and are ready; what has died meanwhile is started again. Raises TimeoutError."""
        for member in self.members:
            await member.until_ready()
        for server in self.servers:
            await server.until_ready()
        for process in self.processes:
            await process.revive()


@asynccontextmanager
async def running(shape: Shape, directory: Path) -> AsyncIterator[Cluster]:
    """Start all but the clients, wait until they are ready, and kill them in the end."""
    async with AsyncExitStack() as stack:
        cluster = Cluster(shape, directory, await stack.enter_async_context(shape.network()))
        stack.push_async_callback(_end, cluster)
        cluster.members = await _members(cluster)
        for member in cluster.members:
            await member.start()
        for member in cluster.members:
            await member.until_ready()
        (directory / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n")
        library = compiled_shim(directory)
        for number in range(shape.servers):
            server = await _server(cluster, f"server{number}", library)
            cluster.servers.append(server)
            await server.start()
            await server.until_ready()
            cluster.kubeconfigs.append(await _kubeconfig(cluster, server))
        yield cluster


async def _end(cluster: Cluster) -> None:
    for process in cluster.processes:
        await process.kill()


async def start_roles(cluster: Cluster) -> None:
    """Start the candidates and the operator; each speaks to one server."""
    for number in range(cluster.shape.candidates):
        config = cluster.kubeconfigs[number % len(cluster.kubeconfigs)]
        cluster.candidates.append(_role(cluster, "candidate", number, config, str(cluster.claims)))
    cluster.operator = _role(cluster, "operator", 0, cluster.kubeconfigs[-1])
    for process in (*cluster.candidates, cluster.operator):
        await process.start()


def _role(cluster: Cluster, kind: str, number: int, kubeconfig: Path, *more: str) -> Process:
    argv = [sys.executable, "-m", f"faults.{kind}", str(kubeconfig), *more]
    path = os.pathsep.join(each for each in (str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH")) if each)
    return Process(f"{kind}{number}", argv, cluster.directory / f"{kind}{number}.log", {"PYTHONPATH": path})


async def _server(cluster: Cluster, name: str, library: Path | None) -> Server:
    directory, network = cluster.directory, cluster.network
    place = await network.place(name)
    [port] = free_ports(1)
    store = f"sqlite:///{directory}/store.db"
    if cluster.members:
        store = "etcd://" + ",".join([await network.way(name, member.name, member.port) for member in cluster.members])
    bind = "0.0.0.0" if place.prefix else place.host  # in a namespace there is nobody else
    argv = [
        *place.prefix,
        *cluster.shape.server,
        *("serve", "--store", store, "--bind-address", bind, "--secure-port", str(port)),
        *("--cert-dir", str(directory / "certs"), "--token-auth-file", str(directory / "tokens.csv")),
    ]
    knobs = None if library is None else Knobs(library, directory / f"{name}.knobs")
    env = {**place.env, **(knobs.env if knobs else {})}
    log = directory / f"{name}.log"
    return Server(name, argv, log, env, host=place.host, port=port, knobs=knobs, serving=cluster.serving)


async def _kubeconfig(cluster: Cluster, server: Server) -> Path:
    """A file for clients of one server, whose certificate knows it as localhost, wherever it runs."""
    way = await cluster.network.way(CLIENTS, server.name, server.port)
    path = cluster.directory / f"{server.name}.kubeconfig"
    ca = (cluster.directory / "certs" / "ca.crt").read_bytes()
    content: Any = kubeconfig(f"https://{way}", ca, TOKEN)
    content["clusters"][0]["cluster"]["tls-server-name"] = "localhost"
    path.write_text(json.dumps(content))
    return path


async def _members(cluster: Cluster) -> list[EtcdMember]:
    number = cluster.shape.members
    ports = free_ports(2 * number)
    places = [await cluster.network.place(f"etcd{each}", ports[number + each]) for each in range(number)]
    peers = [_PEER_PORT if place.prefix else ports[number + each] for each, place in enumerate(places)]
    initial = ",".join(f"etcd{each}=http://{place.name}:{_PEER_PORT}" for each, place in enumerate(places))
    members = []
    for each, place in enumerate(places):
        name, data, log = f"etcd{each}", cluster.directory / f"etcd{each}", cluster.directory / f"etcd{each}.log"
        client, address = f"http://{place.host}:{ports[each]}", f"http://{place.name}:{_PEER_PORT}"
        argv = [
            *place.prefix,
            *(cluster.shape.etcd, f"--name={name}", f"--data-dir={data}", f"--initial-cluster={initial}"),
            *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}"),
            *(f"--listen-peer-urls=http://{place.host}:{peers[each]}", f"--initial-advertise-peer-urls={address}"),
            *("--heartbeat-interval=50", "--election-timeout=500", "--snapshot-count=2000"),
        ]
        member = EtcdMember(name, argv, log, place.env, host=place.host, port=ports[each], address=address, data=data)
        members.append(member)
    return members


def free_ports(number: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()

"""What is put under load: servers, etcd if they share one, candidates and an operator, and the network between them."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from faults.network import Network
from faults.processes import EtcdMember, Knobs, Process, Server, Serving, compiled_shim
from steersman.controlplane.kubeconfig import write_kubeconfig

TOKEN = "admintoken"
CLIENTS = "clients"


@dataclass(frozen=True)
class Shape:
    """What a cluster consists of. Without members of etcd there is one server, on SQLite."""

    members: int = 0
    servers: int = 1
    candidates: int = 2
    etcd: str = "etcd"
    server: Sequence[str] = (sys.executable, "-m", "steersman.cli")

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
        cluster = Cluster(shape, directory, await stack.enter_async_context(Network()))
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
    directory = cluster.directory
    [port] = free_ports(1)
    store = f"sqlite:///{directory}/store.db"
    if cluster.members:
        ports = [await cluster.network.relay(name, member.name, member.port) for member in cluster.members]
        store = "etcd://" + ",".join(f"127.0.0.1:{port}" for port in ports)
    argv = [
        *cluster.shape.server,
        *("serve", "--store", store, "--secure-port", str(port)),
        *("--cert-dir", str(directory / "certs"), "--token-auth-file", str(directory / "tokens.csv")),
    ]
    knobs = None if library is None else Knobs(library, directory / f"{name}.knobs")
    env = knobs.env if knobs else {}
    return Server(name, argv, directory / f"{name}.log", env, port=port, knobs=knobs, serving=cluster.serving)


async def _kubeconfig(cluster: Cluster, server: Server) -> Path:
    port = await cluster.network.relay(CLIENTS, server.name, server.port)
    path = cluster.directory / f"{server.name}.kubeconfig"
    ca = (cluster.directory / "certs" / "ca.crt").read_bytes()
    write_kubeconfig(path, f"https://127.0.0.1:{port}", ca, TOKEN)
    return path


async def _members(cluster: Cluster) -> list[EtcdMember]:
    number = cluster.shape.members
    ports = free_ports(2 * number)
    clients, peers = ports[:number], ports[number:]
    # Not loopback's, which Go's programs do not use a proxy for; nothing has to be there.
    hosts = [f"198.18.0.{each + 1}" for each in range(number)]
    targets = {host: (f"etcd{each}", peers[each]) for each, host in enumerate(hosts)}
    initial = ",".join(f"etcd{each}=http://{host}:2380" for each, host in enumerate(hosts))
    members = []
    for each, host in enumerate(hosts):
        name, data = f"etcd{each}", cluster.directory / f"etcd{each}"
        socks = await cluster.network.socks(name, targets)
        client = f"http://127.0.0.1:{clients[each]}"
        argv = [
            *(cluster.shape.etcd, f"--name={name}", f"--data-dir={data}", f"--initial-cluster={initial}"),
            *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}"),
            f"--listen-peer-urls=http://127.0.0.1:{peers[each]}",
            f"--initial-advertise-peer-urls=http://{host}:2380",
            *("--heartbeat-interval=50", "--election-timeout=500", "--snapshot-count=2000"),
        ]
        env = {"HTTP_PROXY": f"socks5://127.0.0.1:{socks}"}
        log = cluster.directory / f"{name}.log"
        members.append(EtcdMember(name, argv, log, env, port=clients[each], address=f"http://{host}:2380", data=data))
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


async def settled(cluster: Cluster) -> None:
    """Wait until the cluster has recovered and stays so for a moment."""
    await cluster.recover()
    await asyncio.sleep(0.5)
    await cluster.recover()

"""The pytest plugin: an API server for each test, or a namespace of a real cluster.

    def test_scales(apiserver):
        apiserver.load("crds/")
        apiserver.kube.create({...})
        eventually(lambda: ...)

With `--kubeconfig=FILE` the same tests run against that cluster, each in a namespace of its own.

A test with `@pytest.mark.explore` runs many times, each time with another interleaving of what its clients, operators
and the server send each other. `steersman.testing.explore` says how; it is loaded with the first such test.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Generator, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from steersman.client.client import Client
    from steersman.client.sync import SyncClient
    from steersman.testing.apiserver import ApiServer

_OPTIONS = ("--kubeconfig", "--kube-context", "--explore-runs", "--explore-seed", "--explore-replay")
_SERVER = pytest.StashKey["ApiServer"]()
STORY = pytest.StashKey[str]()
"""What happened in the run that an explored test is reported for."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("steersman")
    group.addoption("--kubeconfig", metavar="FILE", help="run tests with an API server against this cluster instead")
    group.addoption("--kube-context", metavar="NAME", help="the context of the kubeconfig to use")
    group.addoption("--explore-runs", metavar="N", type=int, help="how many interleavings to run of each explored test")
    group.addoption("--explore-seed", metavar="N", type=int, help="which interleavings these are")
    group.addoption("--explore-replay", metavar="SCHEDULE", help="run this one, as a failure has told it, and no other")
    parser.addini("apiserver_load", "manifests that each API server starts with: files or directories", "paths")


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Refuse `--kubeconfig FILE`: before pytest knows the options of its plugins, it takes the file for a path of
    tests, looks for its configuration beside it, and has lost the project's own."""
    given = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *early_config.invocation_params.args]
    for option, value in pairwise(map(str, given)):
        if option in _OPTIONS and Path(value).exists():
            raise pytest.UsageError(f"write {option}={value}, with an equals sign: pytest takes {value} for tests else")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse options that no test could follow, once and not in each test."""
    if hasattr(session.config, "workerinput"):
        return  # one of pytest-xdist's; its controller has looked
    option = session.config.getoption
    runs = option("--explore-runs")
    if runs is not None and runs < 1:
        raise pytest.UsageError(f"--explore-runs is at least 1, not {runs}")
    if option("--explore-replay") is not None:
        from steersman.testing.explore.plugin import parsed

        parsed(option("--explore-replay"))
    if option("--kubeconfig") is not None or option("--kube-context") is not None:
        from steersman.testing.cluster import problem_of

        if problem := problem_of(option("--kubeconfig"), option("--kube-context")):
            raise pytest.UsageError(problem)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "apiserver(*load, config=None): what the test's API server starts with, and how it is configured"
    )
    config.addinivalue_line(
        "markers",
        "explore(runs=200, seed=0, delay=5.0, breaks=()): run an async test under many interleavings",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that are explored run in a way of their own."""
    if any(item.get_closest_marker("explore") for item in items):
        from steersman.testing.explore.plugin import take_over

        for item in items:
            take_over(item)


@pytest.fixture
def apiserver(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[ApiServer]:
    """An API server for this test: empty, in this process, gone afterwards; an `ApiServer`.

    The mark `@pytest.mark.apiserver("crds/", config=ServerConfig(...))` and the ini option `apiserver_load` say what it
    starts with. (pytest takes a single class in a mark for what is marked: pass model classes to `apiserver.load`.)
    With `--kubeconfig` it is a namespace of that cluster.
    """
    from steersman.testing.apiserver import fresh_server

    kubeconfig, context = (request.config.getoption(name) for name in ("--kubeconfig", "--kube-context"))
    marks = list(request.node.iter_markers("apiserver"))
    chosen = next((mark.kwargs["config"] for mark in marks if mark.kwargs.get("config") is not None), None)
    if chosen is not None:
        from steersman.apiserver.server import ServerConfig

        if not isinstance(chosen, ServerConfig):
            pytest.fail(f"the mark's config is a steersman.apiserver.server.ServerConfig, not {chosen!r}", False)
    if kubeconfig is not None or context is not None:
        from steersman.testing.cluster import cluster_namespace

        manager = cluster_namespace(tmp_path, kubeconfig, context)
    elif request.node.get_closest_marker("explore"):
        from steersman.testing.explore.server import explored_server

        manager = explored_server(tmp_path, server=chosen)
    else:
        manager = fresh_server(tmp_path, server=chosen)
    with manager as server:
        request.node.stash[_SERVER] = server
        sources = [*request.config.getini("apiserver_load"), *(item for mark in reversed(marks) for item in mark.args)]
        root = request.config.rootpath
        server.load(*(root / source if isinstance(source, str) else source for source in sources))
        yield server


@pytest.fixture
def kube(apiserver: ApiServer) -> SyncClient:
    """A blocking client of the test's API server, as administrator."""
    return apiserver.kube


@pytest.fixture
def kube_client(apiserver: ApiServer) -> Callable[..., Client]:
    """Makes async clients of the test's API server: `async with kube_client() as client`."""
    return apiserver.client


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails tells what its API server was asked."""
    report = yield
    server = item.stash.get(_SERVER, None)
    if report.when == "call" and report.failed and server is not None and server.timeline is not None:
        text = server.timeline.text()
        if text:
            report.sections.append(("Requests to the API server", text))
    if report.when == "call" and STORY in item.stash:
        report.sections.append(("The interleaving", item.stash[STORY]))
    return report


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """What keeps an object from being like another, a line for each field."""
    import sys

    matching = sys.modules.get("steersman.testing.matching")
    if matching is None or op != "==":
        return None
    for actual, expected in ((left, right), (right, left)):
        if isinstance(expected, matching.Like):
            return ["the object is not like that:", *matching.differences(actual, expected)]
    return None

"""`steersman run`: an operator from a Python file."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steersman.runtime.manager import Manager


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `run` to the subcommands."""
    parser = commands.add_parser(
        "run",
        help="run an operator",
        description="Run the Manager that a Python file makes, until SIGTERM or SIGINT. Options take the place of what "
        "the file says. Exit status: 0 after a signal, 1 if the operator cannot start or fails.",
    )
    add = parser.add_argument
    add("file", metavar="FILE[:NAME]", help="the file, and the name of the Manager in it if there are several")
    add("--kubeconfig", metavar="FILE", help="how to reach the cluster; found as kubectl finds it by default")
    add("--context", metavar="NAME", help="the context of the kubeconfig to use")
    add("--health", metavar="ADDRESS", help="serve /healthz and /readyz, as on 127.0.0.1:8081 or :8081")
    add("--metrics", metavar="ADDRESS", help="serve /metrics there")
    add("--no-leader-election", action="store_true", help="work alone, whatever the file says")
    add("--log-format", choices=("text", "json"), default="text", help="one line a message, as text (default) or JSON")
    add("-v", "--verbosity", type=int, default=0, metavar="LEVEL", help="1 shows each reconcile, 4 libraries, too")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the operator. Returns the exit status."""
    from steersman._util.logs import configure

    configure(options.log_format, options.verbosity)
    path, _, name = options.file.partition(":")
    try:
        manager = _manager(_load(Path(path)), name)
    except UsageError as error:
        return _fail(str(error))
    from steersman.apimachinery.errors import ApiError
    from steersman.client.config.load import load
    from steersman.client.errors import ClientError
    from steersman.net.listen import ListenError
    from steersman.runtime.cache.cache import CacheSyncError
    from steersman.runtime.leaderelection import LeadershipLost

    try:
        if options.kubeconfig or options.context:
            manager.configure(config=load(options.context, options.kubeconfig))
        manager.configure(health=options.health, metrics=options.metrics)
        if options.no_leader_election:
            manager.election = None
        manager.run()
    except (ApiError, ClientError, CacheSyncError, ListenError, LeadershipLost, ValueError) as error:
        return _fail(str(error))
    return 0


class UsageError(Exception):
    """What is wrong with the file."""


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{path} is not a file")
    # operator.py is a good name for an operator, and the name of a module of Python's.
    name = path.stem if path.stem not in sys.modules and path.stem not in sys.stdlib_module_names else "steersman_main"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    # What lies beside it can be imported, and pydantic finds the module of its classes.
    sys.path.append(str(path.resolve().parent))
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _manager(module: ModuleType, name: str) -> Manager:
    from steersman.runtime.manager import Manager

    found = {key: value for key, value in vars(module).items() if isinstance(value, Manager)}
    if name:
        if name not in found:
            raise UsageError(f"{module.__name__} has no Manager called {name!r}")
        return found[name]
    managers = list({id(manager): manager for manager in found.values()}.values())
    if len(managers) != 1:
        hint = (
            "make one: manager = steersman.Manager(...)" if not managers else f"name one of {', '.join(sorted(found))}"
        )
        raise UsageError(f"{module.__name__} has {len(managers) or 'no'} Managers: {hint}")
    return managers[0]


def _fail(message: str) -> int:
    print(f"steersman run: {message}", file=sys.stderr)
    return 1

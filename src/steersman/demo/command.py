"""The command: its options, and the order of events from an empty directory to a counted result."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from steersman._util.commandline import explain
from steersman.demo.screen import Screen
from steersman.demo.server import DemoError, DemoServer
from steersman.net.loop import on_signals

if TYPE_CHECKING:
    from steersman.demo.race import Result

DATABASE = "demo.db"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `demo` to the subcommands."""
    parser = commands.add_parser(
        "demo",
        help="let concurrent writers race on one object, and see that no update is lost",
        description="Start a server on a new SQLite file, define MyApp, let writers race on one counter, and count. "
        "Each write that loses a race is shown, with who lost to whom on which field.",
    )
    add = parser.add_argument
    add("--writers", type=_positive, default=8, metavar="N", help="writers that race")
    add("--increments", type=_positive, default=25, metavar="N", help="what each writer adds, one at a time")
    add("--directory", type=Path, metavar="DIR", help="keep the database there (default: in a temporary directory)")
    add("--keep", action="store_true", help="leave the server up at the end, until Ctrl-C")
    explain(
        parser,
        _EXAMPLES,
        {0: "nothing was lost", 1: "something was, or the server could not start"},
        environment={"NO_COLOR": "show no colours"},
    )
    parser.set_defaults(run=run)


_EXAMPLES = (
    ("eight writers, 25 writes each", "steersman demo"),
    ("more of a fight, and a server to go on with", "steersman demo --writers 20 --increments 10 --keep"),
)


def run(options: argparse.Namespace) -> int:
    """Run the demonstration. Returns the exit status."""
    screen = Screen(sys.stdout)
    try:
        with ExitStack() as stack:
            directory = options.directory
            if directory is None:
                directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="steersman-demo-")))
            return asyncio.run(_demonstrate(options, _new(directory.absolute()), screen))
    except DemoError as error:
        Screen(sys.stderr).error(str(error))
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def _new(directory: Path) -> Path:
    """The directory, made if need be. Raises DemoError when it holds a database already."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if (directory / DATABASE).exists():
            raise DemoError(f"{directory / DATABASE} is there already: name another directory")
    except OSError as error:
        raise DemoError(f"{directory} cannot be used: {error.strerror}") from None
    return directory


async def _demonstrate(options: argparse.Namespace, directory: Path, screen: Screen) -> int:
    this = asyncio.current_task()
    assert this is not None
    on_signals("SIGTERM", "SIGHUP", call=this.cancel)  # whatever ends the demonstration, it stops its server
    screen.title(options.writers, options.increments)
    async with await DemoServer.start(directory, DATABASE) as server:
        # The client half takes a third of a second to load: the server starts meanwhile.
        _, race = await asyncio.gather(server.ready(), asyncio.to_thread(import_module, "steersman.demo.race"))
        screen.fact("server", f"{server.url}, ready in {server.started_in:.2f} s")
        screen.fact("store", f"sqlite:///{directory / DATABASE}")
        result: Result = await race.run(server.kubeconfig, options.writers, options.increments, screen)
        screen.verdict(result)
        if options.keep:
            await _keep(server, screen)
        else:
            screen.next_steps_after(directory if options.directory else None, DATABASE)
    return 0 if result.complete else 1


async def _keep(server: DemoServer, screen: Screen) -> None:
    """Wait for SIGINT or SIGTERM. Raises DemoError when the server ends by itself before."""
    stop = asyncio.Event()
    on_signals("SIGINT", "SIGTERM", call=stop.set)
    screen.next_steps_now(server.kubeconfig)
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await server.ended_or(stopped)
    finally:
        stopped.cancel()

"""`steersman envtest-assets`: what tests of operators in Go start instead of kube-apiserver, etcd and kubectl."""

from __future__ import annotations

import argparse
import platform
import shlex
import sys
from pathlib import Path

from steersman._util.commandline import explain
from steersman.apiserver.endpoints.health import KUBERNETES
from steersman.envtest.__main__ import PROGRAMS
from steersman.envtest.flags import known_flags
from steersman.net.pki import write_atomically

_MACHINES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64"}
_SCRIPT = """#!/bin/sh
# A stand-in, made by `steersman envtest-assets`.
{help}exec {python} -m steersman.envtest {program} "$@"
"""
# envtest asks for --help at each start, to see which flags there are: the script tells at once, by itself.
_HELP = """for argument; do
  case $argument in -h | --help)
    printf '%s\\n' {text}
    exit
    ;;
  esac
done
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "envtest-assets",
        help="write stand-ins for the programs that controller-runtime's envtest starts",
        description="Write kube-apiserver, etcd and kubectl into a directory: scripts that run this installation of "
        "steersman (kubectl: the one that is on the PATH). Tests that use envtest run on them, unchanged: "
        "KUBEBUILDER_ASSETS=DIR go test ./... What is printed is the directory that has the programs.",
    )
    parser.add_argument("directory", metavar="DIR", help="is made if it is not there; the programs are replaced")
    parser.add_argument(
        "--setup-envtest",
        action="store_true",
        help="write them where setup-envtest looks below DIR (its --bin-dir): k8s/VERSION-OS-ARCH",
    )
    explain(parser, _EXAMPLES, {0: "the programs are written", 1: "they cannot be"}, files=_FILES)
    parser.set_defaults(run=run)


_EXAMPLES = (
    (
        "run the tests of a kubebuilder project",
        'KUBEBUILDER_ASSETS="$(steersman envtest-assets bin/steersman)" go test ./...',
    ),
    ("where Makefiles of kubebuilder look, too", "steersman envtest-assets --setup-envtest bin"),
)
_FILES = {"DIR/kube-apiserver, DIR/etcd, DIR/kubectl": "the programs; each runs this installation of steersman"}


def run(options: argparse.Namespace) -> int:
    """Write the programs; prints the directory that is KUBEBUILDER_ASSETS. Returns the exit status."""
    directory = Path(options.directory)
    if options.setup_envtest:
        machine = platform.machine()
        directory /= f"k8s/{'.'.join(map(str, KUBERNETES))}-{sys.platform}-{_MACHINES.get(machine, machine)}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for program in PROGRAMS:
            write_atomically(directory / program, _script(program).encode(), 0o755)
    except OSError as error:
        print(f"steersman envtest-assets: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    print(directory.resolve())
    return 0


def _script(program: str) -> str:
    tells = ""
    if program != "kubectl":
        flags = "\n".join(f"  --{name}" for name in sorted(known_flags(program).names))
        tells = _HELP.format(text=shlex.quote(f"Usage: {program} [flags]\n\n{flags}"))
    return _SCRIPT.format(python=shlex.quote(sys.executable), program=program, help=tells)

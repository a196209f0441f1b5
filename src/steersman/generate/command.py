"""`steersman generate`: its subcommands, and where their output goes."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steersman._util.commandline import explain

if TYPE_CHECKING:
    from types import ModuleType

    from steersman.runtime.manager import Manager

Object = dict[str, Any]
_ABOUT = "Made by `steersman generate {0}`: change the operator, and make it again."
_QUANTITIES = ("cpu", "memory")
_STATUSES = {0: "it is made", 1: "it cannot be; stderr says why"}
_EXAMPLES = {
    "crd": [("the definitions of model classes", "steersman generate crd shop/models.py -o crds.yaml")],
    "models": [
        ("model classes of a definition", "steersman generate models crds/certificates.yaml -o certificates.py")
    ],
    "rbac": [("what an operator is allowed", "steersman generate rbac shop.operator | kubectl apply -f -")],
    "webhook": [("how the API server reaches webhooks", "steersman generate webhook operator.py --namespace shop")],
    "deploy": [
        (
            "all that a cluster needs, judged before it is applied",
            "steersman generate deploy operator.py --image registry.example.com/shop:1 | steersman validate -",
        ),
    ],
}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `generate` and its subcommands."""
    generate = commands.add_parser(
        "generate",
        help="make manifests of an operator, and models of definitions",
        description="Make of an operator's own code what a cluster must be told of it: the operator is loaded, not "
        "started, and no cluster is asked. And make model classes of definitions.",
    )
    below = generate.add_subparsers(dest="subcommand", required=True, metavar="SUBCOMMAND", title="commands")
    explain(generate, [each for examples in _EXAMPLES.values() for each in examples], _STATUSES)
    _add_crd(below)
    _add_models(below)
    _add_rbac(below)
    _add_webhook(below)
    _add_deploy(below)


def _parser(
    below: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    about: str,
    text: str,
    make: Callable[[argparse.Namespace], str],
) -> argparse.ArgumentParser:
    parser = below.add_parser(name, help=about, description=text)
    parser.add_argument("-o", "--output", metavar="FILE", help="write it to this file (default: to stdout)")
    explain(parser, _EXAMPLES[name], _STATUSES)
    parser.set_defaults(run=lambda options: _run(options, make))
    return parser


def _add_crd(below: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = (
        "Write the CustomResourceDefinitions of all model classes that files or modules have, decorated with "
        "@custom_resource. What is written has been judged by the server's own rules."
    )
    parser = _parser(below, "crd", "definitions of model classes", text, _crd)
    parser.add_argument("modules", nargs="+", metavar="FILE_OR_MODULE", help="such as models.py, or demo.models")
    parser.add_argument(
        "--conversion-service",
        metavar="NAMESPACE/NAME",
        type=_service,
        help="the Service of an operator that converts between versions, for definitions of several (default: none)",
    )
    parser.add_argument(
        "--kind", action="append", default=[], metavar="KIND", help="only this one; may be repeated (default: all)"
    )


def _add_models(below: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "Write a Python module with a model class for each kind that CustomResourceDefinitions define."
    parser = _parser(below, "models", "model classes of definitions", text, _models)
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file with definitions, or - for stdin")
    parser.add_argument(
        "--api-version",
        action="append",
        default=[],
        metavar="VERSION",
        help="this version; may be repeated (default: the stored one)",
    )


def _add_rbac(below: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = (
        "Write the ServiceAccount of an operator, its roles and their bindings: for what its controllers watch, what "
        "the code of its reconcilers writes, its leader election, its webhooks, and what manager.permissions() says."
    )
    _of_operator(_parser(below, "rbac", "what an operator is allowed", text, _rbac))


def _add_webhook(below: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "Write the configurations of an operator's webhooks, and the Service by which the API server reaches them."
    _of_operator(_parser(below, "webhook", "how an operator's webhooks are reached", text, _webhook))


def _add_deploy(below: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = (
        "Write all that it takes to run an operator in a cluster: Namespace, definitions, roles, Deployment, "
        "PodDisruptionBudget, and where it has webhooks, a Service and their configurations. The image's entry point "
        "is `steersman`, and the operator is found in it by the name that is given here."
    )
    parser = _parser(below, "deploy", "everything to run an operator in a cluster", text, _deploy)
    _of_operator(parser)
    add = parser.add_argument
    add("--image", required=True, type=_image, metavar="IMAGE", help="the operator's image")
    add(
        "--replicas",
        type=_number(0, 2**31 - 1),
        metavar="N",
        help="how many Pods (default: two where a leader is elected, else one)",
    )
    add("--no-crds", action="store_true", help="leave the definitions out: they are applied by themselves")
    add(
        "--metrics-port",
        type=_number(1, 65535),
        metavar="PORT",
        help="serve /metrics on this port of the Pods (default: nowhere)",
    )
    add(
        "--requests",
        metavar="cpu=50m,memory=128Mi",
        default={},
        type=_amounts,
        help="what a Pod asks for (default: as shown)",
    )
    add(
        "--limits",
        metavar="cpu=1,memory=256Mi",
        default={},
        type=_amounts,
        help="what it gets at most (default: as shown)",
    )


def _of_operator(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("operator", metavar="OPERATOR", help="FILE[:NAME] or MODULE[:NAME], as for steersman run")
    add("--name", metavar="NAME", type=_name, help="what it is called in the cluster (default: the Manager's name)")
    add("--namespace", metavar="NAMESPACE", type=_name, help="where it runs (default: NAME-system)")


def _run(options: argparse.Namespace, make: Callable[[argparse.Namespace], str]) -> int:
    from steersman.crdgen.errors import SchemaError
    from steersman.generate.errors import GenerateError, told
    from steersman.runtime.operator_file import OperatorFileError

    try:
        text = make(options)
        if options.output is None:
            sys.stdout.write(text)
        else:
            Path(options.output).write_text(text, encoding="utf-8")
    except (GenerateError, OperatorFileError, SchemaError, OSError) as error:
        print(f"steersman generate {options.subcommand}: {told(error)}", file=sys.stderr)
        return 1
    return 0


def _crd(options: argparse.Namespace) -> str:
    from steersman.crdgen.definition import crds_of, models
    from steersman.generate.errors import GenerateError
    from steersman.generate.webhooks import converted
    from steersman.runtime.operator_file import load_module

    found = dict.fromkeys(each for name in options.modules for each in models(load_module(name)))
    chosen = [each for each in found if not options.kind or each.api_kind().kind in options.kind]
    if missing := set(options.kind) - {each.api_kind().kind for each in chosen}:
        raise GenerateError(f"{', '.join(options.modules)}: there is no {', '.join(sorted(missing))}")
    if not chosen:
        raise GenerateError(f"{', '.join(options.modules)}: no class is decorated with @custom_resource")
    made = crds_of(chosen)
    if options.conversion_service is not None:
        several = {crd["metadata"]["name"] for crd in made if len(crd["spec"]["versions"]) > 1}
        made = converted(made, several, options.conversion_service)
    return _text("crd", made)


def _models(options: argparse.Namespace) -> str:
    from steersman.crdgen.modules import module_for
    from steersman.generate.definitions import read

    return module_for(read(options.files), versions=options.api_version)


def _rbac(options: argparse.Namespace) -> str:
    from steersman.generate.kinds import Kinds
    from steersman.generate.rbac import Identity, objects, permitted

    module, manager, name, namespace = _operator(options)
    identity = Identity(name, namespace)
    needs = permitted(manager, Kinds(module), identity)
    _tell(options, needs.notes)
    return _text("rbac", objects(needs.grants, identity))


def _webhook(options: argparse.Namespace) -> str:
    from steersman.generate.deployment import labels, selector
    from steersman.generate.errors import GenerateError
    from steersman.generate.kinds import Kinds
    from steersman.generate.webhooks import has_webhooks, registrations, service, service_of

    module, manager, name, namespace = _operator(options)
    if not has_webhooks(manager):
        raise GenerateError(f"{options.operator} has no webhooks")
    where = service_of(manager, name, namespace)
    made = [service(where, labels(name), selector(name)), *registrations(manager, Kinds(module), where)]
    return _text("webhook", made)


def _deploy(options: argparse.Namespace) -> str:
    from steersman.apimachinery.quantity import parse
    from steersman.generate.deploy import everything
    from steersman.generate.deployment import LIMITS, REQUESTS, Options
    from steersman.generate.errors import GenerateError

    module, manager, name, namespace = _operator(options)
    requests, limits = {**REQUESTS, **options.requests}, {**LIMITS, **options.limits}
    for key, amount in requests.items():
        if parse(limits[key]) < parse(amount):
            raise GenerateError(
                f"a Pod cannot ask for more than it gets: {key} {amount} of {limits[key]}; say --limits"
            )
    chosen = Options(
        name,
        namespace,
        options.image,
        options.operator,
        options.replicas,
        requests,
        limits,
        options.metrics_port,
        crds=not options.no_crds,
    )
    made, notes = everything(module, manager, chosen)
    _tell(options, notes)
    return _text("deploy", made)


def _operator(options: argparse.Namespace) -> tuple[ModuleType, Manager, str, str]:
    """The module, its Manager, and what it is called where in the cluster."""
    from steersman.generate.errors import GenerateError
    from steersman.runtime.operator_file import load_manager

    module, manager = load_manager(options.operator)
    name = options.name or manager.name
    if name is None:
        raise GenerateError("the Manager has no name: give it one, or pass --name")
    try:
        _name(name)
    except argparse.ArgumentTypeError as error:
        raise GenerateError(f"{error}: pass --name") from None
    return module, manager, name, options.namespace or f"{name}-system"


def _text(command: str, objects: Iterable[Object]) -> str:
    from steersman.generate.yaml_text import manifests

    return manifests(objects, _ABOUT.format(command))


def _tell(options: argparse.Namespace, notes: Iterable[str]) -> None:
    for note in notes:
        print(f"steersman generate {options.subcommand}: note: {note}", file=sys.stderr)


def _name(text: str) -> str:
    """What may be a namespace's and a Service's name: a DNS label."""
    if not re.fullmatch(r"[a-z]([-a-z0-9]{0,48}[a-z0-9])?", text):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be a name: at most 50 of a-z, 0-9 and -, a letter first")
    return text


def _service(text: str) -> tuple[str, str]:
    from steersman.runtime.webhook.setup import parse_service

    try:
        return parse_service(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _image(text: str) -> str:
    if not text or len(text.split()) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no image: write it as registry.example.com/demo:1")
    return text


def _number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch("-?[0-9]{1,18}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no number from {least} to {most}")
        return int(text)

    return read


def _amounts(text: str) -> dict[str, str]:
    from steersman.apimachinery.quantity import QuantityError, parse

    found = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if key not in _QUANTITIES or not equals or not value:
            raise argparse.ArgumentTypeError(f"{part!r} is no amount: write cpu=50m,memory=128Mi")
        try:
            if parse(value) < parse("0"):
                raise QuantityError
        except QuantityError:
            raise argparse.ArgumentTypeError(f"{part!r} is no amount: write cpu=50m,memory=128Mi") from None
        found[key] = value
    return found

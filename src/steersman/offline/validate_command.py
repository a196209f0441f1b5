"""`steersman validate`: its options, and what it prints."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence

import orjson

from steersman._util.commandline import explain
from steersman.offline.findings import Finding, count, tally
from steersman.offline.sources import read_texts
from steersman.offline.validate import Options, Verdict, validate

USAGE_STATUS = 2


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `validate` to the subcommands."""
    parser = commands.add_parser(
        "validate",
        help="tell what the API server would say of manifests, without one",
        description="Judge manifests (YAML or JSON, built-in kinds and custom resources) as the API server would. "
        "CustomResourceDefinitions among them, and those of --crd, define kinds; namespaces need not exist. Admission "
        "webhooks and policies are not asked. Each finding is a line with the place of its field.",
    )
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="a manifest, a directory of them (.json, .yaml, .yml), or - for stdin")
    add("--crd", action="append", default=[], metavar="PATH", help="definitions of more kinds; may be repeated")
    add("-R", "--recursive", action="store_true", help="go into the directories of directories, too")
    add("-n", "--namespace", default="default", metavar="NAME", help="of objects that do not say it (default: default)")
    add(
        "--field-validation",
        choices=("Strict", "Warn", "Ignore"),
        default="Strict",
        help="what unknown and duplicate fields are: errors (Strict), warnings, or nothing",
    )
    add("--ignore-missing-kinds", action="store_true", help="pass over objects of kinds that nobody defines")
    add("-o", "--output", choices=("text", "json"), default="text", help="a line for each finding, or JSON")
    explain(parser, _EXAMPLES, _STATUSES)
    parser.set_defaults(run=run)


_EXAMPLES = (
    ("all manifests of a directory, and below", "steersman validate -R deploy/"),
    ("a custom resource, by its definition", "steersman validate app.yaml --crd crds/myapp.yaml"),
    ("what another program makes, as JSON", "kubectl kustomize overlays/prod | steersman validate - -o json"),
)
_STATUSES = {0: "all are valid", 1: "some are not", 2: "something cannot be read, or the arguments are wrong"}


def run(options: argparse.Namespace) -> int:
    """Judge, and print the findings. Returns the exit status."""
    sources, unread = read_texts(options.files, recursive=options.recursive)
    definitions, unread_too = read_texts(options.crd, recursive=options.recursive)
    unread += unread_too
    chosen = Options(options.field_validation, options.ignore_missing_kinds, options.namespace)
    verdicts, wrong = asyncio.run(validate(sources, definitions, chosen))
    if options.output == "json":
        _print_json(verdicts, wrong)
    elif sources or definitions or not unread:
        _print_text(verdicts, wrong)
    for each in unread:
        print(f"steersman validate: {each.name} cannot be read: {each.why}", file=sys.stderr)
    if unread:
        return USAGE_STATUS
    return int(bool(wrong) or any(verdict.result == "invalid" for verdict in verdicts))


def _all(verdicts: Sequence[Verdict], wrong: Sequence[Finding]) -> list[Finding]:
    return [*wrong, *(finding for verdict in verdicts for finding in verdict.findings)]


def _numbers(verdicts: Sequence[Verdict]) -> dict[str, int]:
    return {result: sum(verdict.result == result for verdict in verdicts) for result in ("valid", "invalid", "skipped")}


def _print_text(verdicts: Sequence[Verdict], wrong: Sequence[Finding]) -> None:
    findings = _all(verdicts, wrong)
    for finding in findings:
        print(finding.text())
    numbers = _numbers(verdicts)
    parts = [f"{number} {result}" for result, number in numbers.items() if number or result == "valid"]
    told = tally(findings)
    print(f"{count(len(verdicts), 'manifest')}: {', '.join(parts)}{f' ({told})' if told else ''}")


def _print_json(verdicts: Sequence[Verdict], wrong: Sequence[Finding]) -> None:
    report = {
        "summary": {"manifests": len(verdicts), **_numbers(verdicts)},
        "findings": [finding.json() for finding in _all(verdicts, wrong)],
        "manifests": [verdict.json() for verdict in verdicts],
    }
    sys.stdout.write(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() + "\n")

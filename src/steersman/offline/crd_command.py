"""`steersman crd lint`: its options, and what it prints."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

import orjson

from steersman._util.commandline import explain
from steersman.api.apiextensions.lint.findings import Rule
from steersman.offline.findings import SEVERITIES, Finding, Severity, count, one_line, tally
from steersman.offline.lint import RULES, SERVERS, lint
from steersman.offline.sources import read_texts

USAGE_STATUS = 2


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `crd` and its subcommands."""
    crd = commands.add_parser(
        "crd",
        help="tell the author of a CustomResourceDefinition what to know of it",
        description="What authors of CustomResourceDefinitions need.",
    )
    below = crd.add_subparsers(dest="subcommand", required=True, metavar="SUBCOMMAND", title="commands")
    explain(crd, _EXAMPLES, _STATUSES)
    parser = below.add_parser(
        "lint",
        help="find what the server refuses, what surprises, and what breaks users",
        description="Find what the server would refuse in CustomResourceDefinitions, what surprises their users, and "
        "with --against, what breaks them. Each finding is a line with its place, and the name of its rule.",
    )
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="a file with definitions, a directory of them, or - for stdin")
    add(
        "--against",
        action="append",
        default=[],
        metavar="PATH",
        help="an earlier state, to find breaking changes; may be repeated",
    )
    add("-R", "--recursive", action="store_true", help="go into the directories of directories, too")
    add("--disable", action="append", default=[], metavar="RULE", help="leave a rule out; may be repeated")
    add("--fail-on", choices=SEVERITIES, default="error", help="from which severity on the exit status is 1")
    add("-o", "--output", choices=("text", "json"), default="text", help="a line for each finding, or JSON")
    explain(parser, _EXAMPLES, _STATUSES, more={"rules": {name: _told(rule) for name, rule in RULES.items()}})
    parser.set_defaults(run=run)


def _told(rule: Rule) -> str:
    return f"{rule.severity}: {rule.about}"


_EXAMPLES = (
    ("one definition", "steersman crd lint crds/myapp.yaml"),
    ("does a change break users?", "steersman crd lint crds/ --against released-crds/ --fail-on warning"),
    (
        "a definition of a cluster",
        "kubectl get crd myapps.myorg.io -o yaml | steersman crd lint - --disable unbounded-list",
    ),
)
_STATUSES = {
    0: "nothing is as bad as --fail-on says",
    1: "something is",
    2: "something cannot be read, or the arguments are wrong",
}


def run(options: argparse.Namespace) -> int:
    """Lint, and print the findings. Returns the exit status."""
    disabled = {name for text in options.disable for name in text.split(",")}
    if unknown := sorted(disabled - set(RULES)):
        print(f"steersman crd lint: no such rule: {', '.join(unknown)}; see steersman crd lint --help", file=sys.stderr)
        return USAGE_STATUS
    sources, unread = read_texts(options.files, recursive=options.recursive)
    against, unread_too = read_texts(options.against, recursive=options.recursive)
    report = asyncio.run(lint(sources, against))
    findings = [each for each in report.findings if each.reason not in disabled]
    findings.sort(key=lambda each: (each.file, each.document, each.line))
    _print_json(findings) if options.output == "json" else _print_text(findings, report.definitions)
    for each in (*unread, *unread_too):
        print(f"steersman crd lint: {each.name} cannot be read: {each.why}", file=sys.stderr)
    if unread or unread_too:
        return USAGE_STATUS
    return int(any(_rank(each.severity) >= _rank(options.fail_on) for each in findings))


def _rank(severity: Severity) -> int:
    return SEVERITIES.index(severity)


def _print_text(findings: list[Finding], definitions: int) -> None:
    for each in findings:
        about = each.about() if each.reason in SERVERS else each.message
        parts = [f"{each.file}:{each.line}", each.severity, *([each.name] if each.name else []), about]
        print(one_line(f"{': '.join(parts)} [{each.reason}]"))
    print(f"{count(definitions, 'definition')}: {tally(findings, always=True)}")


def _print_json(findings: list[Finding]) -> None:
    report = {"findings": [_json(each) for each in findings]}
    sys.stdout.write(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() + "\n")


def _json(finding: Finding) -> dict[str, Any]:
    found = finding.json()
    rule, field = found.pop("reason"), found.pop("field")
    return {"rule": rule, **found, "path": field}

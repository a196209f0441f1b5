"""Manifests as people read them: keys in the order they were given, texts of several lines as blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from steersman.apimachinery.codec.yaml_scalars import resolve


class _Dumper(yaml.SafeDumper):
    """Quotes every text that a reader of YAML 1.1 or 1.2, or kubectl, could take for something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    if "\n" in text and not any(line != line.rstrip() for line in text.split("\n")):
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")
    is_text = isinstance(resolve("", text), str)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_text else '"')


_Dumper.add_representer(str, _text)


def manifests(objects: Iterable[Mapping[str, Any]], header: str = "") -> str:
    """A YAML document for each object; `header` becomes a comment at the top."""
    documents = [
        yaml.dump(dict(obj), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 30) for obj in objects
    ]
    head = "".join(f"# {line}\n" for line in header.splitlines())
    return head + "".join(f"---\n{document}" for document in documents)

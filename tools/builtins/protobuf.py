"""Writes what the package knows of the protobuf form of built-in kinds: src/steersman/api/data/protobuf.json.

    python tools/builtins/protobuf.py MESSAGES

MESSAGES is a JSON object {message: {field: [number, type]}} of all generated.proto files of k8s.io/api, apimachinery,
apiextensions-apiserver and kube-aggregator. Run it after generate.py: the names in JSON come from types.json.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[2] / "src" / "steersman" / "api" / "data"
SCALARS = {"bool", "int32", "int64", "string", "bytes", "double"}
META = "apimachinery/pkg/apis/meta/v1"
SPECIAL = {  # messages whose form in JSON is no object of their fields
    f"{META}.Time": "time",
    f"{META}.MicroTime": "microtime",
    f"{META}.FieldsV1": "json",
    "apimachinery/pkg/api/resource.Quantity": "text",
    "apimachinery/pkg/runtime.RawExtension": "json",
    "apimachinery/pkg/util/intstr.IntOrString": "intorstring",
    "apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON": "json",
    "apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray": "either",
    "apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool": "either",
    "apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "either",
}
# Go's packages are named by path, protobuf's by dots and without hyphens.
PACKAGES = (("k8s.io.api.", "api/"), ("k8s.io.apimachinery.", "apimachinery/"))
PACKAGES += (("k8s.io.apiextensions_apiserver.", "apiextensions-apiserver/"),)
PACKAGES += (("k8s.io.kube_aggregator.", "kube-aggregator/"),)


def go_name(message: str) -> str:
    """`k8s.io.api.core.v1.Pod` -> `api/core/v1.Pod`."""
    for prefix, root in PACKAGES:
        if message.startswith(prefix):
            package, _, name = message.removeprefix(prefix).rpartition(".")
            return f"{root}{package.replace('.', '/')}.{name}"
    raise ValueError(message)


class Writer:
    """Collects the messages that are reachable from the kinds."""

    def __init__(self, messages: dict[str, Any], types: dict[str, Any]) -> None:
        self._messages = messages
        self._types = types
        self.result: dict[str, Any] = {}

    def reach(self, message: str) -> str:
        """The name under which a message is written; its fields are, too."""
        name = go_name(message)
        if name not in self.result:
            self.result[name] = {}
            self.result[name] = self._message(name, message)
        return name

    def _message(self, name: str, message: str) -> Any:
        fields = self._messages[message]
        if set(fields) == {"items"} and not isinstance(self._types.get(name), list):
            return ["list", self._fields(name, message)]
        if special := SPECIAL.get(name):
            return [special, self._fields(name, message)]
        return ["", self._fields(name, message)]

    def _fields(self, name: str, message: str) -> dict[str, list[str]]:
        package = message.rpartition(".")[0]
        fields = self._messages[message].items()
        return {
            str(number): [self._json_name(name, field, kind), self._kind(package, kind)]
            for field, (number, kind) in fields
        }

    def _kind(self, package: str, kind: str) -> str:
        if found := re.fullmatch(r"map<string, (.+)>", kind):
            return "map " + self._kind(package, found[1])
        if kind.startswith("repeated "):
            return "repeated " + self._kind(package, kind.removeprefix("repeated "))
        if kind in SCALARS:
            return kind
        return self.reach(kind[1:] if kind.startswith(".") else f"{package}.{kind}")

    def _json_name(self, struct: str, field: str, kind: str) -> str:
        """The field's name in JSON; "" for an embedded message, whose fields stand in its parent's place."""
        known = self._types.get(struct)
        if not isinstance(known, list) or SPECIAL.get(struct):
            return field
        names = [each[0] for each in known]
        hyphened = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", field).lower()
        for candidate in (field, "$" + field, hyphened):
            if candidate in names:
                return candidate
        if same := [each for each in names if each.lower() == field.lower()]:
            return same[0]
        if kind in SCALARS or kind.startswith(("repeated ", "map<")):
            raise ValueError(f"{struct} has no {field}")
        return ""


def kinds_of(kinds: list[dict[str, Any]]) -> dict[str, str]:
    """`group/version/Kind` of each resource's and subresource's kind: its Go package and name."""
    packages = {(each["group"], each["version"]): each["type"].rpartition(".")[0] for each in kinds}
    found = {f"{each['group']}/{each['version']}/{each['kind']}": each["type"] for each in kinds}
    for each in kinds:
        for sub in each["subresources"]:
            group, version = sub.get("group", each["group"]), sub.get("version", each["version"])
            if package := packages.get((group, version)):
                found.setdefault(f"{group}/{version}/{sub['kind']}", f"{package}.{sub['kind']}")
    return {
        **found,
        "/v1/DeleteOptions": f"{META}.DeleteOptions",
        "/v1/Status": f"{META}.Status",
        "meta.k8s.io/v1/PartialObjectMetadata": f"{META}.PartialObjectMetadata",
    }


def main(path: str) -> None:
    messages = json.loads(Path(path).read_text())
    by_go_name = {go_name(message): message for message in messages}
    writer = Writer(messages, json.loads((DATA / "types.json").read_text()))
    kinds = kinds_of(json.loads((DATA / "kinds.json").read_text()))
    written = {gvk: writer.reach(by_go_name[name]) for gvk, name in kinds.items() if name in by_go_name}
    content = {"kinds": written, "messages": dict(sorted(writer.result.items()))}
    (DATA / "protobuf.json").write_text(json.dumps(content, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])

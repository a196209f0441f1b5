"""Runs the command as its users do, but in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from steersman.cli import main


@dataclass
class Done:
    """What a command did. `lines` are those on stdout."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("validate", "a.yaml", ...)`, in `tmp_path`."""
    monkeypatch.chdir(tmp_path)

    def go(*arguments: str) -> Done:
        try:
            status = main(arguments)
        except SystemExit as ended:
            status = int(ended.code or 0)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Done(status, out, err)

    return go


CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.shop.example.com
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [size]
              properties:
                size: {type: integer, minimum: 1}
                colour: {type: string, enum: [red, blue]}
                parts:
                  type: array
                  items:
                    type: object
                    x-kubernetes-validations:
                      - {rule: self.low <= self.high, message: low is above high}
                    properties:
                      low: {type: integer}
                      high: {type: integer}
                    required: [low, high]
"""


def widget(name: str, spec: str, *more: str) -> str:
    """A Widget's manifest; its spec begins in line 6, or later with more lines in its metadata."""
    lines = ["apiVersion: shop.example.com/v1", "kind: Widget", "metadata:", f"  name: {name}", *more, "spec:"]
    return "\n".join([*lines, *(f"  {line}" for line in spec.splitlines())]) + "\n"

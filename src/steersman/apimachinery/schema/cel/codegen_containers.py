"""Lists, maps and messages as Python code.

Source: cel-go `interpreter/{interpretable,runtimecost}.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.ast import Entry, Expr, ListExpr, Literal, MapExpr, Message
from steersman.apimachinery.schema.cel.codegen import ExpressionWriter
from steersman.apimachinery.schema.cel.outlines import grouped
from steersman.apimachinery.schema.cel.values import map_key
from steersman.apimachinery.schema.cel.writer import Code

T = TypeVar("T")
LIST_COST, MAP_COST, MESSAGE_COST = 10, 30, 40


class ContainerWriter(ExpressionWriter):
    """Adds what is made of parts."""

    def container(self, expr: ListExpr | MapExpr | Message) -> Code:
        if isinstance(expr, ListExpr):
            return self.list(expr)
        return self.map(expr) if isinstance(expr, MapExpr) else self.message(expr)

    def parts(self, items: Sequence[T], size: Callable[[T], int], fill: Callable[[Sequence[T]], str]) -> list[str]:
        """What `fill` makes of items, in functions of their own if they are many."""
        groups = grouped(items, size)
        if len(groups) == 1:
            return [fill(items)]
        return [self.outline(lambda group=group: Code(fill(group), t.DYN)).text for group in groups]  # type: ignore[misc]

    def list(self, expr: ListExpr) -> Code:
        elements = list(enumerate(expr.elements))
        parts = self.parts(elements, lambda each: self.outlines.size(each[1]), partial(self.elements, expr.optional))
        self.charge(LIST_COST)
        text = parts[0] if len(parts) == 1 else f"[{', '.join(f'*{each}' for each in parts)}]"
        return Code(text if text.isidentifier() else self.let(text), expr.type)

    def elements(self, optional: frozenset[int], elements: Sequence[tuple[int, Expr]]) -> str:
        if not optional:
            return f"[{', '.join([self.write_value(each) for _, each in elements])}]"
        result = self.let("[]")
        for index, each in elements:
            text = self.write_value(each)
            if index in optional:
                self.raises = True
                self.emit(f"append_optional({result}, {text})")
            else:
                self.emit(f"{result}.append({text})")
        return result

    def map(self, expr: MapExpr) -> Code:
        code = Code(self.entries(expr.entries, self.entry), expr.type)
        self.charge(MAP_COST)
        return code

    def entries(self, entries: Sequence[Entry], write: Callable[[str, Entry], None]) -> str:
        """A dict of entries that `write` puts into it."""

        def fill(some: Sequence[Entry]) -> str:
            result = self.let("{}")
            for each in some:
                write(result, each)
            return result

        size = self.outlines.size
        parts = self.parts(
            entries, lambda each: size(each.value) + (size(each.key) if isinstance(each.key, Expr) else 0), fill
        )
        return parts[0] if len(parts) == 1 else self.let(f"{{{', '.join(f'**{each}' for each in parts)}}}")

    def message(self, expr: Message) -> Code:
        fields = self.entries(expr.fields, self.message_field)
        self.charge(MESSAGE_COST)
        self.raises = True
        make = f"build_message({expr.name!r}, {fields})"
        if expr.make is not None:
            make = f"{self.constant(expr.make, 'F')}({fields})"
        return Code(self.let(make), expr.type)

    def message_field(self, fields: str, field: Entry) -> None:
        text = self.write_value(field.value)
        store = f"set_optional({fields}, {field.key!r}, {text})" if field.optional else None
        self.emit(store or f"{fields}[{field.key!r}] = {text}")

    def entry(self, result: str, entry: Entry) -> None:
        key = self.write_value(entry.key)
        if isinstance(entry.key, Literal) and entry.key.value.__class__ is not bool:
            key = self.literal(map_key(entry.key.value), entry.key.type).text
        elif entry.key.type.kind != "string":
            key = f"map_key({key})"
            self.raises = True
        text = self.write_value(entry.value)
        if entry.optional:
            self.raises = True
            self.emit(f"set_optional({result}, {key}, {text})")
        else:
            self.emit(f"{result}[{key}] = {text}")

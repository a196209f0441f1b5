"""What a module's source says of a name: its signature, its docstring, its members. Nothing is run.

What is read is the source, not the running program, so that the text is the same with every version of Python.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Described:
    """A name: `kind` is class, function, method, property, attribute or value; `members` are a class's own."""

    name: str
    kind: str
    signature: str
    doc: str
    bases: tuple[str, ...] = ()
    members: tuple[Described, ...] = field(default=())


@cache
def _parsed(module: str) -> ast.Module:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise LookupError(f"no module {module}")
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


def describe(module: str, name: str) -> Described:
    """The name as it is defined in the module, or where the module has it from. Raises LookupError."""
    body = _parsed(module).body
    for number, node in enumerate(body):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return _class(node)
        if isinstance(node, Function) and node.name == name and not _is_overload(node):
            return _function(node, "function")
        if name in _targets(node):
            return Described(name, "value", _value(node), _text_after(body, number))
    for node in body:
        for source, original in _imports(node, module, name):
            return describe(source, original)
    raise LookupError(f"{module} has no {name}")


def module_doc(module: str) -> str:
    """The module's own docstring."""
    return ast.get_docstring(_parsed(module)) or ""


def names_in(module: str, value: str) -> list[str]:
    """The texts in a list or tuple that a module assigns to a name, as to `__all__`."""
    for node in _parsed(module).body:
        if value in _targets(node) and isinstance(node, ast.Assign):
            return list(ast.literal_eval(node.value))
    raise LookupError(f"{module} has no {value}")


def _imports(node: ast.stmt, module: str, name: str) -> Iterator[tuple[str, str]]:
    inner = node.body if isinstance(node, ast.If) else [node]
    for each in inner:
        if isinstance(each, ast.ImportFrom) and each.module and each.level == 0:
            for alias in each.names:
                if (alias.asname or alias.name) == name:
                    yield each.module, alias.name


def _targets(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        return [each.id for each in node.targets if isinstance(each, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def _value(node: ast.stmt) -> str:
    value = getattr(node, "value", None)
    return ast.unparse(value) if value is not None else ""


def _text_after(body: list[ast.stmt], number: int) -> str:
    """The string that stands below an assignment, and describes it; or below those that follow it."""
    for node in body[number + 1 :]:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return inspect.cleandoc(node.value.value)
        return ""
    return ""


def _is_overload(node: Function) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list)


def _decorators(node: ast.ClassDef | Function) -> list[str]:
    return [ast.unparse(each) for each in node.decorator_list]


def shown(head: str, arguments: Sequence[str], tail: str = "", width: int = 100) -> str:
    """A signature in one line, or with a line for each argument."""
    line = f"{head}({', '.join(arguments)}){tail}"
    if len(line) <= width:
        return line
    return "\n".join([f"{head}(", *(f"    {argument}," for argument in arguments), f"){tail}"])


def _arguments(given: ast.arguments) -> Iterator[str]:
    """Each argument as it is written in a definition, but for `self` and `cls`."""
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    for number, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        if number or argument.arg not in ("self", "cls"):
            yield _argument(argument, default)
        if given.posonlyargs and number == len(given.posonlyargs) - 1:
            yield "/"
    if given.vararg is not None:
        yield f"*{_argument(given.vararg, None)}"
    elif given.kwonlyargs:
        yield "*"
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _argument(argument, default)
    if given.kwarg is not None:
        yield f"**{_argument(given.kwarg, None)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    annotation = f": {ast.unparse(argument.annotation)}" if argument.annotation is not None else ""
    return f"{argument.arg}{annotation}{'' if default is None else f' = {ast.unparse(default)}'}"


def _function(node: Function, kind: str) -> Described:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    signature = shown(f"{prefix}{node.name}", list(_arguments(node.args)), returns.removesuffix(" -> None"))
    return Described(node.name, kind, signature, ast.get_docstring(node) or "")


def _class(node: ast.ClassDef) -> Described:
    bases = tuple(ast.unparse(base) for base in node.bases)
    made = next((each for each in node.body if isinstance(each, Function) and each.name == "__init__"), None)
    fields = _fields(node) if any("dataclass" in each for each in _decorators(node)) else None
    if made is not None:
        signature = shown(f"class {node.name}", list(_arguments(made.args)))
    elif fields is not None:
        only = ["*"] if any("kw_only=True" in each for each in _decorators(node)) else []
        signature = shown(f"class {node.name}", [*only, *fields])
    else:
        signature = f"class {node.name}"
    members = tuple(_members(node, made))
    return Described(node.name, "class", signature, ast.get_docstring(node) or "", bases, members)


def _fields(node: ast.ClassDef) -> list[str]:
    found = []
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and _is_public(each.target.id):
            default = "" if each.value is None else f" = {_default(each.value)}"
            found.append(f"{each.target.id}: {ast.unparse(each.annotation)}{default}")
    return found


def _default(node: ast.expr) -> str:
    """A default as a caller sees it: of `field(default_factory=list)` an empty list."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("field", "Field"):
        factory = next((each.value for each in node.keywords if each.arg == "default_factory"), None)
        if factory is not None:
            return f"{ast.unparse(factory)}()"
        default = next((each.value for each in node.keywords if each.arg == "default"), None)
        return "..." if default is None else ast.unparse(default)
    return ast.unparse(node)


def _members(node: ast.ClassDef, made: Function | None) -> Iterator[Described]:
    for number, each in enumerate(node.body):
        for name in _targets(each):
            annotation = ast.unparse(each.annotation) if isinstance(each, ast.AnnAssign) else ""
            if _is_public(name):
                default = "" if getattr(each, "value", None) is None else f" = {_default(each.value)}"  # type: ignore[attr-defined]
                yield Described(name, "attribute", f"{name}: {annotation}{default}", _text_after(node.body, number))
        if isinstance(each, Function) and _is_public(each.name) and not _is_overload(each):
            is_property = any(name.endswith("property") for name in _decorators(each))
            if is_property:
                returns = f": {ast.unparse(each.returns)}" if each.returns is not None else ""
                yield Described(each.name, "property", f"{each.name}{returns}", ast.get_docstring(each) or "")
            else:
                yield _function(each, "method")
    yield from _set_in(made)


def _set_in(made: Function | None) -> Iterator[Described]:
    """Attributes that the constructor sets, as far as a text below them says what they are."""
    body = made.body if made is not None else []
    for number, each in enumerate(body):
        target = each.targets[0] if isinstance(each, ast.Assign) else getattr(each, "target", None)
        if isinstance(target, ast.Attribute) and _is_public(target.attr) and (doc := _text_after(body, number)):
            annotation = f": {ast.unparse(each.annotation)}" if isinstance(each, ast.AnnAssign) else ""
            yield Described(target.attr, "attribute", f"{target.attr}{annotation}", doc)


def _is_public(name: str) -> bool:
    return not name.startswith("_")

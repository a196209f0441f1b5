"""What an operator's code calls, read from its source: enough to tell what a reconciler does with its context.

It follows the names that a function uses to the functions and classes behind them, as far as they are the operator's
own: of its package, or of none that is installed.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sysconfig
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_INSTALLED = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib"))
_CLIENTS = frozenset({"client", "live"})
_PACKAGES = frozenset({"site-packages", "dist-packages"})
_OURS = Path(__file__).resolve().parents[1]


def calls_of(func: Callable[..., Any]) -> frozenset[str]:
    """The names of all methods that a function, and what it uses of the operator's own code, calls.

    `ctx.apply(...)` gives "apply", but `ctx.client.patch(...)` "client.patch"; a function of steersman's that is used
    gives its name. Code whose source is not there gives nothing.
    """
    found: set[str] = set()
    seen: set[int] = set()
    waiting: list[Any] = [_plain(func)]
    home = _package(waiting[0])
    while waiting:
        each = waiting.pop()
        if id(each) in seen or not _is_own(each, home):
            continue
        seen.add(id(each))
        tree = _tree(each)
        if tree is not None:
            used = [_plain(use) for use in _used(tree, _names_of(each))]
            found.update(_called(tree), (use.__name__ for use in used if _is_steersmans(use)))
            waiting += used
    return frozenset(found)


def _plain(func: Any) -> Any:
    """The function or class that holds the code."""
    while True:
        if isinstance(func, functools.partial):
            func = func.func
        elif inspect.ismethod(func):
            owner = func.__self__
            return owner if isinstance(owner, type) else type(owner)
        elif (inner := getattr(func, "__wrapped__", None)) is not None and inner is not func:
            func = inner
        elif isinstance(func, type) or inspect.isfunction(func) or not callable(func):
            return func
        else:
            return type(func)


def _is_steersmans(each: Any) -> bool:
    return inspect.isfunction(each) and (each.__module__ or "").startswith("steersman.")


def _package(each: Any) -> str:
    return (getattr(each, "__module__", None) or "").partition(".")[0]


def _is_own(each: Any, home: str) -> bool:
    if not (inspect.isfunction(each) or inspect.isclass(each)):
        return False
    try:
        source = inspect.getsourcefile(each)
    except TypeError:
        return False
    if not source:
        return False
    path = Path(source).resolve()
    if path.is_relative_to(_OURS):
        return False
    # An operator may be installed itself, as it is in an image.
    return _package(each) == home or (
        _PACKAGES.isdisjoint(path.parts) and not any(map(path.is_relative_to, _INSTALLED))
    )


def _tree(each: Any) -> ast.AST | None:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(each)))
    except (OSError, SyntaxError, TypeError):
        return None


def _names_of(each: Any) -> dict[str, Any]:
    """What the names in a function or class stand for."""
    if inspect.isfunction(each):
        cells = zip(each.__code__.co_freevars, each.__closure__ or (), strict=False)
        return {**each.__globals__, **{name: _content(cell) for name, cell in cells}}
    module = inspect.getmodule(each)
    return dict(vars(module)) if module is not None else {}


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty: it is defined later
        return None


def _called(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = node.func.value
            name = of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""
            yield f"client.{node.func.attr}" if name in _CLIENTS else node.func.attr


def _used(tree: ast.AST, names: dict[str, Any]) -> Iterator[Any]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield names.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = names.get(node.value.id)
            if inspect.ismodule(module) or inspect.isclass(module):
                yield getattr(module, node.attr, None)

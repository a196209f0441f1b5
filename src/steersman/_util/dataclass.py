"""`dataclass` for the classes that each start of a server makes.

The one of the standard library compiles up to seven functions for a class, which for a hundred classes was a quarter of
the time that loading a server took. Here `__init__` alone is compiled; what prints, compares, hashes and protects is
shared by all of them.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen=False, slots=False, eq=True):
        """As `dataclasses.dataclass`, whose `field`, `fields` and `replace` serve these classes, too.

        What is left out: order, keyword-only fields, `InitVar`.
        """

        def make(cls):
            cls.__doc__ = cls.__doc__ or cls.__name__  # else it were given its signature, which takes long
            for name, method in _methods(frozen, eq, cls.__dict__).items():
                setattr(cls, name, method)
            made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
            made.__init__ = _initializer(made, frozen, slots)
            return made

        return make


def _methods(frozen: bool, eq: bool, own: Any) -> dict[str, Any]:
    """What a class gets besides its constructor; what it has of its `own` stays."""
    methods: dict[str, Any] = {"__repr__": _repr}
    if eq:
        methods["__eq__"] = _eq
        methods["__hash__"] = _hash if frozen else None
    if frozen:
        methods |= _FROZEN
    return {name: method for name, method in methods.items() if own.get(name) is None}


def _initializer(cls: Any, frozen: bool, slots: bool) -> Any:
    """The constructor. That of a frozen class goes past what refuses assignments."""
    names: dict[str, Any] = {"_absent": _ABSENT}
    parameters, body = ["self"], []
    for field in dataclasses.fields(cls):
        parameter, value = _parameter(field, names)
        if field.init:
            parameters.append(parameter)
        if not value:
            continue
        if not frozen:
            body.append(f"self.{field.name} = {value}")
        elif slots:
            names[f"_set_{field.name}"] = getattr(cls, field.name).__set__
            body.append(f"_set_{field.name}(self, {value})")
        else:
            body.append(f"self.__dict__[{field.name!r}] = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body), names)  # noqa: S102 - of names of fields
    made = names["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return made


def _parameter(field: dataclasses.Field[Any], names: dict[str, Any]) -> tuple[str, str]:
    """How a field stands in the constructor's head, and what is assigned to it: "" if nothing is."""
    name = field.name
    if field.default_factory is not dataclasses.MISSING:
        names[f"_make_{name}"] = field.default_factory
        value = f"_make_{name}()"
        return f"{name}=_absent", f"{value} if {name} is _absent else {name}" if field.init else value
    if field.default is not dataclasses.MISSING:
        names[f"_default_{name}"] = field.default
        return f"{name}=_default_{name}", name if field.init else f"_default_{name}"
    return name, name if field.init else ""


_ABSENT = object()


@recursive_repr()
def _repr(self: Any) -> str:
    fields = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(fields)})"


def _eq(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    values = _compared(other.__class__)
    return values(self) == values(other)


def _hash(self: Any) -> int:
    return hash(_hashed(self.__class__)(self))


@cache
def _compared(cls: Any) -> attrgetter[Any]:
    return attrgetter(*(field.name for field in dataclasses.fields(cls) if field.compare))


@cache
def _hashed(cls: Any) -> attrgetter[Any]:
    fields = dataclasses.fields(cls)
    return attrgetter(*(each.name for each in fields if (each.compare if each.hash is None else each.hash)))


def _refuse_to_set(self: object, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_FROZEN = {
    "__setattr__": _refuse_to_set,
    "__delattr__": _refuse_to_delete,
    "__getstate__": _get_state,  # else copies were made by assignment
    "__setstate__": _set_state,
}

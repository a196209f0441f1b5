"""Generated code that tells in one pass whether an object is valid, without saying what is wrong.

`valid_test` writes a Python function for a schema: type tests and bounds inline, one function for each object and
list. It answers True only when `check`, `list_types` and `embedded` would find nothing; False sends the caller there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from operator import itemgetter
from typing import Any

from steersman.apimachinery.schema import numbers
from steersman.apimachinery.schema.check import Checker
from steersman.apimachinery.schema.embedded import check_embedded
from steersman.apimachinery.schema.list_types import list_errors
from steersman.apimachinery.schema.structural import INT64_MAX, INT64_MIN, Node

_MISSING = object()
_EMPTY = Node()
_SIMPLE_TYPES = {"string": "str", "boolean": "bool", "object": "dict", "array": "list"}


def valid_test(node: Node) -> Callable[[Any], bool]:
    """The function for a schema."""
    writer = _Writer()
    name = writer.function(node)
    source = "\n".join(writer.lines)
    # the source holds only generated names, numbers and repr() of texts; all else is passed in through `constants`
    exec(compile(source, "<schema>", "exec"), writer.constants)  # noqa: S102
    test: Callable[[Any], bool] = writer.constants[name]
    return test


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {"MISSING": _MISSING}
        self._count = 0

    def _name(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def _constant(self, letter: str, value: Any) -> str:
        name = self._name(letter)
        self.constants[name] = value
        return name

    def function(self, node: Node) -> str:
        """Write the test of `node` as a function and return its name."""
        body = self._test(node, "v", "    ")
        name = self._name("f")
        self.lines += [f"def {name}(v):", *body, "    return True"]
        return name

    def _test(self, node: Node, var: str, indent: str) -> list[str]:
        """Statements that return False unless `var` fits."""
        if node.nullable or not node.types:
            inner = self._not_null(node, var, indent + "    ")
            null = [f"{indent}if {var} is None:", f"{indent}    return False"] if node.enum else []
            return [*null, f"{indent}if {var} is not None:", *inner, f"{indent}    pass"]
        return self._not_null(node, var, indent)

    def _not_null(self, node: Node, var: str, indent: str) -> list[str]:
        lines: list[str] = []

        def fail_if(condition: str) -> None:
            lines.extend((f"{indent}if {condition}:", f"{indent}    return False"))

        kinds = self._type_lines(node, var, indent, lines)
        for condition in self._junctor_conditions(node, var, kinds):
            fail_if(condition)
        if "str" in kinds:
            condition = self._string_condition(node, var)
            if condition:
                fail_if(condition if kinds == {"str"} else f"type({var}) is str and ({condition})")
        if kinds & {"int", "float"}:
            condition = self._number_condition(node, var)
            if condition:
                guard = "" if kinds <= {"int", "float"} else f"type({var}) in (int, float) and "
                fail_if(f"{guard}({condition})")
        if "list" in kinds:
            lines += self._guarded("list", kinds, var, indent, self._list_lines(node, var))
        if node.enum:
            fail_if(self._enum_condition(node, var, kinds))
        if "dict" in kinds:
            lines += self._guarded("dict", kinds, var, indent, self._dict_lines(node, var))
        return lines

    def _junctor_conditions(self, node: Node, var: str, kinds: set[str]) -> Iterator[str]:
        """What must not hold of the schemas in allOf, anyOf, oneOf and not.

        A generated test may refuse what the exact judge lets pass, so that only the judge decides where a failure of
        one of them would be a success of the whole.
        """
        yield from (f"not {self.function(each)}({var})" for each in node.all_of)
        if node.any_of and not all(map(_only_types, node.any_of)):
            yield " and ".join(f"not {self.function(each)}({var})" for each in node.any_of)
        elif node.any_of and not kinds <= set().union(*(_kinds(each.types) for each in node.any_of)):
            yield f"not {self._constant('c', _exact_judge(Node(any_of=node.any_of)))}({var})"
        if node.one_of or node.negated is not None:
            if all(map(_only_required, [*node.one_of, *([node.negated] if node.negated else [])])):
                yield from self._exact_conditions(node, var)
            else:
                judge = _exact_judge(Node(one_of=node.one_of, negated=node.negated))
                yield f"not {self._constant('c', judge)}({var})"

    def _exact_conditions(self, node: Node, var: str) -> Iterator[str]:
        if node.one_of:
            yield f"{' + '.join(f'{self.function(each)}({var})' for each in node.one_of)} != 1"
        if node.negated is not None:
            yield f"{self.function(node.negated)}({var})"

    def _type_lines(self, node: Node, var: str, indent: str, lines: list[str]) -> set[str]:
        """Write the type test; the Python types that may follow."""
        types = node.types
        if not types:
            if node.format:  # a format without a type admits texts and lists only
                lines.extend((f"{indent}if type({var}) not in (str, list):", f"{indent}    return False"))
                return {"str", "list"}
            lines.extend((f"{indent}if type({var}) is int and not {INT64_MIN} <= {var} <= {INT64_MAX}:",))
            lines.append(f"{indent}    return False")
            return {"str", "int", "float", "bool", "list", "dict"}
        kinds = _kinds(types)
        if len(kinds) == 1:
            test = f"type({var}) is not {next(iter(kinds))}"
        else:
            test = f"type({var}) not in ({', '.join(sorted(kinds))},)"
        if "int" in kinds and node.format != "int32":
            guard = "" if kinds == {"int"} else f"type({var}) is int and "
            test += f" or {guard}not {INT64_MIN} <= {var} <= {INT64_MAX}"
        lines.extend((f"{indent}if {test}:", f"{indent}    return False"))
        return kinds

    def _guarded(self, kind: str, kinds: set[str], var: str, indent: str, body: list[str]) -> list[str]:
        if not body:
            return []
        if kinds == {kind}:
            return [f"{indent}{line}" for line in body]
        return [f"{indent}if type({var}) is {kind}:", *(f"{indent}    {line}" for line in body)]

    def _string_condition(self, node: Node, var: str) -> str:
        parts = []
        if node.max_length is not None:
            parts.append(f"len({var}) > {node.max_length}")
        if node.min_length is not None:
            parts.append(f"len({var}) < {node.min_length}")
        if node.pattern:
            parts.append(f"not {self._constant('r', node.regex or _never)}({var})")
        if node.format_check is not None:
            parts.append(f"not {self._constant('t', node.format_check)}({var})")
        return " or ".join(parts)

    def _number_condition(self, node: Node, var: str) -> str:
        bounds = (node.minimum, node.maximum)
        if node.multiple_of is not None or any(b is not None and not _plain(b) for b in bounds):
            return f"{self._constant('n', _number_judge(node))}({var})"
        parts = []
        if node.minimum is not None:
            parts.append(f"{var} {'<=' if node.exclusive_minimum else '<'} {int(node.minimum)}")
        if node.maximum is not None:
            parts.append(f"{var} {'>=' if node.exclusive_maximum else '>'} {int(node.maximum)}")
        if node.types == ("integer",) and node.format == "int32":
            parts.append(f"not {-(2**31)} <= {var} <= {2**31 - 1}")
        if node.types == ("number",) and node.format == "float":
            parts.append(f"{self._constant('n', _number_judge(node))}({var})")
        return " or ".join(parts)

    def _enum_condition(self, node: Node, var: str, kinds: set[str]) -> str:
        if kinds == {"str"}:
            allowed = frozenset(item for item in node.enum if isinstance(item, str))
            return f"{var} not in {self._constant('e', allowed)}"
        return f"not {self._constant('e', _enum_judge(node))}({var})"

    def _list_lines(self, node: Node, var: str) -> list[str]:
        lines = []
        if node.min_items is not None:
            lines += [f"if len({var}) < {node.min_items}:", "    return False"]
        if node.max_items is not None:
            lines += [f"if len({var}) > {node.max_items}:", "    return False"]
        if node.unique_items:
            lines += [f"if not {self._constant('u', _unique_judge)}({var}):", "    return False"]
        if node.items is not None:
            item = self._name("i")
            lines += [f"for {item} in {var}:", *self._member(node.items, item, "    ")]
        if node.list_type in ("set", "map"):
            lines += [f"if not {self._constant('u', _distinct_judge(node))}({var}):", "    return False"]
        return lines

    def _member(self, node: Node, var: str, indent: str) -> list[str]:
        """A scalar is tested in place, a container by a function of its own."""
        if node.types and not {"object", "array"} & set(node.types):
            return [*self._test(node, var, indent), f"{indent}pass"]
        return [f"{indent}if not {self.function(node)}({var}):", f"{indent}    return False"]

    def _dict_lines(self, node: Node, var: str) -> list[str]:
        lines: list[str] = []
        if node.min_properties is not None:
            lines += [f"if len({var}) < {node.min_properties}:", "    return False"]
        if node.max_properties is not None:
            lines += [f"if len({var}) > {node.max_properties}:", "    return False"]
        if node.embedded:
            lines += [f"if {self._constant('m', _embedded_judge)}({var}):", "    return False"]
        for key in node.required:
            if key not in node.properties:
                lines += [f"if {key!r} not in {var}:", "    return False"]
        if node.additional is False or isinstance(node.additional, Node):
            lines += self._additional_lines(node, var)
        required = set(node.required)
        for key, child in node.properties.items():
            item = self._name("x")
            lines.append(f"{item} = {var}.get({key!r}, MISSING)")
            if key in required:
                lines += [f"if {item} is MISSING:", "    return False", *self._member(child, item, "")]
            else:
                lines += [f"if {item} is not MISSING:", *self._member(child, item, "    ")]
        return lines

    def _additional_lines(self, node: Node, var: str) -> list[str]:
        key, item = self._name("k"), self._name("x")
        lines = [f"for {key}, {item} in {var}.items():"]
        if node.properties:
            known = self._constant("p", frozenset(node.properties))
            lines += [f"    if {key} in {known}:", "        continue"]
        if isinstance(node.additional, Node):
            return [*lines, *self._member(node.additional, item, "    ")]
        return [*lines, "    return False"]


def _kinds(types: Iterable[str]) -> set[str]:
    """The Python types of values that are surely of one of the types."""
    kinds: set[str] = set()
    for name in types:
        kinds |= {_SIMPLE_TYPES[name]} if name in _SIMPLE_TYPES else set()
        kinds |= {"int"} if name in ("integer", "number") else set()
        kinds |= {"float"} if name == "number" else set()
    return kinds


def _says_no_more_than(node: Node, *names: str) -> bool:
    return all(
        getattr(node, each.name) == getattr(_EMPTY, each.name) for each in fields(Node) if each.name not in names
    )


def _only_types(node: Node) -> bool:
    """Whether a schema says nothing but a type, as those do that stand below x-kubernetes-int-or-string."""
    return bool(node.types) and _says_no_more_than(node, "type", "types")


def _only_required(node: Node) -> bool:
    """Whether a schema is about fields being there, and nothing else: its generated test is exact."""
    below = [*node.all_of, *node.any_of, *node.one_of, *([node.negated] if node.negated else [])]
    return _says_no_more_than(node, "required", "all_of", "any_of", "one_of", "negated") and all(
        map(_only_required, below)
    )


def _plain(bound: float) -> bool:
    """Whether a bound compares alike with integers and floats."""
    return bound.is_integer() and INT64_MIN <= bound <= INT64_MAX


def _never(text: str) -> bool:
    return False


def _number_judge(node: Node) -> Callable[[Any], bool]:
    return lambda value: next(numbers.problems(node, value, ""), None) is not None


def _enum_judge(node: Node) -> Callable[[Any], bool]:
    only = Node(enum=node.enum)
    return lambda value: not Checker().check(only, value).errors


def _exact_judge(node: Node) -> Callable[[Any], bool]:
    return lambda value: not Checker().check(node, value).errors


def _unique_judge(items: list[Any]) -> bool:
    return not Checker().check(Node(unique_items=True), items).errors


def _distinct_judge(node: Node) -> Callable[[list[Any]], bool]:
    """Tells whether the items of a set or map list are distinct."""
    key_of = itemgetter(*node.list_keys) if node.list_type == "map" and node.list_keys else None

    def distinct(items: list[Any]) -> bool:
        try:
            seen = set(items) if key_of is None else set(map(key_of, items))
        except (KeyError, TypeError):
            return not list_errors(node, items, "")
        # hashing takes True for 1: fewer members than items may still be distinct ones
        return len(seen) == len(items) or not list_errors(node, items, "")

    return distinct


def _embedded_judge(value: dict[str, Any]) -> bool:
    return bool(check_embedded(value, Node(), root=True))

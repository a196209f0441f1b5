"""What compiling and evaluating CEL costs, and how compiling grows with the size of an expression.

python bench/cel.py

Beside the engine, cel-expr-python (a binding of Google's C++ engine) is measured if it is installed. It has no types of
schemas, no costs and no limit on them; ours checks types and tracks costs, as Kubernetes does.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

from steersman.apimachinery.schema.cel.program import Checked, Variable, compile_expression, object_types
from steersman.apimachinery.schema.cel.schema_types import declare
from steersman.apimachinery.schema.structural import read_schema

SIMPLE = "self.replicas <= self.maxReplicas && self.name.matches('^[a-z]+$')"
NESTED = "self.all(x, self.exists_one(y, x.name == y.name))"
SCHEMA = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "maxReplicas": {"type": "integer"},
        "name": {"type": "string", "maxLength": 63},
    },
}
ITEMS = {"type": "array", "maxItems": 100, "items": {"type": "object", "properties": {"name": {"type": "string"}}}}
OBJECT = {"replicas": 3, "maxReplicas": 10, "name": "gearbox"}
LIST = [{"name": f"item-{index}"} for index in range(50)]
GROWING = {
    "a && b && ...": lambda count: " && ".join(["self.replicas > 0"] * count),
    "list literal": lambda count: f"[{', '.join(['self.replicas'] * count)}].size() > 0",
    "loops side by side": lambda count: " || ".join(["self.name.split('').exists(x, x == 'z')"] * count),
    "string literal": lambda count: f"self.name != '{'a' * 20 * count}'",
    "parentheses": lambda count: " && ".join(["((((((((((self.replicas > 0))))))))))"] * count),
    "errors": lambda count: " && ".join(["self.nothing"] * count),
}


def microseconds(call: Callable[[], object], number: int) -> float:
    """The best of seven rounds, for one call."""
    return min(timeit.repeat(call, number=number, repeat=7)) / number * 1e6


def compiled(source: str, schema: dict[str, Any]) -> Checked:
    decl = declare(read_schema(schema))
    assert decl.type is not None
    variables = (Variable("self", decl.type, decl), Variable("oldSelf", decl.type, decl))
    return compile_expression(source, variables, object_types(decl))


def compiling(source: str, schema: dict[str, Any]) -> Callable[[], object]:
    """All that a rule needs: types, estimated cost, program."""
    decl = declare(read_schema(schema))
    assert decl.type is not None
    variables = (Variable("self", decl.type, decl), Variable("oldSelf", decl.type, decl))
    objects = object_types(decl)

    def work() -> object:
        checked = compile_expression(source, variables, objects)
        return checked.cost(), checked.program()

    return work


def other(source: str, value: Any) -> tuple[Callable[[], object], Callable[[], object]] | None:
    """How to compile and how to evaluate with cel-expr-python."""
    try:
        from cel_expr_python import cel  # type: ignore[import-not-found]
    except ImportError:
        return None
    env = cel.NewEnv(variables={"self": cel.Type.DYN})
    expression = env.compile(source)
    assert expression.eval(data={"self": value}).value() is True
    return lambda: env.compile(source), lambda: expression.eval(data={"self": value})


def compare(label: str, source: str, schema: dict[str, Any], value: Any, number: int) -> None:
    program = compiled(source, schema).program()
    result, cost = program.evaluate(value, None)
    assert result is True
    mine = microseconds(lambda: program.evaluate(value, None), number)
    mine_compile = microseconds(compiling(source, schema), 50)
    print(f"{label}, cost {cost}: {source}")
    print(f"  {'steersman':16} evaluate {mine:8.2f} us   compile {mine_compile:8.1f} us")
    rival = other(source, value)
    if rival is None:
        print("  cel-expr-python is not installed")
        return
    theirs_compile, theirs = microseconds(rival[0], 50), microseconds(rival[1], number)
    print(f"  {'cel-expr-python':16} evaluate {theirs:8.2f} us   compile {theirs_compile:8.1f} us")
    print(f"  {'':16} {theirs / mine:.1f} times as fast to evaluate")


def growth(make: Callable[[int], str], count: int) -> tuple[float, float]:
    """Milliseconds for a size, and by how much four times the size takes longer."""

    def once(source: str) -> float:
        def work() -> None:
            try:
                compiling(source, SCHEMA)()
            except ValueError:
                pass
            except Exception as error:
                assert "undefined field" in str(error)

        return min(timeit.repeat(work, number=1, repeat=5)) * 1e3

    small = once(make(count))
    return small, once(make(4 * count)) / small


def main() -> None:
    compare("simple rule", SIMPLE, SCHEMA, OBJECT, 20_000)
    compare("nested loop over 50 items", NESTED, ITEMS, LIST, 50)
    print("compile, and how many times as long four times the size takes:")
    for label, make in GROWING.items():
        took, ratio = growth(make, 150)
        print(f"  {label:20} {took:7.1f} ms   {ratio:4.1f}")


if __name__ == "__main__":
    main()

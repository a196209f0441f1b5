from __future__ import annotations

from typing import Any

import pytest

from steersman._util.govalue import literal, plain, type_name


@pytest.mark.parametrize(
    ("value", "as_v", "as_sharp_v", "go_type"),
    [
        ("x", "x", '"x"', "string"),
        (1, "1", "1", "int64"),
        (1.5, "1.5", "1.5", "float64"),
        (True, "true", "true", "bool"),
        (None, "<nil>", "interface {}(nil)", "<nil>"),
        (["x", 1], "[x 1]", '[]interface {}{"x", 1}', "[]interface {}"),
        ({"b": [1, None], "a": {}}, "map[a:map[] b:[1 <nil>]]",
         'map[string]interface {}{"a":map[string]interface {}{}, "b":[]interface {}{1, interface {}(nil)}}',
         "map[string]interface {}"),
    ],
)  # fmt: skip
def test_formats(value: Any, as_v: str, as_sharp_v: str, go_type: str) -> None:
    assert (plain(value), literal(value), type_name(value)) == (as_v, as_sharp_v, go_type)

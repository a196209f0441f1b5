"""A short YAML text that means a long one is refused before it is written out, as go-yaml does."""

from __future__ import annotations

import pytest

from steersman.apimachinery.codec import yaml


def nested(levels: int, item: str) -> bytes:
    """Each level repeats the one before nine times."""
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]" if item == "{}" else "a: &a {k: v, l: w}"]
    for level in range(levels):
        names = ",".join(f"*{chr(97 + level)}" for _ in range(9))
        lines.append(f"{chr(98 + level)}: &{chr(98 + level)} {item.format(f'[{names}]')}")
    return "\n".join(lines).encode()


@pytest.mark.parametrize("item", ["{}", "{{<<: {}}}"], ids=["lists", "merge keys"])
def test_a_bomb_is_refused(item: str) -> None:
    with pytest.raises(yaml.YamlError, match=r"^yaml: document contains excessive aliasing$"):
        yaml.decode(nested(12, item))


def test_aliases_that_people_write() -> None:
    value = yaml.decode(nested(2, "{}"))
    assert len(value["c"]) == 9 and value["c"][8][8] == ["x"] * 9
    shared = b"base: &base {image: x, args: [1, 2]}\n" + b"".join(b"copy%d: *base\n" % n for n in range(200))
    assert yaml.decode(shared)["copy199"] == {"image": "x", "args": [1, 2]}


def test_a_long_text_may_repeat_a_part_of_itself() -> None:
    long = (
        b"list: [" + b"y, " * 3000 + b"z]\npart: &part [1, 2, 3]\n" + b"".join(b"p%d: *part\n" % n for n in range(500))
    )
    assert len(yaml.decode(long)) == 502


@pytest.mark.parametrize("text", [b"&a [*a]", b"&a {b: *a}", b"m: &m {labels: *m}"])
def test_a_value_inside_itself_is_refused(text: bytes) -> None:
    with pytest.raises(yaml.YamlError):
        yaml.decode(text)

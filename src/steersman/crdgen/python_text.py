"""Python source as black writes it: names, strings, fields and aliases, within 88 columns."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Collection, Sequence

WIDTH = 88
INDENT = "    "
_WORD_END = re.compile(r"([a-z0-9])([A-Z])")
_ACRONYM_END = re.compile(r"([A-Z]+)([A-Z][a-z])")
_GOES_ON = re.compile(r"[^\s\-*+#|`0-9]")
_OTHER = re.compile(r"[^0-9A-Za-z]+")


def snake(key: str, taken: Collection[str]) -> str:
    """A field's name for a key of JSON: in snake_case, no word of Python's, and not among `taken`."""
    words = _ACRONYM_END.sub(r"\1_\2", _WORD_END.sub(r"\1_\2", _OTHER.sub("_", key)))
    name = words.strip("_").lower() or "field"
    if not name[0].isalpha() or name.startswith(("model_dump", "model_validate")):
        name = f"field_{name}"
    if keyword.iskeyword(name) or name in taken:
        name += "_"
    number = 2
    found = name
    while found in taken:
        found = f"{name}{number}"
        number += 1
    return found


def pascal(key: str) -> str:
    """A class's name for a key of JSON, in CamelCase."""
    words = [word for word in _OTHER.split(key) if word]
    name = "".join(word[0].upper() + word[1:] for word in words)
    return name if name[:1].isalpha() else f"Field{name}"


def quoted(text: str) -> str:
    """A text as a literal, in the quotes that need fewer escapes."""
    mark = '"' if text.count('"') <= text.count("'") else "'"
    return f"{mark}{_escaped(text, mark)}{mark}"


def _escaped(text: str, mark: str) -> str:
    known = {"\\": "\\\\", mark: f"\\{mark}"}
    return "".join(known.get(sign) or (sign if sign.isprintable() else repr(sign)[1:-1]) for sign in text)


def docstring(text: str, indent: str = INDENT) -> list[str]:
    """The lines of a docstring; paragraphs are wrapped."""
    body = text.strip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    body = "".join(sign if sign.isprintable() or sign == "\n" else " " for sign in body)
    if body.endswith('"'):
        body = f'{body[:-1]}\\"'
    if "\n" not in body and len(indent) + len(body) + 6 <= WIDTH:
        return [f'{indent}"""{body}"""']
    lines: list[str] = []
    for paragraph in _reflowed(body):
        space = paragraph[: len(paragraph) - len(paragraph.lstrip())]
        wrapped = textwrap.wrap(
            paragraph.strip(),
            WIDTH - len(indent) - len(space) - (0 if lines else 3),
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines += [f"{indent}{space}{line}" for line in wrapped] or [""]
    if len(lines) == 1:
        return [f'{indent}"""{lines[0].strip()}"""']
    return [f'{indent}"""{lines[0].strip()}', *lines[1:], f'{indent}"""']


def _reflowed(text: str) -> list[str]:
    """A text's lines, those of one paragraph joined."""
    lines: list[str] = []
    for line in text.split("\n"):
        if lines and lines[-1].strip() and line.strip() and _GOES_ON.match(line):
            lines[-1] = f"{lines[-1].rstrip()} {line.strip()}"
        else:
            lines.append(line)
    return lines


def described(text: str, indent: str) -> list[str]:
    """The lines of `description=...` as an argument on lines of its own, long texts in pieces."""
    whole = f"{indent}description={quoted(text)},"
    if len(whole) <= WIDTH:
        return [whole]
    room = WIDTH - len(indent) - len(INDENT)
    pieces = [text] if len(quoted(text)) <= room else _pieces(text, room - 2)
    if len(pieces) == 1 and len(quoted(text)) > room:
        return [whole]
    return [f"{indent}description=(", *(f"{indent}{INDENT}{quoted(piece)}" for piece in pieces), f"{indent}),"]


def _pieces(text: str, width: int) -> list[str]:
    """A text in pieces that are cut after spaces and ends of lines."""
    pieces, piece = [], ""
    for word in re.findall(r"\S*\s|\S+", text):
        if piece and (len(_escaped(piece + word, '"')) > width or piece.endswith("\n")):
            pieces.append(piece)
            piece = ""
        piece += word
    return [*pieces, piece] if piece else pieces


def field_lines(name: str, annotation: str, arguments: Sequence[str], default: str, description: str) -> list[str]:
    """The lines of a model's field.

    `default` is what stands after "=", "" without one; `arguments` are those of Field(...), beside the default and the
    description.
    """
    if not arguments and not description:
        return _assigned(name, annotation, f" = {default}" if default else "")
    given = [*([f"default={default}"] if default else []), *arguments]
    if description:
        given.append(f"description={quoted(description)}")
    line = f"{INDENT}{name}: {annotation} = Field({', '.join(given)})"
    if len(line) <= WIDTH:
        return [line]
    head = f"{INDENT}{name}: {annotation} = "
    if len(head) < WIDTH < len(head) + len("Field("):
        call = _call(given, description, INDENT * 2)
        return [f"{head}(", f"{INDENT * 2}Field(", *call, f"{INDENT * 2})", f"{INDENT})"]
    return [*_assigned(name, annotation, " = Field("), *_call(given, description, INDENT), f"{INDENT})"]


def _call(given: Sequence[str], description: str, indent: str) -> list[str]:
    """The arguments of a call, one below the other; the last of them is the description, if there is one."""
    below = indent + INDENT
    lines = [f"{below}{each}," for each in given[: len(given) - bool(description)]]
    return lines + (described(description, below) if description else [])


def _assigned(name: str, annotation: str, rest: str) -> list[str]:
    line = f"{INDENT}{name}: {annotation}{rest}"
    if len(line) <= WIDTH:
        return [line]
    below = INDENT * 2
    head = f"{INDENT}{name}: {annotation} = "
    if rest == " = None" and len(head) < WIDTH:
        return [f"{head}(", f"{below}None", f"{INDENT})"]
    if annotation.endswith(" | None"):
        return [f"{INDENT}{name}: (", f"{below}{annotation}", f"{INDENT}){rest}"]
    if annotation.endswith("]"):
        outer, inner = annotation[:-1].split("[", 1)
        return [f"{INDENT}{name}: {outer}[", *exploded(inner, below), f"{INDENT}]{rest}"]
    if rest:
        return [line]
    return [f"{INDENT}{name}: (", f"{below}{annotation}", f"{INDENT})"]


def exploded(inner: str, indent: str) -> list[str]:
    """What stands between brackets, on lines of its own."""
    parts = _split(inner)
    if len(indent) + len(inner) <= WIDTH or len(parts) == 1:
        return [f"{indent}{inner}"]
    return [f"{indent}{part}," for part in parts]


def _split(inner: str) -> list[str]:
    """The parts of a list of arguments, at the commas that stand in no brackets and no text."""
    parts, depth, start, mark, at = [], 0, 0, "", 0
    while at < len(inner):
        sign = inner[at]
        if mark:
            at += sign == "\\"
            mark = "" if sign == mark else mark
        elif sign in "\"'":
            mark = sign
        elif sign in "[({":
            depth += 1
        elif sign in "])}":
            depth -= 1
        elif sign == "," and not depth:
            parts.append(inner[start:at].strip())
            start = at + 1
        at += 1
    return [*parts, inner[start:].strip()]


def alias_lines(name: str, value: str) -> list[str]:
    """The lines of a type's alias; a value that is too long has brackets at its end."""
    head = f"{name}: TypeAlias = "
    if len(head) < WIDTH <= len(head) + value.find("["):
        return [f"{head}(", *_fitted(value, INDENT), ")"]
    return _fitted(f"{head}{value}", "")


def _fitted(text: str, indent: str, end: str = "") -> list[str]:
    """A line, or several when it is too long and ends in brackets."""
    opening = min((at for at in (text.find("["), text.find("(")) if at > 0), default=0)
    if len(indent) + len(text) + len(end) <= WIDTH or not opening or text[-1] not in "])":
        return [f"{indent}{text}{end}"]
    parts = _split(text[opening + 1 : -1])
    if len(parts) == 1 and text[-1] == "]":
        return [f"{indent}{text[: opening + 1]}", f"{indent}{INDENT}{parts[0]}", f"{indent}]{end}"]
    inner = [line for part in parts for line in _fitted(part, indent + INDENT, ",")]
    return [f"{indent}{text[: opening + 1]}", *inner, f"{indent}{text[-1]}{end}"]

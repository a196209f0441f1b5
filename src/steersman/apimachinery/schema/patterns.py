"""User-given regular expressions: RE2's syntax, linear time, and errors worded as Go's regexp words them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import re2

from steersman._util.lazily import lazily

Pattern = Callable[[str], bool]

_REMEMBERED = 128

# RE2's error texts and Go's; what follows the colon is the same in both
_GO_WORDS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


# a text between \\Q and \\E, or an escape sequence
_ESCAPE = lazily(re.compile, r"\\Q.*?(?:\\E|\Z)|\\.", re.DOTALL)


class PatternError(ValueError):
    """The text is no regular expression; the message is Go's."""


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> Pattern:
    """A function that tells whether the pattern is found anywhere in a text. Raises PatternError."""
    if any(found[0] == r"\C" for found in _ESCAPE.finditer(pattern)):  # any byte, which Go does not have
        raise PatternError(r"error parsing regexp: invalid escape sequence: `\C`")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        search = re2.compile(pattern, options).search
    except re2.error as error:
        raise PatternError(f"error parsing regexp: {_go_message(error)}") from None

    def found(text: str) -> bool:
        # bytes: the wrapper maps offsets back to characters for str, which costs four times the search itself
        return search(text.encode("utf-8", "surrogatepass")) is not None

    # the same names come again with every update of an object; long texts are not worth keeping
    recall = lru_cache(maxsize=1024)(found)
    return lambda text: recall(text) if len(text) <= _REMEMBERED else found(text)


def _go_message(error: Exception) -> str:
    raw = error.args[0] if error.args else ""
    text = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
    reason, _, part = text.partition(": ")
    reason = _GO_WORDS.get(reason, reason)
    return f"{reason}: `{part}`"

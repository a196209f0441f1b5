"""The format `email`: one address as Go's net/mail reads it, `a@b.c`, `Name <a@b.c>`, or a group with one member.

The time grows with the text's length, whatever the text.

Source: Go `src/net/mail/message.go`; `src/mime/encodedword.go` for what makes an encoded word of a name unreadable.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re

from steersman._util.lazily import lazily

_NO_ATOM = frozenset('()<>[]:;@\\,"')
_CHARSETS = frozenset({"utf-8", "iso-8859-1", "us-ascii"})
_PLAIN, _ENCODED, _EMPTY, _UNREADABLE = "plain", "encoded", "empty", "unreadable"
_BLANK = lazily(re.compile, r"[ \t]+")
_Q_ENCODED = lazily(re.compile, r"(?:[ -<>-~\n\r\t]|=[0-9a-fA-F]{2})*")


class _Misformatted(Exception):
    pass


def is_email(text: str) -> bool:
    """Whether a text is one email address."""
    try:
        return _Parser(text).single()
    except _Misformatted:
        return False


def _is_visible(char: str) -> bool:
    return "!" <= char <= "~" or char >= "\x80"


def _is_atom(char: str) -> bool:
    return char not in _NO_ATOM and _is_visible(char)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def single(self) -> bool:
        addresses = self._address(group=True)
        self._skip_comments()
        return self.at == len(self.text) and addresses == 1

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take(self, char: str) -> bool:
        if self._peek() != char:
            return False
        self.at += 1
        return True

    def _skip_space(self) -> None:
        while self._peek() in (" ", "\t"):
            self.at += 1

    def _address(self, *, group: bool) -> int:
        """One mailbox, or all those of a group; how many there were."""
        self._skip_space()
        start = self.at
        try:
            self._spec()
        except _Misformatted:
            self.at = start
        else:
            self._skip_space()
            if self._take("(") and any(_form(word) == _UNREADABLE for word in _BLANK.split(self._comment())):
                raise _Misformatted
            return 1
        if self._peek() != "<":
            self._phrase()
        self._skip_space()
        if group and self._take(":"):
            return self._members()
        if not self._take("<"):
            raise _Misformatted
        self._spec()
        if not self._take(">"):
            raise _Misformatted
        return 1

    def _members(self) -> int:
        count = 0
        self._skip_space()
        while count or not self._take(";"):
            count += self._address(group=False)
            self._skip_comments()
            if self._take(";"):
                break
            if not self._take(","):
                raise _Misformatted
        self._skip_comments()
        return count

    def _spec(self) -> None:
        self._skip_space()
        if self._peek() == '"':
            if not self._quoted():
                raise _Misformatted
        else:
            self._atom(strict=True)
        if not self._take("@"):
            raise _Misformatted
        self._skip_space()
        if self._peek() == "[":
            self._literal()
        else:
            self._atom(strict=True)

    def _phrase(self) -> None:
        words = pending = 0  # encoded words are one word with those that follow, and none if they are empty
        while True:
            if words:
                self._skip_comments()
            self._skip_space()
            if not self._peek():
                break
            try:
                form = self._word()
            except _Misformatted:
                break
            if form == _UNREADABLE:
                break
            if form == _PLAIN:
                words += 2 if pending else 1
                pending = 0
            elif form == _ENCODED:
                pending += 1
        if not words and not pending and self._peek():
            raise _Misformatted

    def _word(self) -> str:
        if self._peek() == '"':
            self._quoted()
            return _PLAIN
        return _form(self._atom(strict=False))

    def _quoted(self) -> str:
        """The content of a quoted string; nothing is consumed if there is none."""
        escaped = False
        content: list[str] = []
        for position in range(self.at + 1, len(self.text)):
            char = self.text[position]
            if not escaped and char == '"':
                self.at = position + 1
                return "".join(content)
            if not (_is_visible(char) or char in " \t"):
                raise _Misformatted
            escaped = not escaped and char == "\\"
            if not escaped:
                content.append(char)
        raise _Misformatted

    def _atom(self, *, strict: bool) -> str:
        start = self.at
        while self._peek() and _is_atom(self._peek()):
            self.at += 1
        atom = self.text[start : self.at]
        if not atom or (strict and (atom[0] == "." or atom[-1] == "." or ".." in atom)):
            raise _Misformatted
        return atom

    def _literal(self) -> None:
        end = self.text.find("]", self.at)
        content = self.text[self.at + 1 : end]
        try:
            ipaddress.ip_address(content)
        except ValueError:
            raise _Misformatted from None
        if end < 0 or "%" in content:
            raise _Misformatted
        self.at = end + 1

    def _skip_comments(self) -> None:
        self._skip_space()
        while self._take("("):
            self._comment()
            self._skip_space()

    def _comment(self) -> str:
        """The content of a comment whose first parenthesis was taken."""
        depth = 1
        content: list[str] = []
        while self._peek() and depth:
            if self._peek() == "\\" and self.at + 1 < len(self.text):
                self.at += 1
            elif self._peek() == "(":
                depth += 1
            elif self._peek() == ")":
                depth -= 1
            content.append(self._peek())
            self.at += 1
        if depth:
            raise _Misformatted
        return "".join(content[:-1])


def _form(word: str) -> str:
    """Whether a word is an encoded one, and Go can read it: unreadable is what has a character set it does not know."""
    parts = word.split("?")
    if len(word) < 8 or len(parts) != 5 or parts[0] != "=" or parts[4] != "=" or not parts[1]:
        return _PLAIN
    _, charset, encoding, content, _ = parts
    if encoding in ("b", "B"):
        try:
            base64.b64decode(content.replace("\r", "").replace("\n", ""), validate=True)  # as Go does
        except (binascii.Error, ValueError):
            return _PLAIN
    elif encoding not in ("q", "Q") or _Q_ENCODED.fullmatch(content) is None:
        return _PLAIN
    if charset.lower() not in _CHARSETS:
        return _UNREADABLE
    return _ENCODED if content else _EMPTY

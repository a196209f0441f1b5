"""What Go's encoding/json says about text that is no JSON.

Source: Go `src/encoding/json/scanner.go`.
"""

from __future__ import annotations

from steersman._util.gotext import quote

_BLANK = b" \t\r\n"
_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_ESCAPES = b'bfnrt\\/"'
_LITERALS = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_END = "unexpected end of JSON input"


class _Invalid(Exception):
    pass


def syntax_error(raw: bytes) -> str:
    """The message of Go's SyntaxError for `raw`, "" when it is one JSON value."""
    scanner = _Scanner(raw)
    try:
        scanner.document()
    except _Invalid as error:
        return str(error)
    return ""


class _Scanner:
    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.at = 0

    def document(self) -> None:
        self._value()
        if self._skip_blank() is not None:
            raise self._invalid("after top-level value", between=True)

    def _invalid(self, where: str, *, between: bool = False) -> _Invalid:
        """At the end Go goes on with a blank, which is an end of input `between` tokens and in strings only."""
        if self.at >= len(self.raw) and between:
            return _Invalid(_END)
        character = chr(self.raw[self.at]) if self.at < len(self.raw) else " "
        shown = {"'": "\\'", '"': '"'}.get(character) or quote(character)[1:-1]
        return _Invalid(f"invalid character '{shown}' {where}")

    def _peek(self) -> int | None:
        return self.raw[self.at] if self.at < len(self.raw) else None

    def _skip_blank(self) -> int | None:
        while (byte := self._peek()) is not None and byte in _BLANK:
            self.at += 1
        return self._peek()

    def _value(self) -> None:
        """One value; nesting is kept on a list, not on Python's stack."""
        open_with: list[int] = []
        while True:
            entered = self._begin(open_with)
            while not entered:
                if not open_with:
                    return
                entered = self._after(open_with)

    def _begin(self, open_with: list[int]) -> bool:
        """The start of a value; True when another value is to come right after."""
        byte = self._skip_blank()
        if byte in (ord("{"), ord("[")):
            assert byte is not None
            self.at += 1
            closing = ord("}") if byte == ord("{") else ord("]")
            if self._skip_blank() == closing:
                self.at += 1
                return False
            open_with.append(byte)
            if byte == ord("{"):
                self._key()
            return True
        self._scalar(byte)
        return False

    def _after(self, open_with: list[int]) -> bool:
        """What follows a value inside of a container; True when another value is to come."""
        is_object = open_with[-1] == ord("{")
        byte = self._skip_blank()
        if byte == (ord("}") if is_object else ord("]")):
            self.at += 1
            open_with.pop()
            return False
        if byte != ord(","):
            raise self._invalid("after object key:value pair" if is_object else "after array element", between=True)
        self.at += 1
        if is_object:
            self._key()
        return True

    def _key(self) -> None:
        if self._skip_blank() != ord('"'):
            raise self._invalid("looking for beginning of object key string", between=True)
        self._string()
        if self._skip_blank() != ord(":"):
            raise self._invalid("after object key", between=True)
        self.at += 1

    def _scalar(self, byte: int | None) -> None:
        if byte == ord('"'):
            self._string()
        elif byte in _LITERALS:
            self._literal(_LITERALS[byte])
        elif byte is not None and (byte == ord("-") or byte in _DIGITS):
            self._number()
        else:
            raise self._invalid("looking for beginning of value", between=True)

    def _literal(self, word: bytes) -> None:
        for expected in word:
            if self._peek() != expected:
                raise self._invalid(f"in literal {word.decode()} (expecting '{chr(expected)}')")
            self.at += 1

    def _string(self) -> None:
        self.at += 1
        while (byte := self._peek()) != ord('"'):
            if byte is None or byte < 0x20:
                raise self._invalid("in string literal", between=True)
            self.at += 1
            if byte == ord("\\"):
                self._escape()
        self.at += 1

    def _escape(self) -> None:
        byte = self._peek()
        if byte == ord("u"):
            for _ in range(4):
                self.at += 1
                if (digit := self._peek()) is None or digit not in _HEX:
                    raise self._invalid("in \\u hexadecimal character escape")
        elif byte is None or byte not in _ESCAPES:
            raise self._invalid("in string escape code")
        self.at += 1

    def _number(self) -> None:
        if self._peek() == ord("-"):
            self.at += 1
            self._need_digit("in numeric literal")
        if self._peek() == ord("0"):
            self.at += 1
        else:
            self._digits()
        if self._peek() == ord("."):
            self.at += 1
            self._need_digit("after decimal point in numeric literal")
            self._digits()
        if self._peek() in (ord("e"), ord("E")):
            self.at += 1
            if self._peek() in (ord("+"), ord("-")):
                self.at += 1
            self._need_digit("in exponent of numeric literal")
            self._digits()

    def _need_digit(self, where: str) -> None:
        if (byte := self._peek()) is None or byte not in _DIGITS:
            raise self._invalid(where)

    def _digits(self) -> None:
        while (byte := self._peek()) is not None and byte in _DIGITS:
            self.at += 1

"""Static bearer tokens from kube-apiserver's `--token-auth-file`: CSV records `token,user,uid,"group1,group2"`.

Source: apiserver `pkg/authentication/token/tokenfile/tokenfile.go`; the CSV dialect is that of Go's encoding/csv.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from steersman.apiserver.authn.user import UserInfo

logger = logging.getLogger(__name__)

_DIGEST_BYTES = 32


class TokenFileError(ValueError):
    """The token file cannot be used; the message names file and line, never a token, in one line."""


class StaticTokens:
    """Tokens known at start.

    Tokens are kept and looked up as keyed digests. The key is new in every process, so how long a look-up takes says
    nothing about how much of a guess was right; the final comparison takes the same time for a hit and a miss.
    """

    __slots__ = ("_key", "_miss", "_users")

    def __init__(self, users: Mapping[str, UserInfo]) -> None:
        self._key = secrets.token_bytes(_DIGEST_BYTES)
        self._users = {digest: (digest, user) for digest, user in ((self._digest(t), u) for t, u in users.items())}
        self._miss: tuple[bytes, UserInfo | None] = (bytes(_DIGEST_BYTES), None)

    def __len__(self) -> int:
        return len(self._users)

    def authenticate_token(self, token: str) -> UserInfo | None:
        """The token's user, None for a token that is not in the file."""
        digest = self._digest(token)
        known, user = self._users.get(digest, self._miss)
        return user if hmac.compare_digest(known, digest) else None

    def _digest(self, token: str) -> bytes:
        raw = token.encode("utf-8", "surrogateescape")
        return hashlib.blake2b(raw, key=self._key, digest_size=_DIGEST_BYTES).digest()


def load_token_file(path: str | os.PathLike[str]) -> StaticTokens:
    """The tokens of a file; raises TokenFileError when it cannot be read or parsed."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise TokenFileError(f"token file {str(path)!r} cannot be read: {why}") from None
    return StaticTokens(parse_token_file(text, str(path)))


def parse_token_file(text: str, source: str) -> dict[str, UserInfo]:
    """Users by token; `source` names the file in errors. A later record of the same token wins, as upstream.

    A fourth column that is there but empty gives the group "", as upstream does; columns after it are ignored.
    """
    users: dict[str, UserInfo] = {}
    for line, record in _records(text, source):
        if len(record) < 3:
            raise TokenFileError(
                f"token file {source!r}, line {line}: "
                f"at least 3 columns (token, user name, user uid) are needed, found {len(record)}"
            )
        token, name, uid = record[:3]
        if not token:
            logger.warning("token file %r, line %d: an empty token is ignored", source, line)
            continue
        if token in users:
            logger.warning("token file %r, line %d: the token was there before, this record replaces it", source, line)
        groups = tuple(record[3].split(",")) if len(record) > 3 else ()
        users[token] = UserInfo(name, uid, groups)
    return users


def _records(text: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Each CSV record with the number of its first line; empty lines are skipped."""
    lines = text.replace("\r\n", "\n").split("\n")
    index = 0
    while index < len(lines):
        first = index + 1
        if not lines[index]:
            index += 1
            continue
        fields: list[str] = []
        rest: str | None = lines[index]
        while rest is not None:
            if rest.startswith('"'):
                value, rest, index = _quoted(lines, index, rest[1:], source)
            else:
                value, comma, tail = rest.partition(",")
                rest = tail if comma else None
                if '"' in value:
                    raise TokenFileError(f'token file {source!r}, line {index + 1}: a bare " in an unquoted field')
            fields.append(value)
        yield first, fields
        index += 1


def _quoted(lines: list[str], index: int, rest: str, source: str) -> tuple[str, str | None, int]:
    """A quoted field whose opening quote was read: its value, what follows its comma (None at the record's end),
    and the index of the line on which it ended."""
    value: list[str] = []
    while True:
        text, quote, rest = rest.partition('"')
        value.append(text)
        if not quote:
            index += 1
            if index == len(lines):
                raise TokenFileError(f"token file {source!r}, line {index}: a quoted field is not closed")
            value.append("\n")
            rest = lines[index]
        elif rest.startswith('"'):
            value.append('"')
            rest = rest[1:]
        elif not rest:
            return "".join(value), None, index
        elif rest.startswith(","):
            return "".join(value), rest[1:], index
        else:
            raise TokenFileError(f'token file {source!r}, line {index + 1}: a " inside a quoted field is not doubled')

"""String formats that a schema may name, as kube-openapi's `strfmt` registry checks them.

`string_format(name)` gives the check, or None for a format that the API server ignores. Dashes in the name do not
count: `date-time` and `datetime` are one format.

Source: kube-openapi `pkg/validation/strfmt` and apiextensions `pkg/apiserver/validation/formats.go`.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from calendar import monthrange
from collections.abc import Callable

import re2

from steersman._util.lazily import lazily
from steersman.apimachinery.schema.email import is_email
from steersman.apimachinery.schema.urls import UrlError, parse_request_uri

Check = Callable[[str], bool]

_A = re.ASCII
# over a text whose letters became "a", whose digits and symbols became "1", and whose other signs became " "
_HOSTNAME = lazily(re.compile, r"[a1](?:-?[a1]{0,62})?|(?:[a1](?:[a1-]{0,61}[a1])?\.)+a{2,63}")
_DATE = lazily(re.compile, r"(\d{4})-(\d\d)-(\d\d)", _A)
_TIME = lazily(re.compile, r"(\d\d):(\d\d):(\d\d)(.\d+)?(z|[+-]\d\d:\d\d)", _A)
_GO_DURATION = lazily(re.compile, r"[-+]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)", _A)
# re needs the square of the time for many digits
_DURATION_PART = lazily(re2.compile, r"(\d+)[\t\n\f\r ]*([A-Za-zµ]+)")
_DURATION_UNITS = (
    ("ns", "nano"),
    ("us", "µs", "micro"),
    ("ms", "milli"),
    ("s", "sec"),
    ("m", "min"),
    ("h", "hr", "hour"),
    ("d", "day"),
    ("w", "wk", "week"),
)
_MAX_INT64 = str(2**63 - 1)
_BASE64 = lazily(re.compile, r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_CARD = lazily(
    re.compile,
    r"(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})",
    _A,
)
_OCTET = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_MAC = lazily(
    re.compile,
    r"[0-9a-f]{2}(?:(?::[0-9a-f]{2}){5}|(?::[0-9a-f]{2}){7}|(?::[0-9a-f]{2}){19}"
    r"|(?:-[0-9a-f]{2}){5}|(?:-[0-9a-f]{2}){7}|(?:-[0-9a-f]{2}){19})"
    r"|[0-9a-f]{4}(?:(?:\.[0-9a-f]{4}){2}|(?:\.[0-9a-f]{4}){3}|(?:\.[0-9a-f]{4}){9})",
    re.IGNORECASE | _A,
)


def _matches(pattern: str, flags: int = 0) -> Check:
    compiled = lazily(re.compile, pattern, flags | _A)
    return lambda text: compiled.fullmatch(text) is not None


def _host_class(char: str) -> str:
    if char in "-.":
        return char
    category = unicodedata.category(char)
    if category[0] == "L":
        return "a"
    return "1" if category[0] == "S" or char in "0123456789" else " "


def _is_uri(text: str) -> bool:
    try:
        parse_request_uri(text)
    except UrlError:
        return False
    return True


def _is_hostname(text: str) -> bool:
    if len(text.encode()) > 255 or not _HOSTNAME.fullmatch("".join(map(_host_class, text))):
        return False
    return all(len(label.encode()) <= 63 for label in text.split("."))


def _parse_ip(text: str, *, sloppy: bool) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An IP as Go's net.ParseIP reads it; `sloppy` also takes leading zeros in IPv4 octets."""
    if "%" in text:
        return None
    if sloppy and "." in text:
        head, colon, tail = text.rpartition(":")
        octets = [part.lstrip("0") or "0" if re.fullmatch(r"\d+", part, _A) else part for part in tail.split(".")]
        text = head + colon + ".".join(octets)
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_ipv4(text: str) -> bool:
    return "." in text and _parse_ip(text, sloppy=True) is not None


def _is_ipv6(text: str) -> bool:
    return ":" in text and _parse_ip(text, sloppy=False) is not None


def _is_cidr(text: str) -> bool:
    address, slash, bits = text.rpartition("/")
    ip = _parse_ip(address, sloppy=True)
    if not slash or ip is None or not re.fullmatch(r"\d+", bits, _A):
        return False
    return int(bits) <= ip.max_prefixlen


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    # a leap year stands in for year 0, which the calendar module does not know
    return 1 <= month <= 12 and 1 <= day <= monthrange(year or 2000, month)[1]


def _is_datetime(text: str) -> bool:
    parts = text.lower().split("t")
    if len(text) < 4 or len(parts) < 2 or not _is_date(parts[0]):
        return False
    match = _TIME.fullmatch(parts[1])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_duration(text: str) -> bool:
    """Go's duration syntax, or Scala's: any text with parts such as `2 days`."""
    if len(text) < 19 and _GO_DURATION.fullmatch(text):  # a longer one may overflow; Scala's rule then decides
        return True
    found = False
    for count, unit in _DURATION_PART.findall(text):
        digits = count.lstrip("0")
        if (len(digits), digits) > (19, _MAX_INT64):
            return False
        unit = unit.lower()
        found = found or any(unit in names or unit.startswith(names[-1]) for names in _DURATION_UNITS)
    return found


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text, flags=_A)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    weighted = sum((i + 1) * (10 if digit == "X" else int(digit)) for i, digit in enumerate(digits))
    return weighted % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text, flags=_A)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    checksum = sum(int(digit) * (3 if i % 2 else 1) for i, digit in enumerate(digits[:12]))
    return int(digits[12]) == (10 - checksum % 10) % 10


def _is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if not _CARD.fullmatch(digits):
        return False
    doubled = [int(digit) * (2 if i % 2 else 1) for i, digit in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _uuid(version: str = "", variant: str = "") -> Check:
    third = f"{version}[0-9a-f]{{3}}" if version else "[0-9a-f]{4}"
    fourth = f"{variant}[0-9a-f]{{3}}" if variant else "[0-9a-f]{4}"
    return _matches(rf"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{third}-?{fourth}-?[0-9a-f]{{12}}", re.IGNORECASE)


_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_short_name = _matches(_NAME)
_long_name = _matches(rf"{_NAME}(\.{_NAME})*")
_CHECKS: dict[str, Check] = {
    "bsonobjectid": _matches("[0-9a-fA-F]{24}"),
    "uri": _is_uri,
    "email": is_email,
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_cidr,
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "uuid": _uuid(),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4", "[89ab]"),
    "uuid5": _uuid("5", "[89ab]"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": lambda text: len(text) == 11 and re.fullmatch(r"\d{3}[- ]?\d{2}[- ]?\d{4}", text, _A) is not None,
    "hexcolor": _matches("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(rf"rgb\({_OCTET},{_OCTET},{_OCTET}\)"),
    "byte": lambda text: _BASE64.fullmatch(text) is not None,
    "password": lambda text: True,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_datetime,
    "k8sshortname": lambda text: len(text) <= 63 and _short_name(text),
    "k8slongname": lambda text: len(text) <= 253 and _long_name(text),
}


def string_format(name: str) -> Check | None:
    """The check of a string format; None for one that is not known and so is not enforced."""
    return _CHECKS.get(name.replace("-", ""))


def is_recognised(schema_type: str, name: str) -> bool:
    """Whether format `name` means something on `schema_type` ("" for none); others are ignored, with a warning."""
    if schema_type in ("", "string"):
        return string_format(name) is not None
    if schema_type == "integer":
        return name in ("int32", "int64")
    return schema_type == "number" and name in ("float", "double")

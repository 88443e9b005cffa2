"""Replies as text, and text as an expected reply.

    "tea"   bulk string         [a, b]    array               (nil)        null bulk string
    :5      integer             {k: v}    map                 (nil array)  null array
    +OK     status              ~[a]      set                 _            RESP3 null
    -ERR …  error               >[a]      push                #t #f ,1.5   boolean, double

A status or an error inside an array is quoted: +"QUEUED". `render` writes this form. An expectation may also hold:

    "<id>" :<ms>   the first time any value, kept under this name; later the same value again ("<any>" is never kept)
    :50+           an integer of 50 or more
    ...            any number of elements, also none
    <any>          any value
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .wire import NULL, NULL_ARRAY, NULL_BULK, ErrorReply, Map, Push, SetReply, Verbatim, unquote

Bindings = dict[str, str]

_NAME = re.compile(r"<([a-z][a-z0-9_]*)>")
_NULLS = {"(nil array)": NULL_ARRAY, "(nil)": NULL_BULK, "_": NULL}


def render(value: Any) -> str:
    """The reply in the notation above, on one line."""
    return _render(value, inside=False)


def _render(value: Any, *, inside: bool) -> str:
    if isinstance(value, bytes):
        return quote(value)
    if isinstance(value, bool):
        return "#t" if value else "#f"
    if isinstance(value, int):
        return f":{value}"
    if isinstance(value, float):
        return f",{value!r}"
    if isinstance(value, str):
        return "+" + (quote(value.encode()) if inside else value)
    if isinstance(value, ErrorReply):
        return "-" + (quote(value.text.encode()) if inside else value.text)
    if isinstance(value, Verbatim):
        return "=" + quote(value.format.encode() + b":" + value.data)
    if isinstance(value, Map):
        pairs = (f"{_render(key, inside=True)}: {_render(item, inside=True)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        prefix = "~" if isinstance(value, SetReply) else ">" if isinstance(value, Push) else ""
        return prefix + "[" + ", ".join(_render(item, inside=True) for item in value) + "]"
    return next(text for text, null in _NULLS.items() if null is value)


def quote(data: bytes) -> str:
    text = data.decode("utf-8", "surrogateescape")
    shown = []
    for character in text:
        if character in '"\\':
            shown.append("\\" + character)
        elif 0xDC80 <= ord(character) <= 0xDCFF:
            shown.append(f"\\x{ord(character) - 0xDC00:02x}")
        elif ord(character) < 32 or ord(character) == 127:
            shown.append(f"\\x{ord(character):02x}")
        else:
            shown.append(character)
    return '"' + "".join(shown) + '"'


class Pattern:
    """An expected reply. `match` gives the names bound so far and here, or None."""

    def match(self, value: Any, bound: Bindings) -> Bindings | None:
        raise NotImplementedError


@dataclass(frozen=True)
class Exactly(Pattern):
    value: Any

    def match(self, value: Any, bound: Bindings) -> Bindings | None:
        return bound if type(value) is type(self.value) and value == self.value else None


@dataclass(frozen=True)
class Anything(Pattern):
    def match(self, value: Any, bound: Bindings) -> Bindings | None:
        return bound


@dataclass(frozen=True)
class Rest(Pattern):
    """Any number of elements; only lists look at it."""

    def match(self, value: Any, bound: Bindings) -> Bindings | None:
        raise AssertionError("... stands only inside an array or a map")


@dataclass(frozen=True)
class Text(Pattern):
    """A bulk string that holds names."""

    template: str

    def match(self, value: Any, bound: Bindings) -> Bindings | None:
        return match_names(self.template, value.decode("latin-1"), bound) if isinstance(value, bytes) else None


@dataclass(frozen=True)
class Number(Pattern):
    """A named integer."""

    template: str

    def match(self, value: Any, bound: Bindings) -> Bindings | None:
        return match_names(self.template, str(value), bound) if type(value) is int else None


@dataclass(frozen=True)
class AtLeast(Pattern):
    least: int

    def match(self, value: Any, bound: Bindings) -> Bindings | None:
        return bound if type(value) is int and value >= self.least else None


@dataclass(frozen=True)
class Elements(Pattern):
    """An array, set, push or map: the type and every element in order."""

    type: type
    patterns: tuple[Any, ...]

    def match(self, value: Any, bound: Bindings) -> Bindings | None:
        if type(value) is not self.type:
            return None
        return match_all(self.patterns, list(value.items()) if self.type is Map else value, bound)


@dataclass(frozen=True)
class Pair(Pattern):
    key: Pattern
    item: Pattern

    def match(self, value: Any, bound: Bindings) -> Bindings | None:
        after_key = self.key.match(value[0], bound)
        return None if after_key is None else self.item.match(value[1], after_key)


def match_all(patterns: tuple[Any, ...], values: list[Any], bound: Bindings) -> Bindings | None:
    if not patterns:
        return None if values else bound
    if isinstance(patterns[0], Rest):
        for start in range(len(values) + 1):
            result = match_all(patterns[1:], values[start:], bound)
            if result is not None:
                return result
        return None
    if not values:
        return None
    first = patterns[0].match(values[0], bound)
    return None if first is None else match_all(patterns[1:], values[1:], first)


def match_names(template: str, text: str, bound: Bindings) -> Bindings | None:
    """Match text against a template with <names>; a name that is bound already stands for its value."""
    position, expression, new = 0, "", []
    for found in _NAME.finditer(template):
        expression += re.escape(template[position : found.start()])
        name = found[1]
        if name in bound:
            expression += re.escape(bound[name])
        elif name in new:
            expression += f"(?P={name})"
        elif name == "any":
            expression += ".*?"
        else:
            expression += f"(?P<{name}>.+?)"
            new.append(name)
        position = found.end()
    match = re.fullmatch(expression + re.escape(template[position:]), text, re.DOTALL)
    return None if match is None else {**bound, **match.groupdict()}


def substitute(line: str, bound: Bindings) -> str:
    """A command line with every <name> replaced by what was bound to it."""
    return _NAME.sub(lambda found: bound[found[1]], line)


def parse(text: str) -> Pattern:
    """An expected reply from its text."""
    text = text.strip()
    if text[0] == "-" and text[1:2] != '"':
        return Exactly(ErrorReply(" ".join(text[1:].split())))
    if text[0] == "+" and text[1:2] != '"':
        return Exactly(text[1:])
    pattern, end = _parse(text, 0)
    assert end == len(text), f"cannot read {text[end:]!r} after the reply"
    return pattern


def _parse(text: str, at: int) -> tuple[Pattern, int]:
    at = _skip(text, at)
    for word, null in _NULLS.items():
        if text.startswith(word, at):
            return Exactly(null), at + len(word)
    if text.startswith("...", at):
        return Rest(), at + 3
    if text.startswith("<any>", at):
        return Anything(), at + 5
    if text[at] == '"':
        data, end = unquote(text, at)
        return (Text(data.decode("latin-1")) if _NAME.search(text[at:end]) else Exactly(data)), end
    if text[at] in "+-=" and text[at + 1] == '"':
        data, end = unquote(text, at + 1)
        return Exactly(_QUOTED[text[at]](data)), end
    if text[at] == ":":
        found = re.compile(r":(-?\d+)(\+?)|:(<[a-z][a-z0-9_]*>)").match(text, at)
        assert found, f"not an integer: {text[at:]!r}"
        if found[3]:
            return Number(found[3]), found.end()
        return (AtLeast(int(found[1])) if found[2] else Exactly(int(found[1]))), found.end()
    if text[at] == "#":
        return Exactly(text[at + 1] == "t"), at + 2
    if text[at] == ",":
        found = re.compile(r",([^\s,\]}]+)").match(text, at)
        assert found, f"not a double: {text[at:]!r}"
        return Exactly(float(found[1])), found.end()
    if text[at] == "{":
        return _parse_map(text, at + 1)
    kind = {"~": SetReply, ">": Push}.get(text[at])
    return _parse_array(text, at + (2 if kind else 1), kind or list)


_QUOTED = {
    "+": lambda data: data.decode(),
    "-": lambda data: ErrorReply(data.decode("utf-8", "surrogateescape")),
    "=": lambda data: Verbatim(data[:3].decode(), data[4:]),
}


def _parse_array(text: str, at: int, kind: type) -> tuple[Pattern, int]:
    assert text[at - 1] == "[", f"cannot read {text[at - 1 :]!r}"
    items: list[Pattern] = []
    while text[at := _skip(text, at)] != "]":
        item, at = _parse(text, at)
        items.append(item)
        at = _skip_comma(text, at, "]")
    return Elements(kind, tuple(items)), at + 1


def _parse_map(text: str, at: int) -> tuple[Pattern, int]:
    items: list[Pattern] = []
    while text[at := _skip(text, at)] != "}":
        key, at = _parse(text, at)
        if isinstance(key, Rest):
            items.append(key)
        else:
            at = _skip(text, at)
            assert text[at] == ":", f"a map needs key: value, not {text[at:]!r}"
            item, at = _parse(text, at + 1)
            items.append(Pair(key, item))
        at = _skip_comma(text, at, "}")
    return Elements(Map, tuple(items)), at + 1


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _skip_comma(text: str, at: int, end: str) -> int:
    at = _skip(text, at)
    assert text[at] in "," + end, f"a comma or {end} must follow, not {text[at:]!r}"
    return at + 1 if text[at] == "," else at

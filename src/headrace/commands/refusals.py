"""Texts of refusals that many commands share, in Redis's words."""

from typing import Final

SYNTAX: Final = "ERR syntax error"
NO_SUCH_KEY: Final = "ERR no such key"
OUT_OF_RANGE: Final = "ERR value is out of range"

"""The one exception tree.

Everything headrace raises on purpose is a HeadraceError. A message says what happened and, where a person can do
something about it, what to do.
"""


class HeadraceError(Exception):
    """The root: catch this to catch all of ours."""


class ProtocolError(HeadraceError):
    """The peer sent bytes that are not the protocol. The connection cannot be used any more."""


class CommandError(HeadraceError):
    """A command was refused and changed nothing. The text begins with its Redis prefix: ERR, WRONGTYPE, NOGROUP."""

    @property
    def prefix(self) -> str:
        """The first word, which programs may rely on: 'WRONGTYPE', 'NOGROUP', 'ERR'."""
        return str(self).split(" ", 1)[0]


class ConfigError(HeadraceError):
    """A setting cannot be used. The message names the setting and what to change."""

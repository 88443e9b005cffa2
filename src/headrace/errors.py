"""The one exception tree.

Everything headrace raises on purpose is a HeadraceError. A message says what happened and, where a person can do
something about it, what to do.
"""


class HeadraceError(Exception):
    """The root: catch this to catch all of ours."""


class ProtocolError(HeadraceError):
    """The peer sent bytes that are not the protocol. The connection cannot be used any more."""


class CommandError(HeadraceError):
    """A command was refused and changed nothing.

    A server's own words begin with their Redis prefix: ERR, WRONGTYPE, NOGROUP. A sentence of ours leaves it out, and
    has it as the second argument; what the sentence is about follows as the third and fourth.
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    @property
    def prefix(self) -> str:
        """The server's first word, which programs may rely on: 'WRONGTYPE', 'NOGROUP', 'ERR'."""
        return str(self.args[1]) if len(self.args) > 1 else str(self).split(" ", 1)[0]


class ConfigError(HeadraceError):
    """A setting cannot be used. The message names the setting and what to change."""


class NotFound(CommandError):
    """The stream, group or queue named does not exist."""

    @property
    def stream(self) -> str | None:
        """Its name; None where only the server's words are known."""
        return str(self.args[2]) if len(self.args) > 2 else None

    @property
    def group(self) -> str | None:
        """The name of the group, if it is the group that is missing."""
        return str(self.args[3]) if len(self.args) > 3 else None


class WrongType(CommandError):
    """The key holds something else than was asked for."""

    @property
    def key(self) -> str | None:
        """Its name; None where only the server's words are known."""
        return str(self.args[2]) if len(self.args) > 2 else None

    @property
    def wanted(self) -> str:
        """What was asked for: stream, queue or list."""
        return str(self.args[3]) if len(self.args) > 3 else "stream"


class JournalError(HeadraceError):
    """The data on the disk cannot be read or kept. The message names the file, and what to do."""


class NewerFormat(JournalError):
    """The data was written by a newer headrace. It is not damaged, and nothing here may touch it."""


class DiskFull(JournalError):
    """There is no room for what was to be written; nothing of it was."""


class Refused(HeadraceError):
    """We declined to do it because something would be lost. The message names what, and how to insist."""


class Unsupported(HeadraceError):
    """This server cannot do it. The message says what it lacks."""


class ConnectionLost(HeadraceError):
    """The connection broke before the answer came: whether the call took effect is unknown.

    Repeat only what is harmless to repeat.
    """


class Unreachable(ConnectionLost):
    """No connection could be made: nothing was sent."""


class DataLoss(HeadraceError):
    """Entries that were to be read are gone: trimmed, deleted, or their stream with them."""


class TableError(HeadraceError):
    """A table cannot be read or written: it is missing, damaged, or not of the kind expected. Nothing was changed."""


class BadRecord(HeadraceError):
    """An entry does not hold what its columns were declared as. The message names it, the column and the value."""


class Misfit(HeadraceError):
    """A message does not hold what the handler's annotation asks for. It is buried at once: no other try could help."""


class LeaseLost(HeadraceError):
    """The message is no longer this worker's: its lease ran out and another has it. Nothing was changed."""


class Fenced(CommandError):
    """The consumer has registered again under its name, or is not registered. Nothing was changed."""


class NoLanes(CommandError):
    """The group is not set up for order per key. Nothing was changed."""


class Unconfirmed(HeadraceError):
    """The message was added, but fewer replicas than asked for have confirmed it in time."""


class AccessDenied(HeadraceError):
    """The server wants another user or password, or forbids this user the command."""


class ClientClosed(HeadraceError):
    """The client was closed, before the call or while it waited. Open another one."""


def refusal(text: str, where: str) -> HeadraceError:
    """The exception for a server's error reply. Some libraries cut the ERR off; it comes back here."""
    has_prefix = text.startswith("ERR ")
    text = text.removeprefix("ERR ")
    prefix = text.split(" ", 1)[0]
    if prefix in ("NOAUTH", "WRONGPASS", "NOPERM") or "without any password configured" in text:
        return AccessDenied(f"{where} refuses: {text}")
    if prefix == "WRONGTYPE":
        return WrongType(text)
    if prefix in ("NOGROUP", "EMPTYKEY") or text == "no such key" or "requires the key to exist" in text:
        return NotFound(text)
    if prefix == "FENCED":
        return Fenced(text)
    if prefix == "NOLANES":
        return NoLanes(text)
    if has_prefix or not (prefix.isupper() and prefix.isalpha()):
        text = "ERR " + text
    return CommandError(text)

"""What a look at a data folder finds, one thing each: for a line on a terminal, or an object for a program."""

from dataclasses import dataclass

LONGEST_KEY = 80  # Of a key, as much is shown.


@dataclass(slots=True)
class Finding:
    what: str  # summary, note, damage, kept, dropped, repaired
    text: str
    file: str = ""
    offset: int = -1

    def sentence(self) -> str:
        where = f"{self.file} at byte {self.offset:,}: " if self.file and self.offset >= 0 else ""
        return f"{self.what}: {where}{self.text}"


def show_key(database: int, key: bytes) -> str:
    """A key for people; of another database than 0 with its number."""
    shown = repr(key[:LONGEST_KEY])[1:] + ("..." if len(key) > LONGEST_KEY else "")
    return shown if database == 0 else f"{shown} of database {database}"


def counted(number: int, noun: str, many: str = "") -> str:
    """1 entry, 2 entries."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"

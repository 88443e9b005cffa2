"""A folder in memory: the journal of a broker that keeps nothing, so that its data can be written and read back.

Files that nobody needs any more are removed as on a disk, so it holds the last checkpoint and the journal behind it.
"""

from headrace.journal.disk import File, FixedFile


class MemoryFile:
    def __init__(self) -> None:
        self.data = bytearray()

    def append(self, parts: list[bytes]) -> int:
        before = len(self.data)
        for part in parts:
            self.data += part
        return len(self.data) - before

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self.data[offset : offset + size])

    def size(self) -> int:
        return len(self.data)

    def sync(self) -> None:
        """Nothing lasts here."""

    def cut(self, size: int) -> None:
        del self.data[size:]

    def close(self) -> None:
        """It can be opened again."""


class MemoryFixedFile:
    def __init__(self, file: MemoryFile) -> None:
        self.file = file

    def write(self, data: bytes) -> None:
        self.file.data[:] = data

    def close(self) -> None:
        """It can be opened again."""


class MemoryDisk:
    def __init__(self) -> None:
        self.files: dict[str, MemoryFile] = {}

    def names(self) -> list[str]:
        return list(self.files)

    def create(self, name: str) -> File:
        self.files[name] = MemoryFile()
        return self.files[name]

    def open(self, name: str) -> File:
        if name not in self.files:
            raise FileNotFoundError(name)
        return self.files[name]

    def open_fixed(self, name: str) -> FixedFile:
        return MemoryFixedFile(self.files.setdefault(name, MemoryFile()))

    def replace(self, name: str, other: str) -> None:
        self.files[other] = self.files.pop(name)

    def remove(self, name: str) -> None:
        del self.files[name]

    def sync(self) -> None:
        """Nothing lasts here."""

"""Who listens to which channel, pattern and shard channel. Clients are numbers here.

Nothing is kept but the lists of listeners: a message is for those who listen at that moment. A channel exists while
somebody listens to it. Shard channels are a space of their own: no pattern matches them.
"""

from headrace.engine.glob import Glob

NAME_BYTES = 250  # Measured: what one listener's place costs besides the name itself.


class Listeners:
    """The listeners of one kind of name, found by name and by client."""

    __slots__ = ("by_name", "by_client", "size_bytes")

    def __init__(self) -> None:
        self.by_name: dict[bytes, dict[int, None]] = {}
        self.by_client: dict[int, dict[bytes, None]] = {}
        self.size_bytes = 0  # About what all of this takes in memory.

    def add(self, client: int, name: bytes) -> bool:
        """False when the client listens already."""
        names = self.by_client.get(client)
        if names is None:
            names = {}
            self.by_client[client] = names
        elif name in names:
            return False
        names[name] = None
        listeners = self.by_name.get(name)
        if listeners is None:
            listeners = {}
            self.by_name[name] = listeners
        listeners[client] = None
        self.size_bytes += len(name) + NAME_BYTES
        return True

    def remove(self, client: int, name: bytes) -> bool:
        """False when the client did not listen."""
        names = self.by_client.get(client)
        if names is None or name not in names:
            return False
        del names[name]
        if not names:
            del self.by_client[client]
        listeners = self.by_name[name]
        del listeners[client]
        if not listeners:
            del self.by_name[name]
        self.size_bytes -= len(name) + NAME_BYTES
        return True

    def names_of(self, client: int) -> list[bytes]:
        """What the client listens to, in the order it began."""
        names = self.by_client.get(client)
        return list(names) if names is not None else []

    def count_of(self, client: int) -> int:
        names = self.by_client.get(client)
        return len(names) if names is not None else 0

    def count_on(self, name: bytes) -> int:
        listeners = self.by_name.get(name)
        return len(listeners) if listeners is not None else 0

    def matching(self, glob: Glob | None) -> list[bytes]:
        """Names with at least one listener."""
        return [name for name in self.by_name if glob is None or glob.matches(name)]


class Channels:
    """All listeners of one broker."""

    __slots__ = ("channels", "patterns", "shards", "globs")

    def __init__(self) -> None:
        self.channels = Listeners()
        self.patterns = Listeners()
        self.shards = Listeners()
        self.globs: dict[bytes, Glob] = {}  # Every pattern somebody listens to, read once.

    def add_pattern(self, client: int, pattern: bytes) -> bool:
        if pattern not in self.globs:
            self.globs[pattern] = Glob(pattern)
        return self.patterns.add(client, pattern)

    def remove_pattern(self, client: int, pattern: bytes) -> bool:
        is_gone = self.patterns.remove(client, pattern)
        if pattern not in self.patterns.by_name:
            self.globs.pop(pattern, None)
        return is_gone

    def patterns_on(self, channel: bytes) -> list[bytes]:
        """Patterns that match a channel, oldest first."""
        return [pattern for pattern, glob in self.globs.items() if glob.matches(channel)]

    def count_of(self, client: int) -> int:
        """Channels and patterns of a client: what SUBSCRIBE and PSUBSCRIBE count together."""
        return self.channels.count_of(client) + self.patterns.count_of(client)

    def is_listening(self, client: int) -> bool:
        return client in self.channels.by_client or client in self.patterns.by_client or client in self.shards.by_client

    def count_clients(self) -> int:
        """Clients that listen to anything."""
        return len({*self.channels.by_client, *self.patterns.by_client, *self.shards.by_client})

    def forget(self, client: int) -> None:
        """The client listens to nothing any more."""
        for name in self.channels.names_of(client):
            self.channels.remove(client, name)
        for name in self.patterns.names_of(client):
            self.remove_pattern(client, name)
        for name in self.shards.names_of(client):
            self.shards.remove(client, name)

    def size_bytes(self) -> int:
        return self.channels.size_bytes + self.patterns.size_bytes + self.shards.size_bytes

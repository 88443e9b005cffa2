"""Keyspace events: kinds, and the letters that CONFIG SET notify-keyspace-events knows them by.

A handler says `ctx.notify(LIST, b"lpush", name)` after its change. That is free while nobody asked for events.
"""

from typing import Final

KEYSPACE: Final = 1  # K: published as __keyspace@0__:key, the message is the event
KEYEVENT: Final = 2  # E: published as __keyevent@0__:event, the message is the key
GENERIC: Final = 4  # g
STRING: Final = 8  # $
LIST: Final = 16  # l
SET: Final = 32  # s
HASH: Final = 64  # h
SORTED_SET: Final = 128  # z
EXPIRED: Final = 256  # x
EVICTED: Final = 512  # e
STREAM: Final = 1024  # t
MISSED: Final = 2048  # m: a key that was asked for and is not there
MODULE: Final = 4096  # d: reliable queues
NEW: Final = 8192  # n: a key that did not exist before
OVERWRITTEN: Final = 16384  # o
TYPE_CHANGED: Final = 32768  # c

"""What the broker keeps on disk, as far as commands ask about it or want it saved.

The server fills in the facts; SAVE and its relatives leave their wish here, and the server sees to it.
"""


class Keeping:
    __slots__ = (
        "is_durable", "is_saving", "is_wanted", "is_last_good", "is_full", "last_save_s", "log_bytes", "base_bytes",
        "savers", "reloads", "folder_id",
    )  # fmt: skip

    def __init__(self, now_s: int) -> None:
        self.is_durable = False  # There is a journal.
        self.is_saving = False  # A checkpoint is being written.
        self.is_wanted = False  # Somebody asked for one.
        self.is_last_good = True
        self.is_full = False  # There is no room for the journal.
        self.folder_id = ""  # Of the folder, for those who look at it on the disk. Another start has another one.
        self.last_save_s = now_s
        self.log_bytes = 0
        self.base_bytes = 0  # Of the last checkpoint.
        self.savers: list[int] = []  # Clients that wait for its end.
        # Clients that want everything to be loaded again, and whether after a checkpoint.
        self.reloads: list[tuple[int, bool]] = []

"""Every command, by importing the modules that declare them."""

import headrace.commands.connection  # noqa: F401
import headrace.commands.expiry  # noqa: F401
import headrace.commands.groups  # noqa: F401
import headrace.commands.keys  # noqa: F401
import headrace.commands.lists  # noqa: F401
import headrace.commands.pending  # noqa: F401
import headrace.commands.server  # noqa: F401
import headrace.commands.sets  # noqa: F401
import headrace.commands.stream_info  # noqa: F401
import headrace.commands.streams  # noqa: F401
import headrace.commands.strings  # noqa: F401
import headrace.commands.transactions  # noqa: F401

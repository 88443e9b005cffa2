"""headrace: a message broker with Redis Streams semantics over the Redis protocol.

Users import from here and from headrace.testing; every other module may move.
"""

from headrace.errors import CommandError, ConfigError, HeadraceError, ProtocolError

__version__ = "0.1.0.dev0"

__all__ = ["CommandError", "ConfigError", "HeadraceError", "ProtocolError", "__version__"]

"""Where a consumer finds its coordinator."""

from typing import Final

from headrace.errors import ConfigError

REGISTER: Final = "/api/consumers/register"
ACKNOWLEDGE: Final = "/api/messages/acknowledge"


def base_of(url: str, path: str, name: str) -> str:
    """The address of the coordinator: its other endpoints lie beside the one named."""
    if not url.startswith(("http://", "https://")) or not url.endswith(path):
        raise ConfigError(f"{name} is {url!r}; write it like http://localhost:7381{path}.")
    return url.removesuffix(path)

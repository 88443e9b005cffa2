"""headrace.toml, in the folder where a program is started: what is not given on the spot.

url = "embedded:./data"
"""

import tomllib
from pathlib import Path
from typing import Any, Final

from headrace.errors import ConfigError

FILE: Final = "headrace.toml"
KNOWN: Final = frozenset({"url"})


def read_settings(folder: Path | None = None) -> dict[str, Any]:
    """All settings of the file; none where there is no file. Unknown ones are refused: they may be misspelt."""
    path = (folder or Path()) / FILE
    try:
        settings = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    unknown = sorted(settings.keys() - KNOWN)
    if unknown:
        raise ConfigError(f"{path} has {unknown[0]!r}, which is no setting; there is: {', '.join(sorted(KNOWN))}.")
    return settings


def find_url() -> str | None:
    url = read_settings().get("url")
    if url is not None and not isinstance(url, str):
        raise ConfigError(f'url in {FILE} is {url!r}; write it in quotes, like url = "headrace://localhost:7379".')
    return url

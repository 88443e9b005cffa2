"""What a delegated consumer is told: by its caller, by the environment, or in a TOML file, in this order.

The names are those of the article that described the pattern. In the environment they may also be in capitals:

    ticket_stream = "ticket_stream"
    concurrency_stream_group = "concurrency_stream_group"
    consumer = "c1"
    master_register_api_url = "http://localhost:7381/api/consumers/register"
    master_acknowledge_api_url = "http://localhost:7381/api/messages/acknowledge"
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from headrace.errors import ConfigError
from headrace.ordered.addresses import ACKNOWLEDGE, REGISTER
from headrace.ordered.master_settings import GROUP, STREAM


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    ticket_stream: str = STREAM
    concurrency_stream_group: str = GROUP
    consumer: str = ""  # Empty: a name that no other process has.
    master_register_api_url: str = ""  # Empty, as the next one: no coordinator, straight to the broker.
    master_acknowledge_api_url: str = ""


def find_settings(
    given: Mapping[str, str | None], file: Path | None = None, environment: Mapping[str, str] | None = None
) -> ConsumerSettings:
    known = [one.name for one in fields(ConsumerSettings)]
    found: dict[str, str] = {} if file is None else read_file(file, known)
    around = os.environ if environment is None else environment
    for name in known:
        text = around.get(name) or around.get(name.upper()) or ""
        if text:
            found[name] = text
    found.update({name: text for name, text in given.items() if text})
    return completed(ConsumerSettings(**found))


def read_file(file: Path, known: list[str]) -> dict[str, str]:
    try:
        found = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}.") from error
    for name, value in found.items():
        if name not in known:
            raise ConfigError(f"{file} has {name!r}, which is no setting; there is: {', '.join(known)}.")
        if not isinstance(value, str):
            raise ConfigError(f'{name} in {file} is {value!r}; write it in quotes, like {name} = "…".')
    return found


def completed(settings: ConsumerSettings) -> ConsumerSettings:
    """One of the two addresses gives the other one, where it has the usual form."""
    register, acknowledge = settings.master_register_api_url, settings.master_acknowledge_api_url
    if register and not acknowledge and register.endswith(REGISTER):
        return replace(settings, master_acknowledge_api_url=register.removesuffix(REGISTER) + ACKNOWLEDGE)
    if acknowledge and not register and acknowledge.endswith(ACKNOWLEDGE):
        return replace(settings, master_register_api_url=acknowledge.removesuffix(ACKNOWLEDGE) + REGISTER)
    return settings


def addresses_of(master: str | None) -> dict[str, str | None]:
    """Both of them, from the address of the coordinator: http://localhost:7381."""
    if not master:
        return {}
    if not master.startswith(("http://", "https://")):
        raise ConfigError(f"the coordinator is {master!r}; write it like http://localhost:7381.")
    base = master.rstrip("/")
    return {"master_register_api_url": base + REGISTER, "master_acknowledge_api_url": base + ACKNOWLEDGE}

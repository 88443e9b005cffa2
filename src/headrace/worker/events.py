"""Log events of workers: a name and fields, as text and as `record.event`, `record.fields`.

message_retried stream=orders group=billing id=1731651600000-0 attempt=2 error='ValueError: declined'
"""

import logging
from typing import Any, Final

LOG: Final = logging.getLogger("headrace.worker")


def tell(level: int, event: str, **fields: Any) -> None:
    if LOG.isEnabledFor(level):
        words = " ".join(f"{name}={shown(value)}" for name, value in fields.items())
        LOG.log(level, "%s %s", event, words, extra={"event": event, "fields": fields})


def info(event: str, **fields: Any) -> None:
    tell(logging.INFO, event, **fields)


def warning(event: str, **fields: Any) -> None:
    tell(logging.WARNING, event, **fields)


def error(event: str, **fields: Any) -> None:
    tell(logging.ERROR, event, **fields)


def shown(value: Any) -> str:
    text = str(value)
    return repr(text) if not text or any(letter.isspace() or letter in "'\"=" for letter in text) else text

"""Who may ask: whoever has the token; without one, programs of this machine, and no web page that a browser shows."""

import hmac
from collections.abc import Mapping

from headrace.ordered.master_settings import is_loopback
from headrace.ordered.refusal import Refusal


class Guard:
    def __init__(self, token: str, host: str) -> None:
        self.token = token.encode()
        self.names = {"localhost", "127.0.0.1", "[::1]", host}

    def check(self, headers: Mapping[str, str]) -> None:
        if self.token:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token):
                raise Refusal(401, "The token is missing or wrong.", "Send the header Authorization: Bearer TOKEN.")
            return
        # A page of somebody else could send requests to this machine through a browser, or have a name of its own
        # lead to it. Browsers tell both.
        if "origin" in headers:
            raise Refusal(403, "This request comes from a web page.", "Start the coordinator with a token for that.")
        if not self.is_here(headers.get("host", "")):
            raise Refusal(403, f"The host {headers.get('host', '')!r} is not this one.", "Ask 127.0.0.1 or localhost.")

    def is_here(self, host: str) -> bool:
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        return name in self.names or is_loopback_address(name)


def is_loopback_address(name: str) -> bool:
    return name.replace(".", "").isdecimal() and is_loopback(name)

"""The endpoints of the coordinator, each declared once: the routes and the OpenAPI document are made from this."""

from dataclasses import dataclass, field
from typing import Any, Final

from headrace.ordered.bodies import Acknowledge, Fail, Register, Sign

LONGEST_WAIT_S: Final = 30
PAGING: Final = {
    "cursor": {"type": "integer", "minimum": 0, "description": "Where the page before said to go on."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: str
    path: str
    name: str  # Of the method that serves it.
    summary: str
    body: Any = None
    query: dict[str, dict[str, Any]] = field(default_factory=dict)
    refusals: tuple[int, ...] = ()
    is_open: bool = False  # Served without the token.
    takes_lists: bool = False  # Of such bodies: then the answer is a list too.


ENDPOINTS: Final = (
    Endpoint(
        "POST", "/api/consumers/register", "register",
        "Register a consumer. The same name again starts a new session and fences the one before.",
        Register, refusals=(429,),
    ),
    Endpoint(
        "POST", "/api/consumers/heartbeat", "heartbeat",
        "Say that a consumer is alive. Acknowledging and asking for messages say so too.", Sign, refusals=(404, 409),
    ),
    Endpoint(
        "POST", "/api/consumers/leave", "leave",
        "Leave. What the consumer holds goes to others at once.", Sign, refusals=(409,),
    ),
    Endpoint(
        "POST", "/api/messages/acknowledge", "acknowledge",
        "A message is done: it is acknowledged in the group, and the next one of its key may be given. Repeating this "
        "is harmless; `already` tells that the message was done before. A list of such bodies is answered by a list: "
        "what is refused has `status`, `error` and `what_to_do`.",
        Acknowledge, refusals=(404, 409), takes_lists=True,
    ),
    Endpoint(
        "POST", "/api/messages/fail", "fail",
        "A message could not be done: its key waits for the delay, and the message is given again. With bury it goes "
        "to the dead letters.",
        Fail, refusals=(404, 409),
    ),
    Endpoint(
        "GET", "/api/consumers/{name}/messages", "messages",
        "What is delegated to a consumer, without touching it. Waits until something was given after the fence named.",
        query={
            "session": {"type": "integer", "description": "Refused when this is not the consumer's session any more."},
            "after": {"type": "integer", "minimum": 0, "default": 0, "description": "`after` of the answer before."},
            "wait": {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT_S, "default": 0},
        },
        refusals=(404, 409),
    ),
    Endpoint("GET", "/api/consumers", "consumers", "The consumers, and the keys that each holds."),
    Endpoint(
        "GET", "/api/tickets", "tickets", "Keys with undone messages.",
        query={"state": {"type": "string", "enum": ["ready", "held", "waiting", "parked"]}, **PAGING},
    ),
    Endpoint(
        "GET", "/api/tickets/{key}", "ticket", "One key: its holder, fence, messages, and since when.", refusals=(404,)
    ),
    Endpoint("GET", "/api/parked", "parked", "Keys that stand still until somebody resumes them.", query=PAGING),
    Endpoint("GET", "/api/lanes", "lanes", "The settings of the group, and how many keys are in which state."),
    Endpoint("GET", "/api/health", "health", "Whether the coordinator serves, and reaches its broker.", is_open=True),
    Endpoint("GET", "/openapi.json", "openapi", "This document.", is_open=True),
)  # fmt: skip

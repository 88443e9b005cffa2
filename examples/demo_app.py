"""The application of the demo: all that a user writes. `headrace worker demo_app:app` runs it.

Each order is billed once, with its line in the customer's ledger: effect, receipt and acknowledgement are one step. The
orders of one customer are billed one after the other, as they came; those of different customers at the same time.
"""

import asyncio
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from headrace import App, Context, Retries

ORDERS, RECEIPTS, GROUP = "demo:orders", "demo:receipts", "billing"
WORKER = os.environ.get("DEMO_WORKER", "")  # ann or bob.
BANK = os.environ.get("DEMO_BANK", "")  # A file: once it is there, the bank takes every card.
FATAL_ORDER = 9  # ann dies when she takes her ninth order.
WORK_S = 0.05  # What an order costs, so that both workers get their share.

app = App(keep="1h")  # HEADRACE_URL says where; what is done stays for the archive.
taken = 0


@dataclass
class Order:
    number: int
    customer: str
    card: str


class CardDeclined(Exception):
    pass


def bank_takes_every_card() -> bool:
    return Path(BANK).exists()


@app.handler(
    ORDERS,
    group=GROUP,
    key="customer",
    poison="skip",
    lease="1s",
    concurrency=4,
    run=2,
    retries=Retries(2, first="50ms"),
)
async def bill(order: Order, ctx: Context) -> None:
    global taken
    taken += 1
    if WORKER == "ann" and taken == FATAL_ORDER:
        os.kill(os.getpid(), signal.SIGKILL)  # No clean-up, no last words: like a power cut.
    await asyncio.sleep(WORK_S)
    if order.card == "declined" and not bank_takes_every_card():
        raise CardDeclined("the bank says no")
    if order.card == "slow" and ctx.attempt == 1:
        raise TimeoutError("the bank did not answer")
    receipt = {"order": order.number, "entry": ctx.id, "by": WORKER, "attempt": ctx.attempt}
    line = f"{ctx.id} {order.number}"
    await ctx.commit([("RPUSH", f"{{{ORDERS}}}:ledger:{order.customer}", line)], publish=[(RECEIPTS, receipt)])

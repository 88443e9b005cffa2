"""A proof of order per key on a server of the user's choice: messages come, consumers come and go, and at the end it is
recomputed from the data whether every promise held.

    report = prove(client, url, Plan(keys=300, messages=20_000))
    report.holds

Only keys with a random word in their names are touched, and all of them are removed (prove_plan.py).
"""

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Final

from headrace.client import lane_steps, lane_views
from headrace.client.client import Client
from headrace.client.requests import Request
from headrace.errors import HeadraceError, NoLanes, NotFound
from headrace.ordered.prove_crew import WORKER, Crew, last_lines
from headrace.ordered.prove_plan import GROUP, KEY_FIELD, Plan
from headrace.ordered.prove_verdict import Again, Evidence, Verdict, Work, judge, parse_work

LOOK_S: Final = 0.05
SLICE: Final = 1000  # Messages published at once, and keys removed at once.
STANDSTILL_S: Final = 60.0  # Without progress for so long (and for ten leases), it is given up.

Watch = Callable[[int, int], None]  # Called again and again with what is done and what is left to do.


@dataclass(frozen=True, slots=True)
class Report:
    plan: Plan
    seconds: float
    events: Counter[str]  # joined, killed, paused, left
    verdicts: list[Verdict]
    reruns: int  # Accepted work that was not the first attempt at its message.
    evidence: Evidence = field(repr=False)
    last_words: str = ""  # Of the consumers, when they got no further.

    @property
    def holds(self) -> bool:
        return all(verdict.holds for verdict in self.verdicts)


def prove(
    client: Client, url: str, plan: Plan, watch: Watch = lambda *_: None, *,
    outages: Sequence[tuple[int, int]] = (), kinds: Sequence[Sequence[str]] = (WORKER,),
) -> Report:  # fmt: skip
    """Run the plan and judge it. `url` is the client's, with its password: the consumers get it.

    `outages` is read at the end: when the server was away, as a watcher has noted it. `kinds` are the commands that
    consumers are, in turn.
    """
    try:
        client.stream(plan.stream).group(GROUP).create(start="beginning")
        client.run(lane_steps.config(client._facts, plan.order))  # A server that cannot do it says so at once.
        begin_s = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="headrace-proof-") as folder:
            log = Path(folder) / "consumers.log"
            with log.open("wb") as output, Crew(client, url, plan, chance_of(plan), output, kinds) as crew:
                run(client, plan, crew, log, watch)
        seconds = time.monotonic() - begin_s
        evidence = gather(client, plan, crew, outages)
        reruns = sum(work.attempt > 1 for works in evidence.done.values() for work in works)
        verdicts = list(judge(plan, evidence))
        return Report(plan, seconds, crew.events, verdicts, reruns, evidence, crew.last_words)
    finally:
        clean_up(client, plan)


def run(client: Client, plan: Plan, crew: Crew, log: Path, watch: Watch) -> None:
    """Until every message is done, or nothing moves any more."""
    messages, chance = plan.numbered(), chance_of(plan)
    published, last_done, begin_s = 0, 0, time.monotonic()
    moved_s, next_trouble_s = begin_s, begin_s + pause_s(plan, chance)
    for _ in range(plan.consumers):
        crew.join()
    while True:
        now_s = time.monotonic()
        share = min(1.0, 1000 * (now_s - begin_s) / plan.duration_ms)
        published += publish(client, plan, messages, round(share * plan.messages) - published)
        done = published - client.stream(plan.stream).length()
        watch(done, plan.messages - done)
        if done == plan.messages:
            return
        if done > last_done:
            last_done, moved_s = done, now_s
        if published > done and now_s - moved_s > max(STANDSTILL_S, 10 * plan.lease_ms / 1000):
            crew.last_words = last_lines(log)
            return
        if now_s >= next_trouble_s:
            crew.trouble()
            crew.fill()
            next_trouble_s = now_s + pause_s(plan, chance)
        time.sleep(LOOK_S)


def chance_of(plan: Plan) -> Random:
    return Random(plan.seed)  # noqa: S311 - to be repeated, not to be secret.


def pause_s(plan: Plan, chance: Random) -> float:
    return chance.uniform(0.5, 1.5) * plan.kill_every_ms / 1000


def publish(client: Client, plan: Plan, messages: Iterator[tuple[str, int]], count: int) -> int:
    """The next messages, up to a slice; how many."""
    batch = [{KEY_FIELD: key, "number": str(number)} for key, number in islice(messages, max(0, min(count, SLICE)))]
    if batch:
        client.stream(plan.stream).add_many(batch)
    return len(batch)


# The end


def gather(client: Client, plan: Plan, crew: Crew, outages: Sequence[tuple[int, int]]) -> Evidence:
    refused = int(client.command("HGET", plan.late_key, "refused") or 0)
    done, again = read_done(client, plan), read_again(client, plan)
    return Evidence(done, left_over(client, plan), refused, crew.losses, again, outages)


def read_done(client: Client, plan: Plan) -> dict[str, list[Work]]:
    done: dict[str, list[Work]] = {}
    for number in range(plan.keys):
        lines = client.list(plan.done_key(str(number))).range()
        if lines:
            done[str(number)] = [parse_work(line) for line in lines]
    return done


def read_again(client: Client, plan: Plan) -> dict[str, list[Again]]:
    again: dict[str, list[Again]] = {}
    for line in client.list(plan.again_key).range():
        key, fence, begin_ns = line.decode().split()
        again.setdefault(key, []).append(Again(int(fence), int(begin_ns)))
    return again


def left_over(client: Client, plan: Plan) -> dict[str, int]:
    try:
        info = client.run(lane_views.info(client._facts, plan.order))
    except (NoLanes, NotFound):
        return {"consumers that came": 0}  # Then all messages are lost, which is judged elsewhere.
    stream = client.stream(plan.stream)
    return {
        "keys": info.keys,
        "ready": info.ready,
        "held or waiting": info.timed,
        "strays": info.strays,
        "pending": stream.group(GROUP).info().pending,
        "entries": stream.length(),
        "dead letters": client.stream(plan.order.dead).length(),
    }


def clean_up(client: Client, plan: Plan) -> None:
    """All keys by their names: nothing is searched for, so nothing of others can be found."""
    keys = plan.all_keys()
    while part := list(islice(keys, SLICE)):
        batch: list[Request[Any]] = [Request(("UNLINK", key), int, key, is_repeatable=True) for key in part]
        client.run(send_all(batch))


def send_all(batch: list[Request[Any]]) -> Any:
    replies = yield batch
    for reply in replies:
        if isinstance(reply, HeadraceError):
            raise reply
    return replies

"""Running: messages that were read become tasks, at most `concurrency` at once, and every ending is settled.

A message that comes for the first time runs at once. One that was delivered before is asked for its attempt first,
which the server writes down before the handler begins: so a message that kills its worker is counted. Where a message
may run only once (retries=0) that is done for every message, so that one which was only read in advance by a worker
that died is known to have never run.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from headrace.app.app import App
from headrace.app.context import Context, Effect, FollowUp
from headrace.app.delivery import Delivery
from headrace.app.handlers import Handler
from headrace.client import worker_steps
from headrace.client.flows import tag_of
from headrace.client.results import encode_text
from headrace.client.worker_keys import stream_keys
from headrace.client.worker_steps import Ack, Add, Clause
from headrace.errors import ConnectionLost, HeadraceError, LeaseLost, NotFound
from headrace.worker import events
from headrace.worker.burying import Burial
from headrace.worker.calling import Calls
from headrace.worker.counters import Counters
from headrace.worker.decide import WORKER_ENDED, GiveUp, TryAgain, decide, describe, read_given_up, write_given_up
from headrace.worker.outage import REFUSED_PAUSE_S, Outage
from headrace.worker.rate import Rate
from headrace.worker.settling import Settler
from headrace.worker.source import Source
from headrace.worker.threads import Threads

OUTBOX_TARGET: Final = b"hr:to"  # In the outbox: the stream a message is for.


class Runner:
    """Runs the messages of one handler, whichever of its streams they come from."""

    def __init__(
        self, app: App, handler: Handler, values: dict[str, Any], outage: Outage, on_change: Callable[[], None]
    ) -> None:
        self.app = app
        self.handler = handler
        self.signature = handler.signature(app.providers)
        self.outage = outage
        self.on_change = on_change  # Something ended: there is room, or a retry has a time.
        self.counters = Counters()
        self.hooks = app.hooks
        self.burial = Burial(app, handler)
        self.settlers: dict[str, Settler] = {}
        self.waiting: deque[Delivery] = deque()
        self.running = 0
        self.outliving = 0  # Threads that go on though their run was broken off. Their places are taken.
        self.loop = asyncio.get_running_loop()
        self.tasks: set[asyncio.Task[None]] = set()
        self.is_stopping = False
        self.unfinished: list[Delivery] = []  # Cancelled at the end; to be given back.
        self.is_cluster = False  # Follow-ups for streams of another slot go through an outbox.
        self.outbox_filled = asyncio.Event()
        self.next_retry_s = 0.0  # By the monotonic clock; 0: none is known.
        self.rate = None if handler.rate is None else Rate(handler.rate, self.start_more)
        self.pool = None if handler.is_async else Threads(handler.name, handler.concurrency, self.find_work)
        self.calls = Calls(handler, self.signature, app.hooks, values, self.pool, self.outlived)
        self.has_settle_hooks = self.hooks.has("before_ack", "after_ack", "before_retry", "after_retry", "after_bury")
        self.run_one = self.run_plain if handler.is_async and self.is_plain() else self.run_full

    def is_plain(self) -> bool:
        """Whether a message needs nothing but to be decoded and given to the function: the way that is kept short."""
        handler, signature = self.handler, self.signature
        return (
            handler.timeout_ms is None and handler.publish_to is None and handler.batch is None
            and not handler.runs_once
            and signature.message is not None and signature.context is None and not signature.injected
            and not self.has_settle_hooks and not self.hooks.has("before_process", "after_process")
        )  # fmt: skip

    def add_source(self, source: Source, *, keep: bool) -> None:
        self.settlers[source.stream] = Settler(
            source, self.outage, self.counters, self.acked, self.answered, self.refused, keep=keep
        )

    # Beginning

    def offer(self, deliveries: list[Delivery]) -> None:
        self.counters.read += len(deliveries)
        self.waiting.extend(deliveries)
        self.start_more()

    def start_more(self) -> None:
        """As many as may run now."""
        waiting, concurrency = self.waiting, self.handler.concurrency
        while waiting and self.running < concurrency and not self.is_stopping:
            if self.rate is not None and not self.rate.may_begin():
                return
            self.run_in_task(waiting.popleft())

    def run_in_task(self, delivery: Delivery) -> None:
        """Its task takes itself off the books: a callback would cost one more turn of the loop."""
        self.running += 1
        run = self.run_full if delivery.is_again else self.run_one
        task = delivery.task = self.loop.create_task(run(delivery))
        self.tasks.add(task)

    def spawn(self, coroutine: Any) -> None:
        """What is to be done beside messages."""
        task = self.loop.create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def find_work(self) -> bool:
        """For a thread that is free: here they are told what to do. See ThreadedRunner."""
        return False

    def stop(self) -> None:
        """No message begins any more."""
        self.is_stopping = True

    def take_waiting(self) -> list[Delivery]:
        """What has not begun; it will not."""
        waiting = list(self.waiting)
        self.waiting.clear()
        return waiting

    # One message

    async def run_plain(self, delivery: Delivery) -> None:
        """The short way: see is_plain."""
        try:
            await self.handler.function(self.signature.decode(delivery))
        except BaseException as error:
            await self.failed(delivery, error)
        else:
            self.settlers[delivery.stream].ack(delivery)
        finally:
            self.tasks.discard(delivery.task)
            self.ended(delivery)

    async def run_full(self, delivery: Delivery) -> None:
        try:
            if not self.must_begin(delivery) or await self.begin(delivery):
                message = None if self.signature.message is None else self.signature.decode(delivery)
                result = await self.call([delivery], message)
                await self.succeeded(delivery, result)
        except BaseException as error:
            await self.failed(delivery, error)
        finally:
            self.tasks.discard(delivery.task)
            self.ended(delivery)

    def ended(self, delivery: Delivery) -> None:  # noqa: ARG002 - a runner of ordered messages looks at it.
        """Its run is over, whatever came of it."""
        self.place_is_free()

    def place_is_free(self) -> None:
        self.running -= 1
        if self.waiting:
            self.start_more()

    def must_begin(self, delivery: Delivery) -> bool:
        return delivery.is_again or self.handler.runs_once

    async def begin(self, delivery: Delivery) -> bool:
        """Write down which attempt this is. False: not now, or not ours; or it has had all its attempts."""
        source = self.settlers[delivery.stream].source
        while True:
            try:
                started = await source.start(delivery)
                break
            except ConnectionLost as error:
                await self.outage.pause(error)
            except NotFound:
                source.drop(delivery)
                self.on_change()
                return False
            except HeadraceError as error:  # Not its fault: it costs no attempt.
                self.outage.refused(delivery.stream, self.handler.group, error)
                await asyncio.sleep(REFUSED_PAUSE_S)
        if started.attempt <= 0:
            if started.wait_ms:
                self.retry_in(started.wait_ms)
            source.drop(delivery)
            self.on_change()
            return False
        delivery.attempt, delivery.last_error = started.attempt, read_given_up(started.last_error).error
        if started.attempt > self.handler.retries.count + 1:
            delivery.attempt = self.handler.retries.count + 1
            await self.bury(delivery, read_given_up(started.last_error or WORKER_ENDED), started.attempt)
            return False
        return True

    async def call(self, deliveries: list[Delivery], message: Any) -> Any:
        """Run the function for one message, or for a batch, which is a list of them; what it returned."""
        return await self.calls.call(message, list(map(self.context, deliveries)) if self.calls.needs_contexts else [])

    def outlived(self, count: int) -> None:
        """So many threads more go on though their run was broken off; or fewer."""
        self.running += count
        self.outliving += count
        if count < 0:
            self.start_more()
            self.on_change()

    def context(self, delivery: Delivery) -> Context:
        return Context(self.handler, delivery, self.commit)

    # Its ending

    async def succeeded(self, delivery: Delivery, result: Any) -> None:
        if delivery.is_settled:
            return
        if self.has_settle_hooks:
            await self.hooks.run("before_ack", self.context(delivery))
        if result is None or self.handler.publish_to is None:
            self.settlers[delivery.stream].ack(delivery)
        else:
            await self.settle_with(Ack([delivery.id], [self.follow_up(self.handler.publish_to, result)]), [delivery])

    async def settle_with(self, clause: Ack, deliveries: Sequence[Delivery]) -> None:
        """Acknowledge together with follow-ups."""
        self.settlers[deliveries[0].stream].settle(clause, *deliveries)

    def follow_up(self, stream: str, payload: Any) -> Add:
        pairs = self.app.encode_entry(stream, payload)
        if self.is_cluster and tag_of(stream) != tag_of(self.handler.stream):
            return Add(stream_keys(self.handler.stream).outbox, [*pairs, (OUTBOX_TARGET, encode_text(stream))])
        return Add(stream, pairs)

    async def failed(self, delivery: Delivery, error: BaseException) -> None:
        """Anything that ends a run but a return: errors, also those that are no Exception, and being cancelled."""
        if isinstance(error, GeneratorExit) and asyncio.current_task(self.loop) not in self.tasks:
            raise error  # Not the handler's: the task itself is thrown away, with its loop.
        if self.is_stopping and isinstance(error, asyncio.CancelledError):
            self.unfinished.append(delivery)
            return
        if delivery.is_settled:
            events.warning("failed_after_commit", stream=delivery.stream, id=delivery.id, error=describe(error))
            return
        if isinstance(error, LeaseLost):
            self.answered(delivery, None, False)
            return
        self.counters.failed += 1
        decision = decide(error, delivery.attempt, self.handler.retries, random.random())  # noqa: S311 - spreads load.
        if isinstance(decision, GiveUp):
            await self.give_up(delivery, decision, delivery.attempt)
        else:
            await self.retry(delivery, decision, delivery.attempt)

    async def give_up(self, delivery: Delivery, decision: GiveUp, attempt: int) -> None:
        await self.bury(delivery, decision, attempt)

    async def retry(self, delivery: Delivery, decision: TryAgain, attempt: int) -> None:
        events.warning(
            "message_failed", stream=delivery.stream, group=self.handler.group, id=delivery.id,
            attempt=delivery.attempt, retry_in_ms=decision.delay_ms, error=decision.error,
        )  # fmt: skip
        if self.has_settle_hooks:
            await self.run_hooks("before_retry", delivery, decision.error)
        clause = worker_steps.Retry(delivery.id, decision.delay_ms, attempt, decision.record or decision.error)
        self.settlers[delivery.stream].settle(clause, delivery)

    async def bury(self, delivery: Delivery, decision: GiveUp, attempt: int) -> None:
        """To the dead letters, once everybody who wants to know was told. If that fails it stays, and is told again."""
        context = self.context(delivery)
        try:
            await self.burial.tell(context, decision.error)
        except BaseException as error:  # Users' code: whatever it raises, the message must not be lost.
            if self.is_stopping and isinstance(error, asyncio.CancelledError):
                self.unfinished.append(delivery)
                return
            events.error("on_bury_failed", stream=delivery.stream, id=delivery.id, error=describe(error))
            kept = max(attempt, self.handler.retries.count + 1)  # So the next time it is told at once.
            pause_ms = self.handler.retries.pause_ms(kept, random.random())  # noqa: S311 - spreads load.
            await self.retry(delivery, TryAgain(pause_ms, decision.error, write_given_up(decision)), kept)
            return
        events.error(
            "message_buried", stream=delivery.stream, group=self.handler.group, id=delivery.id,
            attempts=delivery.attempt, error=decision.error,
        )  # fmt: skip
        clause = worker_steps.Bury(delivery.id, decision.error, decision.traceback, delivery.attempt)
        self.settlers[delivery.stream].settle(clause, delivery)

    async def run_hooks(self, name: str, delivery: Delivery, *more: Any) -> None:
        """Around a settlement: the message goes its way whatever a hook does."""
        try:
            await self.hooks.run(name, self.context(delivery), *more)
        except BaseException as error:  # Users' code, as above.
            events.error("middleware_failed", hook=name, id=delivery.id, error=describe(error))

    # Its settlement

    def acked(self, source: Source, deliveries: list[Delivery]) -> None:
        """The server has acknowledged all of these, without more."""
        source.drop_all(deliveries)
        self.counters.done += len(deliveries)
        if self.has_settle_hooks:
            for delivery in deliveries:
                self.spawn(self.run_hooks("after_ack", delivery))
        self.on_change()

    def answered(self, delivery: Delivery, clause: Clause | None, was_ours: bool) -> None:
        """The server has settled it, or refused because it is another's."""
        self.settlers[delivery.stream].source.drop(delivery)
        counters = self.counters
        if not was_ours:
            counters.late += 1
            events.warning(
                "late_finish",
                stream=delivery.stream,
                group=self.handler.group,
                id=delivery.id,
                attempt=delivery.attempt,
            )
        elif clause is None or isinstance(clause, Ack):
            counters.done += 1
            if self.is_cluster:
                self.outbox_filled.set()
            if self.has_settle_hooks:
                self.spawn(self.run_hooks("after_ack", delivery))
        elif isinstance(clause, worker_steps.Retry):
            counters.retried += 1
            self.retry_in(clause.delay_ms)
            if self.has_settle_hooks:
                self.spawn(self.run_hooks("after_retry", delivery, read_given_up(clause.error).error))
        else:
            counters.buried += 1
            if self.has_settle_hooks:
                self.spawn(self.run_hooks("after_bury", delivery, clause.error))
        self.on_change()

    def retry_in(self, delay_ms: int) -> None:
        due_s = time.monotonic() + delay_ms / 1000
        if not self.next_retry_s or due_s < self.next_retry_s:
            self.next_retry_s = due_s

    def refused(self, delivery: Delivery, error: Exception) -> None:
        """Its settlement is impossible, as when publish_to names something that is no stream: a failed run."""
        self.spawn(self.failed(delivery, error))

    async def commit(self, delivery: Delivery, effects: list[Effect], publish: list[FollowUp]) -> None:
        """For ctx.commit: alone, as the server may refuse it."""
        settler = self.settlers[delivery.stream]
        source = settler.source
        adds = [self.follow_up(stream, payload) for stream, payload in publish]
        clause = Ack([delivery.id], adds, words_of(effects))
        flow = worker_steps.settle(
            source.client._facts, source.stream, source.group, source.consumer, [clause], keep=settler.keep
        )
        try:
            [was_ours] = await source.client.run(flow)
        except NotFound:
            was_ours = False
        if not was_ours:
            raise LeaseLost(
                f"message {delivery.id} is no longer this worker's: its lease ran out and another has it, or this "
                "commit was done and its answer lost. It was not done now."
            )
        delivery.is_settled = True
        self.answered(delivery, clause, True)


def words_of(effects: list[Effect]) -> list[list[Any]]:
    return [[str(word) if isinstance(word, float) else word for word in effect] for effect in effects]

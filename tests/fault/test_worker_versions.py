"""Rolling upgrade (row 312): workers of two versions side by side on one server, each with its own server functions.

The old ones are samples: the sources as they were when `functions.VERSION` had another number (tools/worker_sample.py).
Retries that one version has written down are run by the other, and so is what a killed worker of the other held.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from headrace import Client
from headrace.client.functions import LIBRARY
from support.command_line import headrace
from support.worker_processes import (
    SERVERS,
    WAIT_S,
    Crew,
    is_done,
    log_of,
    say,
    server_in_memory,
    start_process,
)

SAMPLES = sorted((Path(__file__).parents[1] / "samples" / "workers").glob("*.zip"))

# Every third message fails twice, every tenth always; who ran what is told.
SHOP = """
import asyncio, logging, sys
from headrace import App, Context, Retries
from headrace.client.functions import LIBRARY

app = App()

@app.handler("orders", group="billing", lease="500ms", retries=Retries(5, first="20ms", longest="50ms"), concurrency=5)
async def bill(number: int, ctx: Context) -> None:
    await app.client.command("RPUSH", "runs", f"{LIBRARY} {number} {ctx.attempt}")
    await asyncio.sleep(0.01)
    if number % 10 == 0 or (number % 3 == 0 and ctx.attempt < 3):
        raise ValueError("no")
    await ctx.commit([("HINCRBY", "hr:{orders}:done", number, 1)])

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    app.run(shutdown_timeout="1s")
"""


class MixedCrew(Crew):
    """Two old ones and two new ones, also after kills."""

    def __init__(self, folder: Path, url: str, sample: Path) -> None:
        super().__init__(folder, url, 4, {"orders": "billing"})
        self.sample = sample
        self.old: set[int] = set()

    def start_one(self) -> subprocess.Popen[str]:
        old = [process for process in self.workers if process.pid in self.old]
        if len(old) >= 2:
            return super().start_one()
        process = start_process(
            [sys.executable, "shop.py"], self.folder, {"HEADRACE_URL": self.url, "PYTHONPATH": str(self.sample)}
        )
        self.old.add(process.pid)
        return process


@pytest.mark.parametrize(
    ("messages", "kills"), [(300, 4), pytest.param(10_000, 100, marks=pytest.mark.long)], ids=["some", "many"]
)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("server", SERVERS)
def test_old_and_new_workers_side_by_side_lose_nothing(tmp_path, capsys, server, sample, messages, kills):
    (tmp_path / "shop.py").write_text(SHOP)
    chance = random.Random(messages)
    portion = messages // kills
    everything = kills * portion
    poison = {number for number in range(everything) if number % 10 == 0}
    with (
        server_in_memory(server) as url,
        Client(url, timeout="60s") as client,
        MixedCrew(tmp_path, url, sample) as crew,
    ):
        crew.wait_until(lambda: log_of(tmp_path).count("worker_started") == 4, "both versions")
        for number in range(kills):
            stream = client.stream("orders")
            for place in range(number * portion, (number + 1) * portion):
                stream.publish(place, id=f"order-{place}", delay=chance.choice([None, "50ms"]))
            crew.kill_one(chance)
        dead = client.stream("hr:{orders}:billing:dead")

        def is_quiet() -> bool:
            waiting = client.command("ZCARD", "hr:{orders}:delayed")
            return not waiting and is_done(client)

        crew.wait_until(is_quiet, "all to be settled", timeout_s=4 * WAIT_S)
        buried = {letter.payload for letter in dead.range()}
        done = {int(number): int(count) for number, count in pairs(client.command("HGETALL", "hr:{orders}:done"))}
        assert set(done) | buried == set(range(everything)) and set(done.values()) == {1}
        assert poison <= buried and not buried & set(done)
        runs = [item.decode().split() for item in client.command("LRANGE", "runs", 0, -1)]
        by_version = Counter(library for library, _, _ in runs)
        assert set(by_version) == {sample.stem, LIBRARY} != {LIBRARY}
        shared = {number for version, number, _ in runs if version == LIBRARY}
        shared &= {number for version, number, _ in runs if version != LIBRARY}
        assert shared  # Tried by one version and then by the other.
        if server != "headrace":
            libraries = str(client.command("FUNCTION", "LIST"))
            assert sample.stem in libraries and LIBRARY in libraries
        assert headrace("dlq", "replay", "orders", "billing", url=url).row["replayed"] == len(buried)
        crew.wait_until(lambda: dead.length() == len(poison), "those that fail always to be back", timeout_s=WAIT_S)
        say(capsys, f"runs by version: {dict(by_version)}; {len(shared)} messages met both; {len(buried)} buried")


def pairs(reply: object) -> list[tuple[bytes, bytes]]:
    assert isinstance(reply, (dict, list))
    return list(reply.items()) if isinstance(reply, dict) else list(zip(reply[::2], reply[1::2], strict=True))

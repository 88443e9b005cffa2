"""A program that uses a shared folder until it is killed, and writes down what it was promised.

    python folder_member.py FOLDER NAME PROMISES sync|async

Each line of PROMISES is a call that was answered: monotonic time in ms, what, and about which entry. A call whose
outcome is unknown is written down as "unsure". It ends by itself when its stdin does.
"""

import asyncio
import faulthandler
import os
import signal
import sys
import threading
import time

from headrace import AsyncClient, Client, ConnectionLost, Unreachable

TIMEOUT = "30s"


class Promises:
    def __init__(self, path: str) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, *words: object) -> None:
        line = " ".join(str(word) for word in (int(time.monotonic() * 1000), *words))
        os.write(self.file, f"{line}\n".encode())


def add(client: Client, name: str, promises: Promises) -> None:
    number = 0
    while True:
        try:
            promises.note("added", number, client.stream("orders").add({"by": name, "number": number}))
        except Unreachable:
            raise
        except ConnectionLost:
            promises.note("unsure", number)
        number += 1


def work(client: Client, name: str, promises: Promises) -> None:
    group = client.stream("orders").group("workers")
    while True:
        try:
            entries = group.read(name, count=10, wait="50ms")
            for entry in entries:
                promises.note("given", entry.id)
            for entry in entries[::2]:
                promises.note("asked", entry.id)
                group.ack(entry.id)
                promises.note("acked", entry.id)
        except ConnectionLost:
            promises.note("broken")


async def add_async(client: AsyncClient, name: str, promises: Promises) -> None:
    number = 0
    while True:
        try:
            promises.note("added", number, await client.stream("orders").add({"by": name, "number": number}))
        except Unreachable:
            raise
        except ConnectionLost:
            promises.note("unsure", number)
        number += 1


async def work_async(client: AsyncClient, name: str, promises: Promises) -> None:
    group = client.stream("orders").group("workers")
    while True:
        try:
            entries = await group.read(name, count=10, wait="50ms")
            for entry in entries:
                promises.note("given", entry.id)
            for entry in entries[::2]:
                promises.note("asked", entry.id)
                await group.ack(entry.id)
                promises.note("acked", entry.id)
        except ConnectionLost:
            promises.note("broken")


async def run_async(url: str, name: str, promises: Promises) -> None:
    async with AsyncClient(url, timeout=TIMEOUT) as client:
        await client.stream("orders").group("workers").create(start="beginning")
        promises.note("ready")
        tasks = [add_async(client, name, promises), work_async(client, name, promises)]
        running = [asyncio.create_task(task) for task in tasks]
        running.append(asyncio.create_task(asyncio.to_thread(sys.stdin.read)))
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def run(url: str, name: str, promises: Promises) -> None:
    with Client(url, timeout=TIMEOUT) as client:
        client.stream("orders").group("workers").create(start="beginning")
        promises.note("ready")
        for job in (add, work):
            threading.Thread(target=job, args=(client, name, promises), daemon=True).start()
        sys.stdin.read()


if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1)  # Says where it hangs.
    folder, name, path, flavour = sys.argv[1:]
    if flavour == "sync":
        run(f"embedded:{folder}", name, Promises(path))
    else:
        asyncio.run(run_async(f"embedded:{folder}", name, Promises(path)))

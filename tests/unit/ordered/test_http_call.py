"""Calls over HTTP: one time limit, kept connections, and errors that say what is known."""

import asyncio

import pytest

from headrace.errors import ConnectionLost, Unreachable
from headrace.ordered.http_call import Caller


def serve(talk):
    """Run a program beside a server whose connections are served by `talk(reader, writer)`."""

    def run(program):
        async def both():
            ended = []

            async def connected(reader, writer):
                end = asyncio.get_running_loop().create_future()
                ended.append(end)
                try:
                    await talk(reader, writer)
                finally:
                    writer.close()
                    await asyncio.gather(writer.wait_closed(), return_exceptions=True)
                    end.set_result(None)

            server = await asyncio.start_server(connected, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            caller = Caller()
            try:
                async with asyncio.timeout(30):
                    return await program(caller, f"http://127.0.0.1:{port}")
            finally:
                await caller.close()
                server.close()
                await asyncio.gather(*ended)

        return asyncio.run(both())

    return run


async def read_request(reader):
    return await reader.readuntil(b"\r\n\r\n")


def test_a_connection_is_used_again_and_replaced_when_it_was_closed():
    connections = []

    async def talk(reader, writer):
        connections.append(writer)
        for _ in range(2):  # The third request on it finds it closed.
            if not (await reader.read(65536)):
                break
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    async def program(caller, url):
        return [await caller.call("GET", url, timeout_s=10) for _ in range(5)]

    answers = serve(talk)(program)
    assert [(answer.status, answer.body) for answer in answers] == [(200, b"hi")] * 5
    assert len(connections) == 3


def test_an_answer_may_come_in_chunks_and_until_the_end():
    async def talk(reader, writer):
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")

    async def program(caller, url):
        return (await caller.call("GET", url, timeout_s=10)).body

    assert serve(talk)(program) == b"abcde"


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "said", [b"", b"nonsense\r\n\r\n", HEAD + b"Content-Length: 9\r\n\r\nhalf", HEAD + b"\r\n" + b"x" * 2000]
)
def test_an_answer_that_is_none_or_too_large_is_a_lost_connection(said):
    async def talk(reader, writer):
        await read_request(reader)
        writer.write(said)

    async def program(caller, url):
        with pytest.raises(ConnectionLost):
            await caller.call("GET", url, timeout_s=10, most_bytes=1000)

    serve(talk)(program)


def test_a_server_that_keeps_silent_is_given_up_after_the_time():
    async def talk(reader, writer):
        await reader.read()

    async def program(caller, url):
        with pytest.raises(ConnectionLost, match="within"):
            await caller.call("POST", url, body=b"{}", timeout_s=0.1)

    serve(talk)(program)


def test_nobody_there_means_that_nothing_was_sent():
    async def program():
        with pytest.raises(Unreachable):
            await Caller().call("GET", "http://127.0.0.1:1/", timeout_s=10)

    asyncio.run(program())

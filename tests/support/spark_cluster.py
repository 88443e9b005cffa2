"""A Spark standalone cluster of processes on this machine: one master, two workers, all from the pip package.

    with standalone_cluster(tmp_path) as master:      # "spark://127.0.0.1:PORT"
        ...

The package has no start scripts for them, but `spark-class` starts their classes.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from headrace.pipeline.session import variables

from .servers import free_port, wait_until

HOST = "127.0.0.1"
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
START_TIMEOUT_S = 60.0
END_TIMEOUT_S = 20.0
WORKERS = 2


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    port = free_port()
    master = f"spark://{HOST}:{port}"
    with ExitStack() as stack:
        start_daemon(
            stack, folder / "master", "master.Master", "--host", HOST, "--port", str(port), "--webui-port", "0"
        )
        wait_until(lambda: is_listening(port), "the master to listen", timeout_s=START_TIMEOUT_S)
        logs = []
        for number in range(WORKERS):
            place = folder / f"worker-{number}"
            options = ("--host", HOST, "--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(place))
            logs.append(start_daemon(stack, place, "worker.Worker", *options, master))
        for log in logs:
            wait_until(lambda log=log: has_registered(log), "a worker to register", timeout_s=START_TIMEOUT_S)  # type: ignore[misc]
        yield master


def start_daemon(stack: ExitStack, folder: Path, name: str, *options: str) -> Path:
    folder.mkdir(parents=True)
    log = folder / "daemon.log"
    environment = {**os.environ, **variables(os.environ, is_local=True), "PYSPARK_PYTHON": sys.executable}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [SPARK_CLASS, f"org.apache.spark.deploy.{name}", *options],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=folder,
            start_new_session=True,  # The script may leave its JVM as a child: they end together.
        )
    stack.callback(end_daemon, process)
    return log


def end_daemon(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def has_registered(log: Path) -> bool:
    return re.search(r"Successfully registered with master", log.read_text(errors="replace")) is not None

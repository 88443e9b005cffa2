"""A hundred tasks with Celery: `celery worker` as its own process, results in Redis, retries, delays.

Also the module that the worker imports: the URL comes from the environment there.
"""

import os
import subprocess
import sys
from pathlib import Path

from celery import Celery, chain, group
from celery.app.task import Task

JOBS = 100
PATIENCE_S = 120

url = sys.argv[1] if __name__ == "__main__" else os.environ["ECOSYSTEM_URL"]
app = Celery("celery_jobs", broker=url, backend=url)
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=4, broker_connection_retry_on_startup=True)


@app.task(name="double", bind=True, max_retries=3)
def double(self: Task, number: int) -> int:
    if number % 10 == 3 and self.request.retries == 0:
        raise self.retry(countdown=0.1)
    return 2 * number


def main() -> None:
    command = [sys.executable, "-m", "celery", "-A", "celery_jobs", "worker", "--pool", "threads", "--concurrency", "4"]
    worker = subprocess.Popen(
        [*command, "--loglevel", "WARNING"],
        cwd=Path(__file__).parent,
        env={**os.environ, "ECOSYSTEM_URL": url},
    )
    try:
        results = [double.apply_async((number,), countdown=number % 2) for number in range(JOBS)]
        assert [result.get(timeout=PATIENCE_S) for result in results] == [2 * number for number in range(JOBS)]
        assert group(double.s(number) for number in range(5, 10)).apply_async().get(timeout=PATIENCE_S) == [
            10,
            12,
            14,
            16,
            18,
        ]
        one_after_another = chain(double.s(1), double.s(), double.s()).apply_async()
        assert one_after_another.get(timeout=PATIENCE_S) == 8
        assert app.control.ping(timeout=5), "the worker answers over channels"
    finally:
        worker.terminate()
        worker.wait(PATIENCE_S)
    print(f"{JOBS} jobs done")


if __name__ == "__main__":
    main()

"""A hundred jobs with RQ: put into a queue, run by a burst worker, their results read back."""

import sys

from redis import Redis
from rq import Queue, SimpleWorker

JOBS = 100


def double(number: int) -> int:
    return 2 * number


def main(url: str) -> None:
    connection = Redis.from_url(url)
    queue = Queue("jobs", connection=connection)
    jobs = [queue.enqueue("rq_jobs.double", number) for number in range(JOBS)]
    assert queue.count == JOBS
    SimpleWorker([queue], connection=connection).work(burst=True, logging_level="WARNING")
    assert [job.return_value() for job in jobs] == [2 * number for number in range(JOBS)]
    assert queue.count == 0
    print(f"{JOBS} jobs done")


if __name__ == "__main__":
    main(sys.argv[1])

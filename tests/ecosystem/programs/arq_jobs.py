"""A hundred jobs with arq: put into the queue, some of them for later, run by a worker, their results read back."""

import asyncio
import sys
from typing import Any

from arq import Retry, create_pool
from arq.connections import RedisSettings
from arq.worker import Worker

JOBS = 100


async def double(ctx: dict[str, Any], number: int) -> int:
    if number % 10 == 3 and ctx["job_try"] == 1:
        raise Retry  # Every tenth job is tried again.
    return 2 * number


async def main(url: str) -> None:
    settings = RedisSettings.from_dsn(url)
    pool = await create_pool(settings)
    jobs = [await pool.enqueue_job("double", number, _defer_by=0.1 * (number % 2)) for number in range(JOBS)]
    assert None not in jobs
    again = await pool.enqueue_job("double", 0, _job_id=jobs[0].job_id)
    assert again is None, "a job with the same id is queued already"
    assert len(await pool.queued_jobs()) == JOBS

    worker = Worker([double], redis_settings=settings, burst=True, handle_signals=False, poll_delay=0.05)
    await worker.main()
    await worker.close()

    assert [await job.result(timeout=10) for job in jobs] == [2 * number for number in range(JOBS)]
    assert worker.jobs_complete == JOBS and worker.jobs_failed == 0
    assert len(await pool.all_job_results()) == JOBS
    await pool.aclose()
    print(f"{JOBS} jobs done")


asyncio.run(main(sys.argv[1]))

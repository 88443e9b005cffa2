"""A hundred tasks with Huey, run by its consumer in threads, their results read back."""

import sys

from huey import RedisHuey

JOBS = 100
PATIENCE_S = 60

huey = RedisHuey("jobs", url=sys.argv[1])


@huey.task()
def double(number: int) -> int:
    return 2 * number


def main() -> None:
    consumer = huey.create_consumer(workers=2, periodic=False)
    results = [double(number) for number in range(JOBS)]
    consumer.start()
    try:
        assert [result.get(blocking=True, timeout=PATIENCE_S) for result in results] == [2 * n for n in range(JOBS)]
    finally:
        consumer.stop(graceful=True)
    print(f"{JOBS} jobs done")


main()

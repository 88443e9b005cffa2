"""A message with Dramatiq, whose Redis broker is written in Lua."""

import sys

import dramatiq
from dramatiq.brokers.redis import RedisBroker

dramatiq.set_broker(RedisBroker(url=sys.argv[1]))


@dramatiq.actor
def double(number: int) -> int:
    return 2 * number


double.send(1)

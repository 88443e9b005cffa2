"""For the tests of people who use headrace: a broker that lives as long as a with block."""

from headrace.testing.running_broker import RunningBroker, running_broker

__all__ = ["RunningBroker", "running_broker"]

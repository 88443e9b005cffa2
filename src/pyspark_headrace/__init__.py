"""Registers `format("headrace")`: Spark imports every package named pyspark_* and takes its DefaultSource.

So the format is there wherever headrace is installed, on the driver and on executors, with nothing to call.
"""

from headrace.pipeline.source import HeadraceDataSource as DefaultSource

__all__ = ["DefaultSource"]

"""Settings of a Spark that starts quickly and has little to do."""

from __future__ import annotations

# Half the CPU time of the default: short runs spend it on compiling, checking classes and threads of the collector.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
SMALL = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.sql.shuffle.partitions": "2",
}

"""Random tests. Always the same examples, so that a failure is a change; `long` variants try many more."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `support`, whatever the import mode

settings.register_profile(
    "headrace", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("headrace")

"""Killed processes, bad disks, slow clients."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `support`, whatever the import mode

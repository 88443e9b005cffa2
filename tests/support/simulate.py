"""Play simulated lives of a broker (simulation.py) by their seeds, and say how it went.

    python tests/support/simulate.py 0 300       seeds 0 to 299
    python tests/support/simulate.py 4711        this one again, with every step it takes the same

A seed that fails is told with its number. The program starts itself anew with a fixed order of sets: otherwise the same
seed would not play the same life in another process.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.simulation import Simulation

CRASHES = 2
HASH_SEED = "0"


def play(seed: int, counts: Counter[str]) -> int:
    """One seed; a checksum of everything that was left on its disk."""
    simulation = Simulation(seed)
    try:
        simulation.run(CRASHES)
    except BaseException:
        print(f"seed {seed} failed, policy {simulation.policy}. Again: python tests/support/simulate.py {seed}")
        raise
    counts["lives"] += simulation.starts
    counts["kills"] += simulation.kills
    counts["crashes in a step"] += simulation.crashes
    counts["checkpoints"] += simulation.checkpoints
    counts["refusals"] += simulation.refusals
    files = sorted((name, bytes(content.data)) for name, content in simulation.disk.files.items())
    return zlib.crc32(repr((simulation.disk.steps, files)).encode())


def main() -> None:
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": HASH_SEED})
    numbers = [int(word) for word in sys.argv[1:]]
    first, end = numbers if len(numbers) == 2 else (numbers[0], numbers[0] + 1)
    counts: Counter[str] = Counter(seeds=end - first)
    checksum = 0
    for seed in range(first, end):
        checksum ^= play(seed, counts)
    print(json.dumps({**counts, "checksum": checksum}))


if __name__ == "__main__":
    main()

"""What was promised survives every crash: random lives of a broker on a fake disk (support/simulation.py).

A failure names its seed; `Simulation(seed).run(LIVES)` plays it again, step by step.
"""

import pytest

from support.simulation import Simulation

LIVES = 2


def play(seed: int, first_crash: int = 0) -> Simulation:
    simulation = Simulation(seed)
    try:
        simulation.run(LIVES, first_crash)
    except BaseException as error:
        error.add_note(f"seed {seed}, policy {simulation.policy}, first crash at step {first_crash or 'by chance'}")
        raise
    return simulation


def test_nothing_promised_is_lost_in_300_random_lives() -> None:
    played = [play(seed) for seed in range(300)]

    assert sum(simulation.checkpoints for simulation in played) > 300
    assert sum(simulation.refusals for simulation in played) > 30


def test_nothing_promised_is_lost_at_any_step_of_a_life() -> None:
    for first_crash in range(1, 150):
        play(1_000_000, first_crash)


@pytest.mark.long
def test_nothing_promised_is_lost_in_10_000_random_lives() -> None:
    for seed in range(10_000):
        play(seed)

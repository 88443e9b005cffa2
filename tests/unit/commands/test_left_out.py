"""Commands that are left out say so, in one sentence."""

from __future__ import annotations

import pytest

from support.memory import MemoryBroker, Refusal


@pytest.mark.parametrize("command", ["EVAL_RO x 0", "evalsha_ro x 0", "FCALL f 0", "FCALL_RO f 0", "FUNCTION LIST"])
def test_commands_for_scripts_are_unknown_and_say_why(broker: MemoryBroker, command: str) -> None:
    refused = broker(command)
    name = command.split()[0]
    assert isinstance(refused, Refusal)
    assert str(refused).startswith(f"ERR unknown command '{name}': headrace runs no Lua, because ")
    assert "\n" not in str(refused)
    assert broker("COMMAND", "INFO", name) == [None]


@pytest.mark.parametrize(
    "command",
    [
        ["EVAL", "return 1", 0], ["EVAL", "", "x"], ["EVALSHA", "abc", 0], ["SCRIPT", "LOAD", "return 1"],
        ["SCRIPT", "KILL"], ["SCRIPT", "FLUSH"], ["SCRIPT", "HELP"],
    ],
)  # fmt: skip
def test_a_script_is_refused_with_the_reason(broker: MemoryBroker, command: list[str | int]) -> None:
    refused = broker(*command)
    assert isinstance(refused, Refusal)
    assert str(refused).startswith("ERR headrace runs no Lua, because ")
    assert "\n" not in str(refused)


def test_a_script_that_is_unknown_does_not_exist(broker: MemoryBroker) -> None:
    assert broker("SCRIPT EXISTS 0000000000000000000000000000000000000000") == [0]


def test_a_command_for_scripts_spoils_a_transaction(broker: MemoryBroker) -> None:
    broker("MULTI")
    assert isinstance(broker("FCALL", "f", 0), Refusal)
    assert broker("EXEC") == Refusal("EXECABORT Transaction discarded because of previous errors.")

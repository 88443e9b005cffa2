"""Commands that are left out say so, in one sentence."""

from __future__ import annotations

import pytest

from support.memory import MemoryBroker, Refusal


@pytest.mark.parametrize(
    "command",
    ["EVAL return\\ 1 0", "evalsha abc 0", "EVAL_RO x 0", "EVALSHA_RO x 0", "SCRIPT LOAD x", "SCRIPT", "FCALL f 0",
     "FCALL_RO f 0", "FUNCTION LIST", "function"],
)  # fmt: skip
def test_scripts_are_refused_with_the_reason(broker: MemoryBroker, command: str) -> None:
    refused = broker(command)
    name = command.split()[0]
    assert isinstance(refused, Refusal)
    assert str(refused).startswith(f"ERR unknown command '{name}': headrace runs no Lua, because ")
    assert "\n" not in str(refused)
    assert broker("COMMAND", "INFO", name) == [None]


def test_a_script_in_a_transaction_spoils_it(broker: MemoryBroker) -> None:
    broker("MULTI")
    assert isinstance(broker("EVAL", "return 1", 0), Refusal)
    assert broker("EXEC") == Refusal("EXECABORT Transaction discarded because of previous errors.")

"""How a headrace command ends. Scripts rely on these numbers; docs/command-line.md lists them."""

OK = 0
FAILURE = 1
USAGE = 2  # Wrong options or arguments; Typer uses the same number.
NOT_FOUND = 3
CANNOT_CONNECT = 4
CHECK_FAILED = 5

"""How a headrace command ends. Scripts rely on these numbers; docs/command-line.md lists them."""

OK = 0
FAILURE = 1
USAGE = 2  # Wrong options or arguments; Typer uses the same number.
NOT_FOUND = 3
CANNOT_CONNECT = 4
CHECK_FAILED = 5
INTERRUPTED = 130  # Ctrl-C; as a shell tells it: 128 and the number of SIGINT.
CLOSED_PIPE = 141  # Whoever read our output went away, as head does; 128 and the number of SIGPIPE.

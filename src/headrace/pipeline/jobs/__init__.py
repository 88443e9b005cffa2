"""The jobs: archive, trim, replay, query, compact. Each is a function here and a command of the CLI."""

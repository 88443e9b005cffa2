"""The headrace command: main.py, and one file per subcommand."""

"""Bytes <-> values of the Redis protocol. Knows RESP; knows no command name and no socket."""

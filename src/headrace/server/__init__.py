"""The broker's skin: its listening sockets and the talk with each client."""

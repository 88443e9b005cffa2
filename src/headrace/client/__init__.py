"""The one door to a broker, whichever it is: ours, Redis or Valkey. redis-py does the networking."""

"""Workers: processes that read an App's streams, run its handlers and settle every message."""

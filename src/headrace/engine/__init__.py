"""The data and its verbs (append, deliver, ack, claim). Pure: no socket, no clock, no disk; time arrives as now_ms."""

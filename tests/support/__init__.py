"""Shared by conformance and property tests: real servers, a raw client and the session notation.

servers.py   which servers are here, and how to start and stop one
wire.py      a client that shows every reply type as it came
notation.py  replies as text, and text as an expected reply
session.py   plays a written session against a server
recording.py replies of a real server, kept in files
catalogue.py what a server says about its stream commands
memory.py    a broker in memory, with a clock moved by hand
"""

"""Our sentence is found in what Spark makes of our exceptions. Real failures are in tests/spark/test_session.py."""

from headrace.errors import ConfigError, NotFound
from headrace.pipeline.spark_errors import explain_error

STREAM_FAILED = """\
[STREAM_FAILED] Query [id = 5a97, runId = 88ac] terminated with exception: [PYTHON_DATA_SOURCE_ERROR] Failed to plan: \
Traceback (most recent call last):
  File "source.py", line 40, in streamReader
    raise NotFound("there is no stream 'orders'.")
headrace.errors.NotFound: there is no stream 'orders'.

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "runner.py", line 295, in main
UnboundLocalError: cannot access local variable 'reader' where it is not associated with a value
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
Current State: INITIALIZING
"""


def test_an_exception_of_ours_is_its_own_sentence() -> None:
    assert explain_error(ConfigError("say which streams.")) == "say which streams."
    assert explain_error(NotFound("there is no stream 'a'.", "ERR", "a")) == "there is no stream 'a'."


def test_the_sentence_is_found_within_a_traceback() -> None:
    assert explain_error(RuntimeError(STREAM_FAILED)) == "there is no stream 'orders'."


def test_the_error_raised_last_is_the_one_told() -> None:
    text = "headrace.errors.ConnectionLost: broke\n\nTraceback:\nheadrace.errors.Unreachable: given up after 3 tries"

    assert explain_error(RuntimeError(text)) == "given up after 3 tries"


def test_the_sentence_is_found_in_a_cause() -> None:
    error = RuntimeError("the job failed")
    error.__cause__ = ValueError("headrace.errors.Refused: the archive has a gap.")

    assert explain_error(error) == "the archive has a gap."


def test_errors_of_others_have_no_sentence_of_ours() -> None:
    own_cause = RuntimeError("a loop")
    own_cause.__cause__ = own_cause

    assert explain_error(RuntimeError("java.lang.OutOfMemoryError: Java heap space")) is None
    assert explain_error(own_cause) is None

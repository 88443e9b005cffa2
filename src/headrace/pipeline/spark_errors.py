"""Our sentence inside Spark's exceptions.

Sources and sinks run in processes beside Spark; what they raise comes back as the text of its traceback, inside an
AnalysisException, a PythonException or a StreamingQueryException. The person who asked needs only the last line of it:

    headrace.errors.NotFound: there is no stream 'orders'. …
"""

import re
from typing import Final

from headrace import errors
from headrace.errors import HeadraceError

OUR_LINE: Final = re.compile(r"^headrace\.errors\.(\w+): (.+)$", re.MULTILINE)
MOST_CAUSES: Final = 20  # An exception may be its own cause.


def explain_error(error: BaseException) -> str | None:
    """The sentence of the HeadraceError that this exception is, carries or was caused by; None when there is none."""
    found = find_error(error)
    return None if found is None else str(found)


def find_error(error: BaseException) -> HeadraceError | None:
    """The same as an exception of its own kind."""
    cause: BaseException | None = error
    for _ in range(MOST_CAUSES):
        if cause is None:
            return None
        if isinstance(cause, HeadraceError):
            return cause
        lines = OUR_LINE.findall(str(cause))
        if lines:
            name, sentence = lines[-1]  # The last one was raised last, from those before it.
            kind = getattr(errors, name, HeadraceError)
            return kind(sentence.strip()) if issubclass(kind, HeadraceError) else HeadraceError(sentence.strip())
        cause = cause.__cause__ or cause.__context__
    return None

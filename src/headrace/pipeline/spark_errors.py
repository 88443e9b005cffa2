"""Our sentence inside Spark's exceptions.

Sources and sinks run in processes beside Spark; what they raise comes back as the text of its traceback, inside an
AnalysisException, a PythonException or a StreamingQueryException. The person who asked needs only the last line of it:

    headrace.errors.NotFound: there is no stream 'orders'. …
"""

import re
from typing import Final

from headrace.errors import HeadraceError

OUR_LINE: Final = re.compile(r"^headrace\.errors\.\w+: (.+)$", re.MULTILINE)
MOST_CAUSES: Final = 20  # An exception may be its own cause.


def explain_error(error: BaseException) -> str | None:
    """The sentence of the HeadraceError that this exception is, carries or was caused by; None when there is none."""
    cause: BaseException | None = error
    for _ in range(MOST_CAUSES):
        if cause is None:
            return None
        if isinstance(cause, HeadraceError):
            return str(cause)
        sentences = OUR_LINE.findall(str(cause))
        if sentences:
            return str(sentences[-1]).strip()  # The last one was raised last, from those before it.
        cause = cause.__cause__ or cause.__context__
    return None

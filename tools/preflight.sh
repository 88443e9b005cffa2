#!/bin/sh
# Names everything this machine lacks for "make setup", all at once, one sentence each.
# Exit 1 when something is missing; a missing C compiler is only worth a note.

python=${PYTHON:-python3}
missing=0

lack() {
    printf 'missing: %s\n' "$1" >&2
    missing=1
}

# One start of Python answers all questions; it prints one word for each thing it lacks.
ask='
import sys
if sys.version_info < (3, 11):
    print("version")
    sys.exit()
import importlib.util, os, sysconfig
for name in ("venv", "ensurepip", "ssl"):
    if importlib.util.find_spec(name) is None:
        print(name)
if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
    print("headers")
'

if ! command -v "$python" >/dev/null 2>&1; then
    lack "\"$python\" was not found; install Python 3.11 or newer (Debian: apt install python3), or name one with make PYTHON=/path/to/python3."
    lacks=
else
    lacks=$("$python" -c "$ask") || lack "\"$python\" does not run; name a working Python with make PYTHON=/path/to/python3."
fi

for word in $lacks; do
    case $word in
    version) lack "\"$python\" is older than Python 3.11; install a newer one, or name one with make PYTHON=/path/to/python3." ;;
    venv | ensurepip) lack "\"$python\" has no $word module (Debian: apt install python3-venv)." ;;
    ssl) lack "\"$python\" has no ssl module, so packages cannot be downloaded; use a Python that was built with OpenSSL." ;;
    headers) no_headers=yes ;;
    esac
done

if ! command -v make >/dev/null 2>&1; then
    lack "\"make\" was not found (Debian: apt install make)."
fi
if [ ! -w . ]; then
    lack "this folder cannot be written to; the environments are made inside it."
fi

if ! command -v bash >/dev/null 2>&1; then
    echo "note: there is no bash, which Spark is started by, so the pipeline and its tests cannot run (Debian: apt install bash)." >&2
fi
if [ -z "$HEADRACE_PURE" ]; then
    if ! command -v "${CC:-cc}" >/dev/null 2>&1; then
        echo "note: there is no C compiler, so the broker runs as plain Python: the same, but slower (Debian: apt install gcc python3-dev)." >&2
    elif [ -n "$no_headers" ]; then
        echo "note: the Python headers are missing, so the broker runs as plain Python: the same, but slower (Debian: apt install python3-dev)." >&2
    fi
fi

exit $missing

"""The jobs for spark-submit, in the words of `headrace pipeline`:

    spark-submit --master spark://host:7077 "$(python -m headrace.pipeline.submit --path)" archive orders --to /lake

`--path` tells where this file is. The master, memory and whatever else spark-submit was told are those of the job.
"""

import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve()


def main(words: list[str]) -> None:
    if words == ["--path"]:
        print(HERE)  # noqa: T201 - what was asked for.
        return
    # Python puts the folder of a script first: our own modules would be found there a second time, by other names.
    sys.path[:] = [folder for folder in sys.path if Path(folder or ".").resolve() != HERE.parent]
    sys.argv = ["headrace", "pipeline", *words]
    import_module("headrace.cli.main").run()  # By name: this room has no door to the command line, only this script.


if __name__ == "__main__":
    main(sys.argv[1:])

"""Runs the pipeline of this folder with `spark-pipelines`, and shows the table it makes.

    python examples/spark/pipeline/run.py
    python examples/spark/pipeline/run.py --url redis://localhost:6379 --folder ./visits

Spark's script wants a Java, and a spec with a whole path in it: both are seen to here. Run it again with the same
folder and only new visits are read.
"""

import argparse
import os
import re
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet
import pyspark

from headrace import Client
from headrace.pipeline.session import variables
from headrace.testing import running_broker

HERE = Path(__file__).parent
REMEMBER_TABLES = ("--conf", "spark.sql.catalogImplementation=hive")  # Else the next run knows nothing of its tables.
PAGES = ("/", "/tea", "/", "/milk", "/tea", "/")


def main(url: str, folder: str) -> dict[str, int]:
    """One run; the visits of each page by then."""
    whole = Path(folder).resolve()
    spec = (HERE / "spark-pipeline.yml").read_text("utf-8")
    spec = re.sub(r"^storage: .*", f"storage: {(whole / 'checkpoints').as_uri()}", spec, flags=re.MULTILINE)
    (whole / "spark-pipeline.yml").write_text(spec, "utf-8")
    shutil.copy(HERE / "definitions.py", whole)
    script = Path(pyspark.__file__).parent / "bin" / "spark-pipelines"
    environment = os.environ | variables(os.environ, is_local=True) | {"HEADRACE_URL": url}
    subprocess.run([script, "run", *REMEMBER_TABLES], cwd=whole, env=environment, check=True)
    table = pyarrow.parquet.read_table(whole / "spark-warehouse" / "visits_per_page")
    return dict(sorted(zip(*table.to_pydict().values(), strict=True)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--url")
    parser.add_argument("--folder")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = given.folder or stack.enter_context(TemporaryDirectory())
        url = given.url or stack.enter_context(running_broker()).url
        if not given.url:
            with Client(url) as client:
                client.stream("visits").add_many({"page": page} for page in PAGES)
        print(main(url, folder))

"""Writes requirements/*.txt: the newest versions that satisfy pyproject.toml and requirements/*.in, with hashes.

The pins are universal (every platform and Python we support) and name no package index. uv does the resolving; it is
fetched into build/pins-env and is not needed for anything else.
"""

import subprocess
import sys
from pathlib import Path

UV = Path("build/pins-env/bin/uv")
EXTRAS = ["--extra", "fast", "--extra", "valkey", "--extra", "web"]


def main() -> None:
    if not UV.exists():
        subprocess.run([sys.executable, "-m", "venv", "build/pins-env"], check=True)
        subprocess.run(["build/pins-env/bin/python", "-m", "pip", "install", "--quiet", "uv"], check=True)
    pin("test", ["pyproject.toml", *EXTRAS, "requirements/test.in"])
    # Constrained by test.txt, so that both environments hold the same versions.
    inputs = ["requirements/test.in", "requirements/dev.in", "-c", "requirements/test.txt"]
    pin("dev", ["pyproject.toml", *EXTRAS, *inputs])
    # Beside dev.txt in .venv, so it must not ask for other versions of what is there.
    pin("spark", ["pyproject.toml", "--extra", "spark", "-c", "requirements/dev.txt"])
    pin("docs", ["requirements/docs.in"])
    pin("ecosystem", ["requirements/ecosystem.in"])
    pin("arq", ["requirements/arq.in"])
    pin("peers", ["requirements/peers.in"])


def pin(name: str, sources: list[str]) -> None:
    output = Path(f"requirements/{name}.txt")
    command = [str(UV), "pip", "compile", "--quiet", "--upgrade", "--universal", "--python-version", "3.11"]
    command += ["--generate-hashes", "--no-header", "--no-annotate", *sources, "--output-file", str(output)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    pins = output.read_text("utf-8")
    output.write_text(f"# Written by make pins; do not edit.\n{pins}", "utf-8")
    print(f"{output}: {sum('==' in line.split(';')[0] for line in pins.splitlines())} packages")


main()

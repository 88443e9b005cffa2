"""Makes the environments that the Makefile works in, and leaves alone what is already right.

    python3 tools/setup.py venv        .venv: pinned tools, the project editable and plain
    python3 tools/setup.py compiled    build/compiled: pinned packages, the project as a compiled wheel
    python3 tools/setup.py spark       .venv once more: PySpark, its companions and a Java beside what is there
    python3 tools/setup.py docs        build/docs-env: the site generator
    python3 tools/setup.py ecosystem   build/ecosystem-env and build/arq-env: other people's libraries
    python3 tools/setup.py peers       build/peers-env: those that bench/worker.py measures
    python3 tools/setup.py python      prints the fastest Python that has the project: compiled where it could be built

Each environment holds a stamp: a digest of all it was made from. It is written last, so an interrupted run is simply
repeated. Needs the standard library only; runs on the Python that will be inside the environments.
"""

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
VENV = Path(".venv")
COMPILED = Path("build/compiled")
DOCS = Path("build/docs-env")
ECOSYSTEM = ("ecosystem", "arq")  # arq wants an older redis-py than the others.
LOGS = Path("build/logs")
STAMP = "headrace-stamp"
SHIPPED = (".py", ".lua", ".properties")  # What of src/ is in the wheel.
SPARK_STAMP = f"{STAMP}-spark"


class SetupFailed(Exception):
    """A step failed; the text says which one and where its output is."""


def main(arguments: list[str]) -> int:
    os.chdir(ROOT)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # As Ctrl-C: ends its children too.
    steps = {"venv": make_venv, "compiled": make_compiled, "spark": make_spark, "docs": make_docs}
    steps |= {"ecosystem": make_ecosystem, "peers": make_peers}
    if arguments == ["python"]:
        print(python_of(COMPILED if build_in(COMPILED) == "compiled" else VENV))
        return 0
    if not arguments or any(name not in steps for name in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with one_at_a_time():
            for name in arguments:
                steps[name]()
    except SetupFailed as failure:
        print(f"set-up failed: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("set-up was interrupted; the next run goes on from here", file=sys.stderr)
        return 130
    return 0


def make_venv() -> None:
    digest = digest_of([Path("pyproject.toml"), Path("setup.py"), Path("requirements/dev.txt")])
    if stamp_of(VENV)[0] == digest:
        return
    say("making .venv: pinned tools, and headrace editable as plain Python")
    make_environment(VENV, Path("requirements/dev.txt"))
    editable = ["install", "--no-deps", "--no-build-isolation", "--editable", "."]
    run("install-editable", [*pip_of(VENV), *editable], pure=True)
    write_stamp(VENV, digest, "plain")


def make_compiled() -> None:
    make_venv()
    sources = sorted(path for path in Path("src").rglob("*") if path.suffix in SHIPPED or path.name == "py.typed")
    digest = digest_of([Path("pyproject.toml"), Path("setup.py"), Path("requirements/test.txt"), *sources])
    if stamp_of(COMPILED)[0] == digest:
        return
    say("making build/compiled: headrace compiled with mypyc (a few minutes the first time)")
    make_environment(COMPILED, Path("requirements/test.txt"))
    wheel = build_wheel()
    run("install-wheel", [*pip_of(COMPILED), "install", "--no-deps", "--no-index", "--force-reinstall", str(wheel)])
    build = loaded_build(COMPILED)
    if build == "plain":
        say(f"build/compiled: built as plain Python, the same but slower; {LOGS / 'wheel.log'} says why")
    write_stamp(COMPILED, digest, build)


def make_spark() -> None:
    """Part of .venv with a stamp of its own, which is lost with it; style and types need no Spark."""
    make_venv()
    requirements = Path("requirements/spark.txt")
    digest = digest_of([requirements])
    if stamp_of(VENV, SPARK_STAMP)[0] == digest:
        return
    say("adding Spark to .venv (a minute or two the first time)")
    # PySpark comes as source: what builds it are the pinned tools of .venv, as for the project itself.
    install(VENV, requirements, "--no-build-isolation")
    write_stamp(VENV, digest, "spark", SPARK_STAMP)


def make_docs() -> None:
    digest = digest_of([Path("requirements/docs.txt")])
    if stamp_of(DOCS)[0] == digest:
        return
    say("making build/docs-env: the site generator")
    make_environment(DOCS, Path("requirements/docs.txt"))
    write_stamp(DOCS, digest, "docs")


def make_ecosystem() -> None:
    for name in ECOSYSTEM:
        make_others(name)


def make_peers() -> None:
    make_others("peers")


def make_others(name: str) -> None:
    environment = Path(f"build/{name}-env")
    requirements = Path(f"requirements/{name}.txt")
    digest = digest_of([requirements])
    if stamp_of(environment)[0] != digest:
        say(f"making {environment}: other people's libraries")
        make_environment(environment, requirements)
        write_stamp(environment, digest, name)


def build_wheel() -> Path:
    """The compiled wheel. What the last build left is used again where it is sound, so only changes are compiled."""
    made_from = digest_of([Path("pyproject.toml"), Path("setup.py")]) + " ".join(hot_modules())
    note = Path("build/setuptools/made-from")
    if not note.exists() or note.read_text("utf-8") != made_from:
        shutil.rmtree("build/setuptools", ignore_errors=True)
        shutil.rmtree("build/mypyc", ignore_errors=True)
    note.unlink(missing_ok=True)  # Until this build has ended well: an interrupted one may leave half a file.
    # setuptools packs whatever lies in its folder, also modules that were deleted or renamed since.
    for source in Path("build/setuptools").glob("lib*/**/*.py"):
        source.unlink()
    wheels = Path("build/wheels")
    shutil.rmtree(wheels, ignore_errors=True)
    command = ["wheel", "--verbose", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), "."]
    run("wheel", [*pip_of(VENV), *command])
    note.write_text(made_from, "utf-8")
    [wheel] = wheels.glob("headrace-*.whl")
    return wheel


def make_environment(environment: Path, requirements: Path) -> None:
    (environment / STAMP).unlink(missing_ok=True)
    if stamp_made_for(environment) != made_for():
        shutil.rmtree(environment, ignore_errors=True)
        run("venv", [sys.executable, "-m", "venv", str(environment)])
        (environment / f"{STAMP}-python").write_text(made_for(), "utf-8")
    install(environment, requirements)


def install(environment: Path, requirements: Path, *options: str) -> None:
    command = ["install", "--no-input", "--require-hashes", *options, "--requirement", str(requirements)]
    run(f"install-{requirements.stem}", [*pip_of(environment), *command])


def made_for() -> str:
    """An environment knows its own path and its Python; after a move or an upgrade it must be made anew."""
    return f"{ROOT}\n{sys.version}\n{os.path.realpath(sys.executable)}\n"


def stamp_made_for(environment: Path) -> str:
    try:
        return (environment / f"{STAMP}-python").read_text("utf-8")
    except OSError:
        return ""


def digest_of(files: Iterable[Path]) -> str:
    digest = hashlib.sha256(made_for().encode())
    digest.update(f"{os.environ.get('HEADRACE_PURE', '')} {shutil.which(os.environ.get('CC', 'cc'))}".encode())
    for path in files:
        digest.update(f"\n{path}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def stamp_of(environment: Path, name: str = STAMP) -> tuple[str, str]:
    """(digest, build) of a finished environment, else two empty strings."""
    try:
        digest, build = (environment / name).read_text("utf-8").split()
    except (OSError, ValueError):
        return "", ""
    return digest, build


def write_stamp(environment: Path, digest: str, build: str, name: str = STAMP) -> None:
    (environment / name).write_text(f"{digest} {build}\n", "utf-8")


def build_in(environment: Path) -> str:
    return stamp_of(environment)[1]


def loaded_build(environment: Path) -> str:
    """Says "compiled" when every hot module was installed with its extension module, which wins the import."""
    [packages] = environment.glob("lib/python*/site-packages")
    compiled = [any(packages.glob(name.replace(".", "/") + ".*.so")) for name in hot_modules()]
    return "compiled" if compiled and all(compiled) else "plain"


def hot_modules() -> list[str]:
    settings = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))
    hot = {path for pattern in settings["tool"]["headrace"]["hot"] for path in Path().glob(pattern)}
    return sorted(".".join(path.with_suffix("").parts[1:]) for path in hot if path.name != "__init__.py")


def python_of(environment: Path) -> Path:
    return environment / "bin" / "python"


def pip_of(environment: Path) -> list[str]:
    return [str(python_of(environment)), "-m", "pip", "--disable-pip-version-check"]


def run(step: str, command: list[str], *, pure: bool = False) -> None:
    """Runs one step with its output in build/logs, of which the end is shown only when the step fails."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{step}.log"
    environment = os.environ | ({"HEADRACE_PURE": "1"} if pure else {})
    environment.pop("PYTHONPATH", None)
    environment.pop("VIRTUAL_ENV", None)
    with log.open("wb") as output:
        code = run_with_all_children(command, output, environment)
    if code != 0:
        for line in log.read_text("utf-8", "replace").splitlines()[-25:]:
            print(f"  {line}", file=sys.stderr)
        raise SetupFailed(f"step {step} ended with code {code}; all of its output is in {log}")


def run_with_all_children(command: list[str], output: IO[bytes], environment: dict[str, str]) -> int:
    """Runs the command in a group of its own; after Ctrl-C no grandchild goes on writing into our folders."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )
    try:
        return process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


@contextmanager
def one_at_a_time() -> Iterator[None]:
    Path("build").mkdir(exist_ok=True)
    with Path("build/setup.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another set-up is running in this folder; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say(text: str) -> None:
    print(f"set-up: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

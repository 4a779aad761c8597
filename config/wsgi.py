"""WSGI entry point: `gunicorn config.wsgi`."""

import gc
import os
from collections.abc import Callable, Iterable
from tempfile import SpooledTemporaryFile
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# A database that says nothing must not hold a thread for ever; migrations and workers may wait.
os.environ.setdefault("DATABASE_READ_TIMEOUT", "30")

_CHUNK = 64 * 1024
_IN_MEMORY = 1024 * 1024

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def measured(application: Application) -> Application:
    """Give a body that comes in chunks its length: Django takes one without a length for empty, and would lose it.

    No more is read than MAX_BODY_BYTES and a little, which is enough for the body to be refused as too large.
    """

    def call(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        is_chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
        if not is_chunked or not environ.get("wsgi.input_terminated"):
            return application(environ, start_response)
        with SpooledTemporaryFile(max_size=_IN_MEMORY) as body:
            while body.tell() <= settings.MAX_BODY_BYTES and (chunk := environ["wsgi.input"].read(_CHUNK)):
                body.write(chunk)
            environ["CONTENT_LENGTH"] = str(body.tell())
            body.seek(0)
            environ["wsgi.input"] = body
            return application(environ, start_response)

    return call


application = measured(get_wsgi_application())

# What is loaded now stays until the end: the collector need not look at it again and again. Most of what a request
# makes goes without the collector, which else takes a fifth of the time of recording traces.
gc.collect()
gc.freeze()
gc.set_threshold(10_000, 20, 20)

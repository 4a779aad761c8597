"""What the server hands over: a body that comes in chunks is the same body."""

from __future__ import annotations

import json
from io import BytesIO
from wsgiref.util import setup_testing_defaults

import pytest

from config.wsgi import application
from sessions_app.models import DiagnosisSession

pytestmark = pytest.mark.django_db(transaction=True)  # each request closes its connection


@pytest.fixture
def send_in_chunks(new_key):
    """Call the application as gunicorn does for `Transfer-Encoding: chunked`: no length, an input that ends."""

    def send(method: str, path: str, body: bytes) -> str:
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "HTTP_HOST": "localhost",
            "HTTP_AUTHORIZATION": f"Bearer {new_key('ingest')}",
            "CONTENT_TYPE": "application/json",
            "HTTP_TRANSFER_ENCODING": "chunked",
            "wsgi.input": BytesIO(body),
            "wsgi.input_terminated": True,
        }
        setup_testing_defaults(environ)
        said = []
        list(application(environ, lambda status, *_: said.append(status[:3])))
        return said[0]

    return send


def test_a_body_in_chunks_is_recorded(send_in_chunks):
    body = {"sessionId": "s1", "status": "SUCCESS", "answer": "答" * 100_000}
    assert send_in_chunks("POST", "/api/sessions", json.dumps(body).encode()) == "201"
    assert send_in_chunks("PATCH", "/api/sessions/s1", b'{"query": "why?"}') == "200"
    stored = DiagnosisSession.objects.get()
    assert (stored.query, stored.answer) == ("why?", "答" * 100_000)


def test_a_body_in_chunks_is_bounded(send_in_chunks, settings):
    settings.MAX_BODY_BYTES = 100_000
    assert send_in_chunks("POST", "/api/sessions", b" " * 200_000) == "413"
    assert not DiagnosisSession.objects.exists()

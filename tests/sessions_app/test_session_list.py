"""The list of sessions: its pages and what it may be asked."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime

import pytest

from sessions_app.models import DiagnosisSession
from tests.factories import SessionFactory

pytestmark = pytest.mark.django_db


def test_more_sessions_of_one_moment_than_drf_counts_are_paged_through(api):
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    DiagnosisSession.objects.bulk_create(SessionFactory.build(created_at=moment) for _ in range(1_250))
    seen: list[str] = []
    url = "/api/sessions?limit=200"
    while url:
        page = api.get(url).json()
        seen += [row["sessionId"] for row in page["results"]]
        url = page["next"]
        assert len(seen) <= 1_250
    assert len(set(seen)) == 1_250


@pytest.mark.parametrize("position", ["p=garbage", "p=2026-13-45", "p=", "r=1&p=x", "p=%00", "p=2026-01-01T00:00:00"])
def test_a_cursor_that_is_not_ours_is_an_unknown_page(api, position):
    answer = api.get("/api/sessions", {"cursor": b64encode(position.encode()).decode()})
    assert answer.status_code == 404
    assert answer.json()["success"] is False


@pytest.mark.parametrize("score", ["-1e9999999", "1e-9999999", "1e9999999", "-1", "101", "30.5", "nan"])
def test_a_score_out_of_bounds_is_refused_at_once(api, score):
    assert api.get("/api/sessions", {"minScore": score}).status_code == 400


def test_scores_bound_the_list(api):
    SessionFactory(session_id="low", evidence_score=30)
    SessionFactory(session_id="high", evidence_score=65)
    assert [row["sessionId"] for row in api.get("/api/sessions", {"minScore": "31"}).json()["results"]] == ["high"]
    assert [row["sessionId"] for row in api.get("/api/sessions", {"maxScore": "30"}).json()["results"]] == ["low"]

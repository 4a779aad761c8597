"""Search terms are written by the worker: whoever writes a text owes them, and none is lost or paid with old text."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from unittest.mock import patch

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from cases_app.models import CaseLibrary, CaseTerm
from cases_app.services import enrichment
from feedback_app.models import BadCaseReview, BadCaseTerm
from feedback_app.services.erasure import erase_subject
from feedback_app.services.retention import apply_retention
from feedback_app.services.submission import record_event, submit_verdict
from sessions_app import tasks
from sessions_app.models import DiagnosisSession
from sessions_app.search import terms_of
from sessions_app.services import indexing
from tests.factories import CaseFactory, SessionFactory, TriageFactory
from tests.threads import at_once

OWNERS = (CaseLibrary, BadCaseReview)


def owing():
    return sum(model.objects.exclude(terms_due_at=None).count() for model in OWNERS)


def finds(model, query):
    return list(model.objects.matching(query))


def write_while(meanwhile):
    """Let the worker write what is owed; `meanwhile` begins when it has read the first texts. The thread's outcome."""
    failures = []

    def run():
        try:
            meanwhile()
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)
        finally:
            connections.close_all()

    other = threading.Thread(target=run)

    def slow_terms(*texts):
        if other.ident is None:
            other.start()
            other.join(0.5)  # it waits for our lock; SQLite's writers wait for all of our transaction
        return terms_of(*texts)

    with patch.object(indexing, "terms_of", slow_terms):
        indexing.write_due(until=time.monotonic() + 60)
    other.join()
    assert failures == []


# -- owing -----------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("verdict", ["useful", "not_useful"])
def test_feedback_writes_no_terms_and_the_worker_does(anonymous, write_terms, verdict):
    session = SessionFactory(query="Why does the samovar boil over?")
    with CaptureQueriesContext(
        connection,
    ) as statements:
        body = {"sessionId": session.session_id, "feedback": verdict, "comment": "The gateway, I think"}
        assert anonymous.post("/api/feedback", body, format="json").status_code == 200
    assert not [each for each in statements.captured_queries if "_term" in each["sql"].replace("terms_due", "")]
    model = CaseLibrary if verdict == "useful" else BadCaseReview
    assert (owing(), finds(model, "samovar")) == (1, [])
    write_terms()
    assert (owing(), finds(model, "samovar")) == (0, [model.objects.get()])


@pytest.mark.django_db
def test_the_worker_is_woken_by_whoever_owes(django_capture_on_commit_callbacks, reviewer):
    case = CaseFactory(enriched=True)
    review = TriageFactory()
    content = enrichment.content_of(case) | {"root_cause": "The samovar."}
    with patch("sessions_app.hints._messenger.give") as give:
        for write in (
            lambda: submit_verdict(session_id=SessionFactory().session_id, verdict="useful"),
            lambda: submit_verdict(session_id=SessionFactory().session_id, verdict="not_useful"),
            lambda: enrichment.enrich_case(case_id=case.pk, content=content, version=case.version, reviewer=reviewer),
            lambda: record_event(
                {"session_id": review.session_id, "type": "star", "value": 1, "payload": {"comment": "No"}}
            ),
        ):
            give.reset_mock()
            with django_capture_on_commit_callbacks(execute=True):
                write()
            assert [call.args[0] for call in give.call_args_list] == [tasks.write_terms]
    assert owing() == 4
    tasks.write_terms()  # as the sweep calls it, with no message at all
    assert (owing(), finds(CaseLibrary, "samovar")) == (0, [case])


@pytest.mark.django_db
def test_a_text_that_is_not_searched_owes_nothing(reviewer, write_terms):
    case = CaseFactory(enriched=True)
    session = SessionFactory(feedback="useful")
    enrichment.publish_case(case_id=case.pk, reviewer=reviewer)
    record_event({"session_id": session.session_id, "type": "star", "value": 5, "payload": {"comment": "Fine"}})
    assert owing() == 0


# -- paying ----------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_what_cannot_be_written_holds_nobody_up_and_is_tried_again():
    CaseFactory.create_batch(3)
    bad = CaseFactory(title="poison", diagnosis=None)
    CaseLibrary.objects.update(terms_due_at=timezone.now(), title="Samovars")
    CaseLibrary.objects.filter(pk=bad.pk).update(terms_due_at=timezone.now() - timedelta(hours=1), title="poison")

    def fail(*texts):
        if "poison" in texts:
            raise ValueError("poison")
        return terms_of(*texts)

    with patch.object(indexing, "terms_of", fail):
        assert indexing.write_due(until=time.monotonic() + 60) is False
    assert len(finds(CaseLibrary, "samovar")) == 3
    bad.refresh_from_db()
    assert bad.terms_due_at > timezone.now() + timedelta(minutes=1)
    CaseLibrary.objects.filter(pk=bad.pk).update(terms_due_at=timezone.now())
    indexing.write_due(until=time.monotonic() + 60)
    assert (owing(), finds(CaseLibrary, "poison")) == (0, [bad])


@pytest.mark.django_db
def test_many_are_written_in_turns_and_for_no_longer_than_allowed(monkeypatch):
    monkeypatch.setattr(indexing, "OWNERS_AT_ONCE", 2)
    CaseFactory.create_batch(5)
    TriageFactory.create_batch(3)
    for model in OWNERS:
        model.objects.update(terms_due_at=timezone.now())
    CaseTerm.objects.all().delete()
    BadCaseTerm.objects.all().delete()
    assert indexing.write_due(until=time.monotonic()) is True
    assert owing() == 8
    assert indexing.write_due(until=time.monotonic() + 60) is False
    assert owing() == 0
    for model, terms in ((CaseLibrary, CaseTerm), (BadCaseReview, BadCaseTerm)):
        assert set(terms.objects.values_list("owner_id", flat=True)) == set(model.objects.values_list("pk", flat=True))


@pytest.mark.django_db
def test_terms_of_former_texts_go_and_those_that_stay_are_not_written_again(write_terms):
    case = CaseFactory(manual=True, title="samovar gateway", root_cause="")
    other = CaseFactory(manual=True, title="samovar", root_cause="")
    CaseLibrary.objects.filter(pk=case.pk).update(title="gateway teapot", terms_due_at=timezone.now())
    with CaptureQueriesContext(connection) as statements:
        write_terms()
    inserts = [each["sql"] for each in statements.captured_queries if each["sql"].startswith("INSERT")]
    assert (finds(CaseLibrary, "samovar"), finds(CaseLibrary, "teapot gateway")) == ([other], [case])
    assert len(inserts) == 1
    assert "teapot" in inserts[0]
    assert "gateway" not in inserts[0]


# -- at once ---------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_several_workers_at_once_write_each_once(write_terms):
    CaseFactory.create_batch(12, title="samovar")
    CaseTerm.objects.all().delete()
    CaseLibrary.objects.update(terms_due_at=timezone.now())
    read = []

    def noted(*texts):
        read.append(texts[0])
        return terms_of(*texts)

    with patch.object(indexing, "terms_of", noted):
        at_once(lambda: indexing.write_due(until=time.monotonic() + 60), times=4)
    assert sorted(read) == sorted(str(pk) for pk in CaseLibrary.objects.values_list("pk", flat=True))
    assert (owing(), len(finds(CaseLibrary, "samovar"))) == (0, 12)


@pytest.mark.django_db(transaction=True)
def test_a_text_that_changes_while_its_terms_are_written_is_found_in_the_end(reviewer, write_terms):
    case = CaseFactory(enriched=True, title="samovar")
    CaseLibrary.objects.update(terms_due_at=timezone.now())
    content = enrichment.content_of(case) | {"title": "teapot"}
    write_while(
        lambda: enrichment.enrich_case(case_id=case.pk, content=content, version=case.version, reviewer=reviewer)
    )
    assert CaseLibrary.objects.get().title == "teapot"
    write_terms()
    assert (owing(), finds(CaseLibrary, "samovar"), finds(CaseLibrary, "teapot")) == (0, [], [case])


@pytest.mark.django_db(transaction=True)
def test_words_that_come_while_terms_are_written_are_found_in_the_end(write_terms):
    review = TriageFactory()
    BadCaseReview.objects.update(terms_due_at=timezone.now())
    said = {"session_id": review.session_id, "type": "star", "value": 1, "payload": {"comment": "samovar"}}
    write_while(lambda: record_event(said))
    write_terms()
    assert (owing(), finds(BadCaseReview, "samovar")) == (0, [review])


@pytest.mark.django_db(transaction=True)
def test_a_late_worker_writes_nothing_of_who_is_erased():
    session = SessionFactory(user_ref="somebody")
    submit_verdict(session_id=session.session_id, verdict="not_useful", comment="samovar")
    submit_verdict(session_id=session.session_id, verdict="useful", comment="samovar")
    assert owing() == 2
    write_while(lambda: erase_subject(user_ref="somebody"))
    indexing.write_due(until=time.monotonic() + 60)
    assert not CaseLibrary.objects.exists()
    assert not CaseTerm.objects.exists()
    assert not BadCaseTerm.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_late_worker_writes_nothing_of_what_was_anonymised(settings):
    settings.RETENTION_ANONYMISE_DAYS = 1
    session = SessionFactory(answer="Write to zinaida@kvashnina.example", query="Who keeps the samovar?")
    submit_verdict(session_id=session.session_id, verdict="not_useful", comment="zinaida@kvashnina.example")
    submit_verdict(session_id=session.session_id, verdict="useful")
    DiagnosisSession.objects.update(created_at=timezone.now() - timedelta(days=3))
    write_while(apply_retention)
    for _ in range(2):
        for model in OWNERS:
            assert finds(model, "zinaida") == finds(model, "kvashnina") == []
            assert len(finds(model, "samovar")) == 1
        indexing.write_due(until=time.monotonic() + 60)
    assert "zinaida" not in CaseLibrary.objects.get().solution

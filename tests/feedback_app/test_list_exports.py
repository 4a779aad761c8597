"""Exports of the triage queue and the case library: what the filters show or what is ticked, by whom, without whom."""

import csv
import io
import json
import re

import openpyxl
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app import exporting, sheets
from tests import hostile
from tests.factories import CaseFactory, SessionFactory, TriageFactory

pytestmark = pytest.mark.django_db

CASES = "/admin/cases_app/caselibrary/"
TRIAGES = "/admin/feedback_app/badcasereview/"
HOSTILE = "=cmd|' /C calc'!A0\x07,\"\n<script>"


@pytest.fixture(autouse=True)
def _speaks_english(client):
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"


def body(response):
    assert response.status_code == 200
    assert "attachment" in response["Content-Disposition"]
    assert "no-store" in response["Cache-Control"]
    return b"".join(response.streaming_content)


def read(form, response):
    data = body(response)
    if form == "csv":
        assert data.startswith(b"\xef\xbb\xbf")
        return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    if form == "jsonl":
        return [json.loads(line) for line in data.decode().splitlines()]
    rows = openpyxl.load_workbook(io.BytesIO(data), read_only=True).active.iter_rows(values_only=True)
    head = next(rows)
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.parametrize("form", ["csv", "xlsx", "jsonl"])
class TestContent:
    def test_cases_say_what_they_hold_and_no_formula(self, form, client, as_lead):
        case = CaseFactory(published=True, title=HOSTILE, error_code="-ERR")
        (row,) = read(form, client.get(f"{CASES}export/{form}/?queue=all"))
        assert row["case_id"] == str(case.pk)
        assert row["diagnosis_id"] == case.diagnosis.session_id
        assert row["fault_category"] == "SLOW_RESPONSE"
        printed = HOSTILE.replace("\x07", "\ufffd")
        expected = {"csv": (f"'{printed}", "'-ERR"), "xlsx": (printed, "-ERR"), "jsonl": (HOSTILE, "-ERR")}[form]
        assert (row["title"], row["error_code"]) == expected

    def test_triages_come_with_question_and_answer(self, form, client, as_lead, reviewer):
        review = TriageFactory(state="RESOLVED", assignee=reviewer, failure_mode="HALLUCINATION", notes="@x")
        TriageFactory()
        (row,) = read(form, client.get(f"{TRIAGES}export/{form}/?state=RESOLVED"))
        assert row["session_id"] == review.session_id
        assert (row["query"], row["answer"]) == (review.session.query, review.session.answer)
        assert (row["assignee"], row["failure_mode"]) == ("rita", "HALLUCINATION")
        assert row["notes"] == ("'@x" if form == "csv" else "@x")

    def test_whoever_refused_is_left_out(self, form, client, as_lead):
        kept, left = SessionFactory(rejected=True), SessionFactory(rejected=True, consent=False, query="secret words")
        TriageFactory(session=kept)
        TriageFactory(session=left)
        CaseFactory(manual=True, title="By hand")
        CaseFactory(diagnosis=SessionFactory(consent=False, query="secret words"))
        rows = read(form, client.get(f"{TRIAGES}export/{form}/"))
        assert [row["session_id"] for row in rows] == [kept.session_id]
        rows = read(form, client.get(f"{CASES}export/{form}/?queue=all"))
        assert [row["title"] for row in rows] == ["By hand"]

    def test_what_is_ticked(self, form, client, as_lead):
        cases = [CaseFactory() for _ in range(3)]
        chosen = [str(case.pk) for case in cases[:2]]
        data = {"action": f"export_{form}", "index": 0, "_selected_action": chosen}
        assert {row["case_id"] for row in read(form, client.post(CASES, data))} == set(chosen)
        data |= {"select_across": 1, "_selected_action": chosen[:1]}
        assert len(read(form, client.post(CASES, data))) == 3


class TestHostileText:
    """Every text of the corpus in every column that people and agents write."""

    @pytest.fixture
    def texts(self):
        for text in hostile.TEXTS:
            columns = {"error_code": text[:128], "title": text[:200], "root_cause": text, "solution": text}
            CaseFactory(manual=True, enriched=True, created_by=text[:150], **columns)
            session = SessionFactory(query=text, answer=text, agent_flow=text[:32], feedback="not_useful")
            TriageFactory(session=session, notes=text, corrected_answer=text)
        for one in hostile.IDS:
            TriageFactory(session=SessionFactory(session_id=one, agent_id=one, feedback="not_useful"))
        return {
            f"{CASES}export/{{}}/?queue=all": ("error_code", "title", "root_cause", "solution", "created_by"),
            f"{TRIAGES}export/{{}}/": ("query", "answer", "notes", "corrected_answer"),
        }

    def test_no_cell_is_a_formula_and_no_break_makes_another_row(self, texts, client, as_lead):
        for address, columns in texts.items():
            exported = read("jsonl", client.get(address.format("jsonl")))
            assert {row[columns[-2]] for row in exported} >= set(hostile.TEXTS)

            rows = read("csv", client.get(address.format("csv")))
            assert [row.keys() for row in rows] == [row.keys() for row in exported]
            cells = [cell for row in rows for cell in row.values()]
            assert not [cell for cell in cells if re.match(r"\s*[=+@\-＝＋－＠]", cell) and cell not in ("-", "")]
            for row, said in zip(rows, exported, strict=True):
                for column in columns:
                    assert sheets.unguarded(row[column]) == sheets.printable(said[column])

            book = openpyxl.load_workbook(io.BytesIO(body(client.get(address.format("xlsx")))))
            cells = [cell for row in book.active.iter_rows(min_row=2) for cell in row if isinstance(cell.value, str)]
            assert {cell.data_type for cell in cells} == {"s"}
            assert book.active.max_row == len(exported) + 1


def test_a_search_narrows_the_export_and_a_page_does_not(client, as_lead, monkeypatch):
    monkeypatch.setattr(sheets, "PAGE_ROWS", 2)
    for n in range(7):
        CaseFactory(title=f"needle {n}")
    CaseFactory(title="hay")
    rows = read("jsonl", client.get(f"{CASES}export/jsonl/?q=needle&p=2"))
    assert sorted(row["title"] for row in rows) == [f"needle {n}" for n in range(7)]


def test_pages_are_read_by_key_while_the_file_is_sent(client, as_lead, monkeypatch):
    monkeypatch.setattr(sheets, "PAGE_ROWS", 10)
    for _ in range(25):
        CaseFactory()
    with CaptureQueriesContext(connection) as before:
        response = client.get(f"{CASES}export/csv/")
    assert not any("root_cause" in query["sql"] and "LIMIT 10" in query["sql"] for query in before)
    with CaptureQueriesContext(connection) as during:
        body(response)
    assert len(during) == 4
    assert not any("OFFSET" in query["sql"] for query in during)


def test_a_workbook_too_large_is_refused_in_words(client, as_lead, monkeypatch):
    monkeypatch.setattr(exporting, "MAX_SHEET_ROWS", 2)
    for _ in range(3):
        CaseFactory()
    response = client.get(f"{CASES}export/xlsx/", follow=True)
    assert "XLSX takes up to 2 rows." in response.content.decode()
    assert response["Content-Type"].startswith("text/html")
    assert len(read("csv", client.get(f"{CASES}export/csv/"))) == 3


@pytest.mark.parametrize(
    ("address", "codes"),
    [
        #                                       anonymous nobody staff Operator Reviewer Lead superuser
        pytest.param(f"{TRIAGES}export/csv/", (302, 302, 403, 403, 403, 200, 200), id="triages"),
        pytest.param(f"{CASES}export/csv/", (302, 302, 403, 403, 200, 200, 200), id="cases"),
        pytest.param(f"{CASES}export/exe/", (302, 302, 403, 403, 404, 404, 404), id="no-format"),
        pytest.param(f"{CASES}export/csv/?nonsense=1", (302, 302, 403, 403, 302, 302, 302), id="no-filter"),
    ],
)
def test_who_may(address, codes, client, sign_in):
    roles = ("anonymous", "nobody", "staff", "Operator", "Reviewer", "Lead", "superuser")
    for role, code in zip(roles, codes, strict=True):
        client.logout()
        sign_in(role)
        assert client.get(address).status_code == code, role


def test_who_may_not_is_shown_no_button_and_no_action(client, sign_in):
    TriageFactory()
    sign_in("Reviewer")
    page = client.get(TRIAGES).content.decode()
    assert "/export/" not in page
    assert "export_csv" not in page
    data = {"action": "export_csv", "index": 0, "_selected_action": ["1"], "select_across": 1}
    assert "attachment" not in client.post(TRIAGES, data).get("Content-Disposition", "")
    client.logout()
    sign_in("Lead")
    page = client.get(f"{TRIAGES}?q=order&p=0").content.decode()
    assert f'href="{TRIAGES}export/csv/?q=order"' in page
    assert "export_csv" in page

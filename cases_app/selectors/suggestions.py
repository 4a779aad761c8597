"""What the session of a case suggests for each of its fields."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models.functions import Left

from cases_app import rules
from cases_app.models import CaseLibrary, CaseStatus, FaultCategory
from cases_app.suggestions.answers import MAX_TITLE_CHARS, TITLE_LABEL, Part, Split, split_answer
from cases_app.suggestions.categories import rank_categories
from cases_app.suggestions.clues import READ_CHARS, Clues, Found, Source
from cases_app.suggestions.error_codes import rank_codes
from sessions_app.models import AgentStep, DiagnosisSession, ToolInvocation

NAMES_READ = 50
ERRORS_READ = 10
ERROR_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What a field could hold, and what points to it."""

    value: str
    evidence: tuple[Found, ...]


Suggestions = dict[str, list[Suggestion]]
"""Field → what it could hold, the likeliest first. What stands there already is left out."""


def suggestions_for(case: CaseLibrary) -> Suggestions:
    """For a case that is still worked on. Four queries beside the case with its session."""
    if case.status not in (CaseStatus.DRAFT, CaseStatus.ENRICHED):
        return {}
    session = case.diagnosis
    answer = (session.answer if session else None) or ""
    split = split_answer(answer)
    clues = _clues(case, session, split)
    keywords = dict(FaultCategory.objects.exclude(pk=rules.GENERAL).values_list("code", "keywords"))
    found: Suggestions = {
        "fault_category": [Suggestion(one.code, one.evidence) for one in rank_categories(clues, keywords)],
        "error_code": [Suggestion(one.code, one.evidence) for one in rank_codes(clues)],
        "title": _titles(split, session),
        "root_cause": _part(split.root_cause),
        "solution": _part(split.solution),
    }
    stands = {
        "fault_category": case.fault_category_id,
        "error_code": case.error_code,
        "title": case.title,
        "root_cause": case.root_cause.strip(),
        "solution": case.solution.strip(),
    }
    return {name: [one for one in some if one.value != stands[name]] for name, some in found.items()}


def _clues(case: CaseLibrary, session: DiagnosisSession | None, split: Split) -> Clues:
    if session is None:  # written by hand: what stands in it is all there is
        return Clues(question=case.title, cause=case.root_cause, answer=case.solution)
    invocations = ToolInvocation.objects.of(session.session_id).order_by()
    failed = invocations.filter(success=False, error_message__gt="")
    errors = failed.annotate(said=Left("error_message", ERROR_CHARS)).order_by("pk").values_list("said", flat=True)
    agents = AgentStep.objects.of(session.session_id).order_by("agent_name").values_list("agent_name", flat=True)
    tools = invocations.order_by("tool_name").values_list("tool_name", flat=True)
    return Clues(
        question=session.query,
        title=split.title.text if split.title else "",
        cause=split.root_cause.raw[:READ_CHARS] if split.root_cause else "",
        answer=session.answer or "",
        metadata=session.metadata or {},
        tools=list(tools.distinct()[:NAMES_READ]),
        agents=list(agents.distinct()[:NAMES_READ]),
        errors=list(errors[:ERRORS_READ]),
    )


def _titles(split: Split, session: DiagnosisSession | None) -> list[Suggestion]:
    titles: dict[str, Found] = {}
    if split.title:
        heading = split.title.heading
        found = Found(heading, Source.HEADING) if heading else Found("", Source.FIRST_HEADING)
        titles[split.title.text] = found
    told = session.metadata.get("title") if session and isinstance(session.metadata, dict) else None
    if isinstance(told, str):
        line = " ".join(told[: 2 * MAX_TITLE_CHARS].split())
        line = line[label.end() if (label := TITLE_LABEL.match(line)) else 0 :][:MAX_TITLE_CHARS].strip()
        titles.setdefault(line, Found("title", Source.METADATA))
    return [Suggestion(title, (found,)) for title, found in titles.items() if title]


def _part(part: Part | None) -> list[Suggestion]:
    return [Suggestion(part.text, (Found(part.heading, Source.HEADING),))] if part and part.text else []

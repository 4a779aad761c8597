"""The figures of a weekly report, put into the words of the active language."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from feedback_app.models import WeeklyReport
from feedback_app.rules import MIN_AGENT_THUMBS
from feedback_app.selectors.failure_modes import mode_names
from feedback_app.selectors.weekly import DAYS, AgentTotals, Head, Totals, WeeklyFigures, question_heads
from sessions_app.charts import Line, ceiling, share
from sessions_app.privacy import anonymise_text
from sessions_app.templatetags.desk import NOTHING, excerpt, number, percent, signed

QUESTION_CHARS = 140
PERCENT = 100


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of both weeks."""

    title: str
    value: str
    of: str
    before: str
    change: str


@dataclass(frozen=True, slots=True)
class Day:
    """The thumbs of one day. Shares are of the day with the most, in percent, as strings for a style."""

    name: str
    date: str
    up: int
    down: int
    approval: str
    up_share: str
    down_share: str
    rest_share: str

    @property
    def tip(self) -> str:
        """What a pointer over the day is told."""
        return f"{self.date}: {_('Useful')} {number(self.up)}, {_('Not useful')} {number(self.down)}"


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent among the best or the worst."""

    name: str
    approval: str
    of: str
    between: str
    asked_again: str
    share: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A failure mode, as `figures/bars.html` draws it."""

    title: str
    value: str
    of: str
    width: str
    mark: str = ""
    url: None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that was asked again."""

    text: str
    times: str
    pk: int | None  # of its session, while that is there


@dataclass(frozen=True, slots=True)
class Words:
    """A whole report."""

    title: str
    days_of: str
    stored: str
    rows: list[Row]
    days: list[Day]
    approvals: Line
    thumbs_top: str
    best: list[Agent]
    worst: list[Agent]
    ranking_note: str
    modes: list[Bar]
    asked: list[Asked]
    is_silent: bool


def words_of(report: WeeklyReport, *, is_shared: bool) -> Words:
    """The report in words; `is_shared` where it leaves the product, which takes the consent of those it quotes."""
    figures: WeeklyFigures = report.figures
    week = figures["week"]
    top = ceiling(day["counts"]["thumbs"] for day in figures["days"])
    return Words(
        title=_("Weekly report"),
        days_of=days_of(report.week),
        stored=date_format(timezone.localtime(report.created_at), "Y-m-d H:i"),
        rows=_rows(week, figures["before"]),
        days=[_day(report.week + timedelta(days=index), day, top) for index, day in enumerate(figures["days"])],
        approvals=Line.through([day["approval_rate"] for day in figures["days"]], PERCENT),
        thumbs_top=number(round(top)),
        best=[_agent(each) for each in figures["best"]],
        worst=[_agent(each) for each in figures["worst"]],
        ranking_note=_ranking_note(figures["agents_ranked"]),
        modes=_modes(figures),
        asked=_asked(figures, is_shared=is_shared),
        is_silent=not week["sessions"] and not any(week["counts"].values()),
    )


def days_of(monday: date) -> str:
    """The first and the last day of a week."""
    return f"{monday.isoformat()} – {(monday + timedelta(days=DAYS - 1)).isoformat()}"


# -- the figures of both weeks ---------------------------------------------------------------------------------------


def _rows(now: Totals, before: Totals) -> list[Row]:
    thumbs, stars, edits = (now["counts"][kind] for kind in ("thumbs", "star", "edit"))
    approval_of = _part(
        now["thumbs_up"], thumbs, ngettext("%(part)s of %(n)s thumb", "%(part)s of %(n)s thumbs", thumbs)
    )
    if between := _between(now):
        approval_of = f"{approval_of}, {between}"
    sessions = ngettext("%(part)s of %(n)s session", "%(part)s of %(n)s sessions", now["sessions"])
    return [
        _row(_("Sessions"), now["sessions"], before["sessions"], number, _counted, ""),
        _row(_("Approval"), now["approval_rate"], before["approval_rate"], _rate, _points, approval_of),
        _row(
            _("Average stars"),
            now["avg_star"],
            before["avg_star"],
            _one_decimal,
            _tenths,
            ngettext("of %(n)s rating", "of %(n)s ratings", stars) % {"n": number(stars)},
        ),
        _row(_("Corrections"), now["correction_count"], before["correction_count"], number, _counted, ""),
        _row(
            _("Changed by edits"),
            _percents(now["avg_edit_distance"]),
            _percents(before["avg_edit_distance"]),
            _rate,
            _points,
            ngettext("of %(n)s edit", "of %(n)s edits", edits) % {"n": number(edits)},
        ),
        _row(
            _("Asked again"),
            now["re_ask_rate"],
            before["re_ask_rate"],
            _rate,
            _points,
            _part(now["sessions_asked_again"], now["sessions"], sessions),
        ),
        _row(
            _("With any feedback"),
            now["feedback_rate"],
            before["feedback_rate"],
            _rate,
            _points,
            _part(now["sessions_with_feedback"], now["sessions"], sessions),
        ),
        _row(
            _("With explicit feedback"),
            now["explicit_feedback_rate"],
            before["explicit_feedback_rate"],
            _rate,
            _points,
            _part(now["sessions_with_explicit_feedback"], now["sessions"], sessions),
        ),
    ]


def _row(
    title: str,
    now: float | None,
    before: float | None,
    say: Callable[[float | None], str],
    say_change: Callable[[float, float], str],
    of: str,
) -> Row:
    change = NOTHING if now is None or before is None else say_change(now, before)
    return Row(title, say(now), of, say(before), change)


def _part(part: int, whole: int, words: str) -> str:
    return words % {"part": number(part), "n": number(whole)}


def _percents(distance: float | None) -> float | None:
    return None if distance is None else PERCENT * distance


def _rate(percents: float | None) -> str:
    return percent(None if percents is None else percents / PERCENT)


def _one_decimal(value: float | None) -> str:
    return NOTHING if value is None else str(number_format(round(value, 1), decimal_pos=1))


def _counted(now: float, before: float) -> str:
    return signed(round(now - before))


def _points(now: float, before: float) -> str:
    points = round(now) - round(before)
    return ngettext("%(n)s point", "%(n)s points", abs(points)) % {"n": signed(points)}


def _tenths(now: float, before: float) -> str:
    change = round(round(now, 1) - round(before, 1), 1)
    sign = "+" if change > 0 else "−" if change < 0 else ""
    return f"{sign}{_one_decimal(abs(change))}"


def _between(totals: Totals) -> str:
    """Where the approval may well lie."""
    bounds = totals["approval_confidence"]
    return f"{round(bounds['low'])}–{round(bounds['high'])}%" if bounds else ""


# -- days, agents, failure modes, questions --------------------------------------------------------------------------


def _day(day: date, totals: Totals, top: float) -> Day:
    up = totals["thumbs_up"]
    down = totals["counts"]["thumbs"] - up
    name = date_format(day, "D")
    return Day(
        name=name,
        date=day.isoformat(),
        up=up,
        down=down,
        approval=_rate(totals["approval_rate"]),
        up_share=share(up, top),
        down_share=share(down, top),
        rest_share=share(max(top - up - down, 0), top),
    )


def _agent(agent: AgentTotals) -> Agent:
    totals = agent["totals"]
    thumbs = totals["counts"]["thumbs"]
    of = ngettext("%(part)s of %(n)s thumb", "%(part)s of %(n)s thumbs", thumbs)
    return Agent(
        name=agent["agent_id"],
        approval=_rate(totals["approval_rate"]),
        of=_part(totals["thumbs_up"], thumbs, of),
        between=_between(totals),
        asked_again=_rate(totals["re_ask_rate"]),
        share=share(totals["approval_rate"] or 0, PERCENT),
    )


def _ranking_note(ranked: int) -> str:
    least = {"least": MIN_AGENT_THUMBS}
    if not ranked:
        return _("No agent had %(least)s thumbs or more.") % least
    note = ngettext(
        "%(n)s agent had %(least)s thumbs or more. Ranked by what is sure: the best by the lower end of the 95%% "
        "confidence interval, the worst by the upper end.",
        "%(n)s agents had %(least)s thumbs or more. Ranked by what is sure: the best by the lower end of the 95%% "
        "confidence interval, the worst by the upper end.",
        ranked,
    )
    return note % {"n": number(ranked), **least}


def _modes(figures: WeeklyFigures) -> list[Bar]:
    names = mode_names()
    modes = figures["failure_modes"]
    top = max((mode["count"] for mode in modes), default=0)
    return [
        Bar(
            names.get(mode["mode"], mode["mode"]),
            number(mode["count"]),
            _("before: %(n)s") % {"n": number(mode["before"])},
            share(mode["count"], top),
            "weak",
        )
        for mode in modes
    ]


def _asked(figures: WeeklyFigures, *, is_shared: bool) -> list[Asked]:
    found = figures["re_asked"]
    heads = question_heads(row["session_id"] for row in found)
    return [
        Asked(
            _quote(heads.get(row["session_id"]), is_shared=is_shared),
            ngettext("%(n)s time", "%(n)s times", row["count"]) % {"n": number(row["count"])},
            heads[row["session_id"]].pk if row["session_id"] in heads else None,
        )
        for row in found
    ]


def _quote(head: Head | None, *, is_shared: bool) -> str:
    """A question as far as it may be shown."""
    if head is None or not head.text:
        return _("(no longer kept)")
    if is_shared and not head.consent:
        return _("(not shared: without consent)")
    # A mail lies where no erasure reaches.
    return excerpt(anonymise_text(head.text) if is_shared else head.text, QUESTION_CHARS)


def summary_of(rows: Sequence[Row]) -> str:
    """Sessions, approval and re-asks in one line."""
    named = (rows[0], rows[1], rows[5])
    return " · ".join(f"{row.title} {row.value}" for row in named)

"""An answer split into title, root cause and solution by its headings."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases_app.suggestions.answers import MAX_TITLE_CHARS, split_answer
from cases_app.suggestions.headings import Role, meaning_of

FORMS = {
    "markdown": "## Root cause\n{cause}\n\n## Solution\n{solution}\n",
    "markdown-under-a-title": "# Slow checkout\n\n### 1. Root cause\n{cause}\n### 2. Recommendations\n{solution}",
    "bold": "**Root Cause**\n\n{cause}\n\n**Solution:**\n\n{solution}",
    "bold-before-the-text": "**Cause:** {cause}\n\n**Fix:** {solution}",
    "underlined": "Root cause\n==========\n{cause}\n\nHow to fix\n----------\n{solution}",
    "labels": "Root cause: {cause}\nSolution: {solution}",
    "bare-lines": "Root cause analysis\n{cause}\n\nSolutions\n{solution}\n",
    "bullets": "- **Root cause**: {cause}\n- **Impact**: checkout\n- **Mitigation**: {solution}",
    "numbered": "1. **Root cause**\n{cause}\n2. **Impact**\ncheckout\n3. **Solution**\n{solution}",
    "table": "| | |\n|-|-|\n| Date | today |\n| Root Cause | {cause} |\n| Solutions | {solution} |\n\n## Process\n1. x",
    "quoted": "> ## Why\n\n> **Root cause**: {cause}\n\n> **Solution**: {solution}",
    "chinese-markdown": "## 结论\n满了\n## 时间\n14:03\n## 根因分析\n{cause}\n## 解决方案\n{solution}\n## 验证\n监控",
    "chinese-numbers": "一、故障现象\n接口变慢\n二、根本原因\n{cause}\n三、处理建议\n{solution}",
    "chinese-brackets": "【故障现象】接口变慢\n【原因】{cause}\n【处置措施】{solution}",
    "chinese-labels": "根因：{cause}\n解决方案：{solution}",
    "chinese-bold": "**问题原因：**\n{cause}\n\n**优化建议：**\n{solution}",
    "chinese-parts": "第一部分：可能原因\n{cause}\n第二部分：修复步骤\n{solution}",
    "russian-markdown": "## Вывод\nпул\n## Вероятная причина\n{cause}\n## Решение\n{solution}\n## Потери\nнет",
    "russian-labels": "Причина сбоя: {cause}\nЧто делать: {solution}",
    "russian-bold": "**Корневая причина**\n{cause}\n\n**Рекомендации**\n{solution}",
    "russian-numbers": "1. **Первопричина**\n{cause}\n2. **Меры**\n{solution}",
    "solution-first": "## Fix\n{solution}\n## Cause\n{cause}",
    "crlf": "## Root cause\r\n{cause}\r\n\r\n## Solution\r\n{solution}\r\n",
    "emoji": "### 🔍 Root cause\n{cause}\n### 🛠️ Recommended fix\n{solution}",
}
CAUSE, SOLUTION = "The pool of 20 holds long transactions.", "Move the SMS out of the transaction."


@pytest.mark.parametrize("form", FORMS)
def test_the_parts_are_found_in_every_form(form):
    answer = FORMS[form].format(cause=CAUSE, solution=SOLUTION)
    split = split_answer(answer)
    assert split.root_cause is not None
    assert split.solution is not None
    assert (split.root_cause.raw, split.solution.raw) == (CAUSE, SOLUTION)


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("# Slow checkout\n\n## Root cause\nx", "Slow checkout"),
        ("# 分析报告：CPU 打满\n## 根因\nx", "分析报告：CPU 打满"),
        ("# 标题：磁盘写满（已解决）\n## 根因\nx\n## 解决方案\ny", "磁盘写满（已解决）"),
        ("**Заголовок:** Переполнен диск\n\n**Причина:** x", "Переполнен диск"),
        ("# **Bold title** #\n## Cause\nx", "Bold title"),
        (f"# {'x' * 300}\n## Cause\nx", "x" * MAX_TITLE_CHARS),
        ("# 诊断报告\n## 根因\nx", None),
        ("# Root Cause Analysis\nIt is DNS.\n# Solution\nx", None),
        ("## Root cause\nx\n## Solution\ny", None),
        ("## Partial\nx\n## Cause\ny", None),
        ("Hello!\n# Slow checkout\n## Cause\ny", None),
        ("# Title\n## Cause\ny", None),
    ],
)
def test_a_title_stands_above_all_and_says_something(answer, title):
    found = split_answer(answer).title
    assert (found.raw if found else None) == title


@pytest.mark.parametrize(
    ("answer", "cause", "solution"),
    [
        pytest.param("The pool is too small; raise it.", None, None, id="no-headings"),
        pytest.param("", None, None, id="nothing"),
        pytest.param("## Root cause\n\n## Solution\nRaise it.", None, "Raise it.", id="empty-part"),
        pytest.param("## Root cause and solution\nRaise it.", None, None, id="both-in-one"),
        pytest.param("```sh\n# Root cause\nx\n```\n## Cause\ny", "y", None, id="a-comment-in-code"),
        pytest.param("## 已排除的原因\n网络\n## 根因\n池子", "池子", None, id="what-was-ruled-out"),
        pytest.param("## Вывод\nЭто DNS.\n## Что делать\nЖдать.", "Это DNS.", "Ждать.", id="conclusion"),
        pytest.param(
            "## 解决方案\n1. 扩容\n**原因**：小\n2. 观察\n## 根因\n泄漏", "泄漏", "1. 扩容\n**原因**：小\n2. 观察",
            id="a-label-inside-a-part",
        ),
        pytest.param(
            "## Cause\nx\n### Details\ny\n## Now\nz\n## Fix\nA\n## Prevention\nB\n## Notes\nC",
            "x\n### Details\ny", "A\n## Prevention\nB", id="parts-of-one-kind-in-a-row",
        ),
        pytest.param("We know the root cause: the pool. As to the solution: wait.", None, None, id="a-sentence"),
        pytest.param(
            "| metric | value |\n|---|---|\n| cause | 5 |\n\n## Root cause\nx", "x", None, id="a-table-below-a-heading"
        ),
    ],
)  # fmt: skip
def test_edges(answer, cause, solution):
    split = split_answer(answer)
    assert (split.root_cause.raw if split.root_cause else None) == cause
    assert (split.solution.raw if split.solution else None) == solution


def test_a_part_says_under_which_heading_it_stood():
    split = split_answer("## **2. Root cause:**\nx\n\n【处理建议】y")
    assert (split.root_cause.heading, split.solution.heading) == ("2. Root cause", "处理建议")


def test_a_cell_reads_as_the_lines_it_was_made_of():
    part = split_answer("| Root Cause | 1. **Pool**<br><br>2. a \\| b<br/>end  |\n").root_cause
    assert part.raw == "1. **Pool**<br><br>2. a \\| b<br/>end"
    assert part.text == "1. **Pool**\n\n2. a | b\nend"


def test_bars_that_a_model_forgot_to_escape_do_not_cut_a_cell():
    assert split_answer("| 根因 | a || b | c |\n").root_cause.raw == "a || b | c"


@pytest.mark.parametrize(
    ("label", "role"),
    [
        ("Likely root cause of the outage", Role.CAUSE),
        ("三、故障原因分析", Role.CAUSE),
        ("Причина (не подтверждена)", Role.CAUSE),
        ("建议人工先做的事", Role.SOLUTION),
        ("Как исправить?", Role.SOLUTION),
        ("Remediation steps", Role.SOLUTION),
        ("排查步骤", None),
        ("Diagnosis Process", None),
        ("Impact", Role.OTHER),
        ("Observations", None),
        ("", None),
        ("***", None),
    ],
)
def test_what_a_heading_says(label, role):
    assert meaning_of(label, is_sentence=False).role == role


PIECES = st.sampled_from(
    [
        "\n", "\r\n", " ", "#", "## ", "**", "__", "|", "| Root cause |", "Root cause", "根因", "Причина",
        "Solution",
        "解决方案", "Решение", ":", "：", "1. ", "一、", "【", "】", "```", "~~~", "===", "---", "> ", "- ", "<br>",
        "\\|",
        "标题：", "text", "\u202e", "\x0b", "\u2028", "😀",
    ]
)  # fmt: skip


@given(st.text() | st.lists(PIECES, max_size=60).map("".join))
def test_parts_are_pieces_of_any_text(answer):
    split = split_answer(answer)
    for part in (split.title, split.root_cause, split.solution):
        if part is not None:
            assert part.raw
            assert answer[part.start : part.start + len(part.raw)] == part.raw
            assert isinstance(part.text, str)


@pytest.mark.parametrize(
    "unit",
    [
        "a\n", "\n", "# a\n", "Root cause: x\n", "## 根因\nx\n", "| Root cause | x |\n", "| ", "**", "```\n", "a\n=\n",
        "<br", "【", "- ",
    ],
)  # fmt: skip
def test_a_megabyte_takes_no_time(unit):
    answer = unit * (2**20 // len(unit))
    started = time.perf_counter()
    split = split_answer(answer)
    for part in (split.root_cause, split.solution):
        assert part is None or part.text is not None
    assert time.perf_counter() - started < 5  # a twentieth of that on an idle machine; minutes, were it quadratic

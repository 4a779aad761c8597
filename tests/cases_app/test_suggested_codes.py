"""Which error codes a session suggests, and what only looks like one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases_app.suggestions.clues import MAX_CODE_CHARS, Clues, Found, Source, alert_names
from cases_app.suggestions.error_codes import SUGGESTIONS, rank_codes


def codes(**clues):
    return [suggestion.code for suggestion in rank_codes(Clues(**clues))]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("ORA-00060: deadlock detected while waiting", "ORA-00060", id="oracle"),
        pytest.param("连接时报ORA-12514错误", "ORA-12514", id="oracle-in-chinese"),
        pytest.param("Лог: TNS-12541, слушатель не отвечает", "TNS-12541", id="oracle-net"),
        pytest.param("MySQL 1213 on every second write", "MySQL 1213", id="mysql"),
        pytest.param("MySQL error code: 2006 has gone away", "MySQL 2006", id="mysql-said-to-be-an-error"),
        pytest.param("ERROR 1205 (HY000): Lock wait timeout exceeded", "MySQL 1205", id="mysql-client"),
        pytest.param("повтор по SQLSTATE `40P01`", "SQLSTATE 40P01", id="sqlstate"),
        pytest.param("SQLSTATE[HY000] [2002]", "SQLSTATE HY000", id="sqlstate-of-pdo"),
        pytest.param("E11000 duplicate key", "E11000", id="mongo"),
        pytest.param("failed with 0x80070005", "0x80070005", id="windows"),
        pytest.param("браузер показывает NET::ERR_CERT_DATE_INVALID.", "NET::ERR_CERT_DATE_INVALID", id="chromium"),
        pytest.param("接口返回ERR_POOL_EMPTY，怎么办", "ERR_POOL_EMPTY", id="err"),
        pytest.param("dial tcp: ECONNREFUSED", "ECONNREFUSED", id="errno"),
        pytest.param("reason QUOTA_EXCEEDED in the log", "QUOTA_EXCEEDED", id="upper-snake"),
        pytest.param("[P1] NodeDiskWillFill on log-es-04", "NodeDiskWillFill", id="alert"),
        pytest.param("NodeClockNotSynchronising is firing", "NodeClockNotSynchronising", id="alert-that-fires"),
        pytest.param("收到告警 PrometheusDuplicateTimestamps", "PrometheusDuplicateTimestamps", id="chinese-alert"),
        pytest.param(
            "сработал алерт ThanosRuleQueueIsDroppingAlerts", "ThanosRuleQueueIsDroppingAlerts", id="called-so"
        ),
        pytest.param("новый под в ImagePullBackOff", "ImagePullBackOff", id="two-words-of-one-symptom"),
        pytest.param("last state OOMKilled", "OOMKilled", id="capitals-first"),
        pytest.param("java.lang.OutOfMemoryError: heap", "OutOfMemoryError", id="exception"),
        pytest.param("cluster_block_exception, index read-only", "cluster_block_exception", id="elasticsearch"),
        pytest.param("网关大量 504", "HTTP 504", id="status-in-chinese"),
        pytest.param("状态码：502", "HTTP 502", id="status-word"),
        pytest.param("сервис вернул код ответа 503", "HTTP 503", id="status-in-russian"),
        pytest.param("GET / HTTP/1.1 502", "HTTP 502", id="status-line"),
        pytest.param("it answers 429 Too Many Requests", "HTTP 429", id="status-by-its-name"),
        pytest.param("the container exits with code 137", "exit code 137", id="exit"),
        pytest.param("процесс упал, код завершения 139", "exit code 139", id="exit-in-russian"),
        pytest.param("错误码10061", "10061", id="number-said-to-be-a-code"),
        pytest.param("код ошибки 50312", "50312", id="number-said-to-be-a-code-in-russian"),
        pytest.param("billing: failure 80012 since noon", "80012", id="five-digits"),
        pytest.param("PAY-10023: card refused", "PAY-10023", id="own-prefix"),
        pytest.param("what is ORDER_STATE_UNKNOWN?", "ORDER_STATE_UNKNOWN", id="name-with-a-symptom"),
    ],
)
def test_a_code_is_found(text, code):
    assert codes(question=text)[:1] == [code]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("SELECT * FROM t_order WHERE GROUP_CONCAT(x) ORDER BY id DESC LIMIT 20", id="sql"),
        pytest.param("set HTTP_PROXY and NO_PROXY, unset JAVA_HOME", id="environment"),
        pytest.param("export CONNECT_TIMEOUT=30; echo ${READ_TIMEOUT} -DSOCKET_TIMEOUT", id="variables"),
        pytest.param("MAX_CONNECTIONS, INNODB_BUFFER_POOL_SIZE", id="parameters"),
        pytest.param("RabbitMQ, PostgreSQL, HikariPool-1, CpuExpert, GitHub, JavaScript", id="products"),
        pytest.param("restartPolicy: OnFailure", id="a-policy"),
        pytest.param("throw new InvalidAddressException();", id="code-that-throws"),
        pytest.param("от 2026-11-30 и 20261130, 14:05:33", id="dates"),
        pytest.param("at 1697297150 and 1697297150123", id="timestamps"),
        pytest.param("10.0.0.1:54321, port 50051, 端口 33061, Redis 6379, MySQL 3306", id="ports"),
        pytest.param("id=123456, order 778899, 订单 889977, №554433, pid 31337", id="ids"),
        pytest.param("30000ms, 12345 rows, 90000 сообщений, 62000 行, 1,284,500 条, 12345.67, 50000 мс", id="amounts"),
        pytest.param("UTF-8, ISO-8601: RFC-2616: SHA-256, CVE-2026-12345", id="standards"),
        pytest.param("SQL Server 2019, python 31102x, v12345, abc12345", id="versions"),
        pytest.param("p99 500 ms, 出现 500 次, HTTP 200, 450%", id="numbers-that-are-no-status"),
        pytest.param("", id="nothing"),
    ],
)
def test_what_only_looks_like_a_code_is_not_taken(text):
    assert codes(question=text) == []


@pytest.mark.parametrize(
    ("metadata", "names"),
    [
        ({"alerts": [{"alert_name": "NodeCpuHigh", "alert_level": "WARN"}]}, ["NodeCpuHigh"]),
        ({"alert": {"name": "ApiErrorRateHigh", "severity": "P1"}}, ["ApiErrorRateHigh"]),
        ({"alerts": [{"labels": {"alertname": "KubePodCrashLooping", "pod": "web-1"}}]}, ["KubePodCrashLooping"]),
        ({"alerts": ["DiskFull", "DiskFull", "NodeDown"]}, ["DiskFull", "NodeDown"]),
        ({"告警": {"name": "磁盘写满"}}, ["磁盘写满"]),
        ({"errorCode": "PAY-17", "error_code": 40029}, ["PAY-17", "40029"]),
        ({"alert": {"name": "The disk of node 3 is full"}}, []),
        ({"env": "prod", "namespace": "alerting", "host": {"name": "node-7"}}, []),
        ({"alert": {"name": None, "rule": True, "type": {}}, "error_code": ""}, []),
        ([["alert"]], []),
        (None, []),
    ],
)  # fmt: skip
def test_names_that_the_metadata_gives(metadata, names):
    assert alert_names(metadata) == names


def test_the_alert_comes_before_the_question_and_the_question_before_the_answer():
    found = rank_codes(
        Clues(
            question="网关大量 504",
            answer="ORA-00060 and QUOTA_EXCEEDED in the log of another service",
            metadata={"alert": {"name": "GatewayErrorsHigh"}},
        )
    )
    assert [suggestion.code for suggestion in found] == ["GatewayErrorsHigh", "HTTP 504", "ORA-00060"]
    assert found[0].evidence == (Found("GatewayErrorsHigh", Source.ALERT),)
    assert found[1].evidence == (Found("大量 504", Source.QUESTION),)


def test_of_an_answer_only_what_is_surely_a_code_is_taken():
    assert codes(answer="The service ORDER_SERVICE logged 80012 twice") == []
    assert codes(question="Why does ORDER_SERVICE log this?") == ["ORDER_SERVICE"]
    assert codes(question="Why does ORDER_SERVICE log this?", answer="It is ECONNRESET.")[0] == "ECONNRESET"


def test_what_a_tool_said_of_its_own_failure_comes_last():
    assert codes(errors=["upstream answered HTTP 403"], answer="QUOTA_EXCEEDED") == ["QUOTA_EXCEEDED", "HTTP 403"]


def test_there_are_few_and_they_fit_their_column():
    long = "A" + "B" * 20 + ("_" + "C" * 24) * 6 + "_FAILED"
    found = codes(question=f"{long} ERR_A ERR_B ERR_C ERR_D", metadata={"alert": "x" * 300})
    assert len(found) == SUGGESTIONS
    assert all(len(code) <= MAX_CODE_CHARS for code in found)


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["alert", "name", "error_code", "告警", ""]), inner)
    ),
)


@given(
    st.text()
    | st.lists(st.sampled_from(["ORA-", "HTTP ", "503", "错误码", "A_", "NodeDown", ":", " ", "{code}", "\n"])),
    json,
)
def test_no_text_is_too_strange(text, metadata):
    text = text if isinstance(text, str) else "".join(text)
    for suggestion in rank_codes(Clues(question=text, answer=text, metadata=metadata)):
        assert suggestion.code
        assert suggestion.evidence

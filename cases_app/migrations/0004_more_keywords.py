"""Keywords that tell categories apart: more of them in each language, and fewer that stand in any text.

A list that somebody has changed since it was seeded stays as it is.
"""

from importlib import import_module
from typing import Any

from django.db import migrations

KEYWORDS: dict[str, list[str]] = {
    "CPU_HIGH": [
        "cpu", "load average", "high load", "load high", "overload", "stdload", "throttling", "runaway process",
        "处理器", "高负载", "负载过高", "负载异常", "系统负载", "节点负载", "标准负载", "打满",
        "процессор", "нагрузка на процессор", "загрузка cpu", "высокая нагрузка", "перегрузка",
    ],
    "MEMORY_OOM": [
        "oom", "oomkilled", "out of memory", "out of mem", "outofmemory", "memory", "mem", "heap", "gc", "full gc", "swap",
        "内存", "内存溢出", "内存不足", "内存泄漏", "堆", "老年代",
        "память", "нехватка памяти", "утечка памяти", "куча", "сборка мусора",
    ],
    "DISK_FULL": [
        "disk", "disk full", "disk space", "no space left", "inode", "enospc", "filesystem", "df", "volume full", "filling up",
        "read only allow delete",
        "磁盘", "磁盘空间", "写满", "根分区", "文件系统", "存储空间",
        "диск", "место на диске", "закончилось место", "нет места", "файловая система", "переполнен",
    ],
    "SERVICE_UNAVAILABLE": [
        "503", "502", "unavailable", "service down", "connection refused", "instance down", "target down", "bad gateway",
        "unreachable", "error rate high", "error rate",
        "不可用", "宕机", "无法访问", "服务异常", "服务中断", "连接被拒绝",
        "недоступен", "упал", "не отвечает", "отказ в соединении",
    ],
    "SLOW_RESPONSE": [
        "latency", "slow", "slow response", "p99", "p95", "timeout", "timed out", "504",
        "慢", "响应慢", "响应时间", "延迟", "超时", "卡顿", "耗时",
        "медленно", "медленный ответ", "задержка", "таймаут", "время ответа", "тормозит", "висит",
    ],
    "DB_SLOW_QUERY": [
        "slow query", "slow sql", "full scan", "full table scan", "execution plan", "query plan", "explain analyze",
        "explain sql", "missing index", "index selection", "deadlock", "lock wait",
        "慢查询", "慢sql", "全表扫描", "执行计划", "索引", "死锁", "锁等待",
        "медленный запрос", "план запроса", "полное сканирование", "нет индекса", "взаимная блокировка", "блокировки",
    ],
    "DB_CONNECTION": [
        "connection pool", "too many connections", "hikari", "max connections", "pool exhausted", "connection leak",
        "数据库连接", "连接池", "连接数", "连接泄漏",
        "пул соединений", "пул подключений", "слишком много подключений", "число подключений",
    ],
    "CACHE": [
        "redis", "cache", "cache miss", "eviction", "hit rate", "memcached", "ttl",
        "缓存", "缓存失效", "缓存穿透", "雪崩", "击穿", "命中率",
        "кэш", "кеш", "вытеснение", "промах кэша", "прогрев",
    ],
    "DEPENDENCY_FAILURE": [
        "dependency", "upstream", "downstream", "third party", "circuit breaker", "consumer lag", "kafka", "rabbitmq",
        "message queue", "external api",
        "依赖", "依赖服务", "上游", "下游", "第三方", "熔断", "消息积压", "积压", "消费组",
        "зависимость", "внешний сервис", "сторонний", "очередь сообщений",
    ],
    "NETWORK_DNS": [
        "dns", "network", "packet loss", "certificate", "tls", "ssl", "x509", "cert date invalid", "nslookup", "resolver",
        "ntp", "clock skew",
        "网络", "丢包", "证书", "域名解析", "dns解析", "握手", "时钟偏移",
        "сеть", "сети", "сетевой", "потеря пакетов", "сертификат", "резолвер", "разрешение имен",
    ],
    "CONFIG_ERROR": [
        "config", "misconfiguration", "wrong config", "environment variable", "yaml", "config map", "feature flag",
        "createcontainerconfigerror",
        "配置", "配置错误", "配置项", "参数错误", "环境变量", "密钥",
        "конфигурация", "ошибка конфигурации", "настройка", "переменная окружения",
    ],
    "POD_RESTART": [
        "crashloopbackoff", "crash loop", "crash looping", "imagepullbackoff", "image pull", "errimagepull",
        "container restart", "pod restart", "restart count", "liveness", "exit code", "restarting",
        "反复重启", "频繁重启", "重启次数", "重启", "探针", "镜像拉取",
        "перезапуск", "перезапущен", "перезапуски подов", "рестарт", "код выхода",
    ],
    "SCHEDULING_QUOTA": [
        "quota", "resource quota", "quota exceeded", "pods pending", "pending", "unschedulable", "insufficient",
        "failed scheduling", "node selector", "taint",
        "配额", "调度失败", "无法调度", "调度", "资源不足",
        "квота", "превышена квота", "планировщик", "не хватает ресурсов",
    ],
    "TRAFFIC_SPIKE": [
        "traffic", "traffic spike", "qps", "requests per second", "rate limit", "too many requests", "429", "ddos",
        "流量", "流量突增", "突增", "限流", "大促", "请求量",
        "трафик", "всплеск", "запросов в секунду", "лимит запросов",
    ],
}  # fmt: skip


def extend(apps: Any, schema_editor: Any) -> None:
    """Exchange the lists that stand as they were seeded."""
    seeded = import_module("cases_app.migrations.0002_seed_fault_categories").CATEGORIES
    for category in apps.get_model("cases_app", "FaultCategory").objects.filter(code__in=KEYWORDS):
        if category.keywords == seeded[category.code][-1]:
            category.keywords = KEYWORDS[category.code]
            category.save(update_fields=["keywords"])


class Migration(migrations.Migration):
    """Data only."""

    dependencies = [("cases_app", "0003_queue_indexes")]
    operations = [migrations.RunPython(extend, migrations.RunPython.noop)]

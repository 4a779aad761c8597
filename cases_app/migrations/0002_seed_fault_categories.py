"""The taxonomy to start with. Leads may change it; a later migration never overwrites what they wrote."""

from typing import Any

from django.db import migrations

# code: (English, Chinese, Russian, keywords in all three)
CATEGORIES: dict[str, tuple[str, str, str, list[str]]] = {
    "GENERAL": ("General", "通用", "Общее", []),
    "CPU_HIGH": (
        "High CPU", "CPU 使用率过高", "Высокая загрузка CPU",
        ["cpu", "load average", "throttling", "处理器", "负载", "процессор", "загрузка"],
    ),
    "MEMORY_OOM": (
        "Out of memory", "内存溢出", "Нехватка памяти",
        ["oom", "out of memory", "heap", "gc", "内存", "溢出", "память", "утечка"],
    ),
    "DISK_FULL": (
        "Disk full", "磁盘写满", "Диск переполнен",
        ["disk", "no space left", "inode", "磁盘", "空间不足", "диск", "место"],
    ),
    "SERVICE_UNAVAILABLE": (
        "Service unavailable", "服务不可用", "Сервис недоступен",
        ["503", "502", "unavailable", "connection refused", "不可用", "宕机", "недоступен", "упал"],
    ),
    "SLOW_RESPONSE": (
        "Slow response", "响应缓慢", "Медленный ответ",
        ["latency", "slow", "p99", "timeout", "慢", "延迟", "超时", "медленно", "задержка", "таймаут"],
    ),
    "DB_SLOW_QUERY": (
        "Slow query", "慢查询", "Медленный запрос к БД",
        ["slow query", "full scan", "explain", "index", "慢查询", "慢sql", "索引", "медленный запрос", "индекс"],
    ),
    "DB_CONNECTION": (
        "Database connections", "数据库连接", "Подключения к БД",
        ["connection pool", "too many connections", "hikari", "连接池", "连接数", "пул соединений", "подключений"],
    ),
    "CACHE": (
        "Cache", "缓存", "Кэш",
        ["redis", "cache", "eviction", "hit rate", "缓存", "雪崩", "击穿", "кэш", "вытеснение"],
    ),
    "DEPENDENCY_FAILURE": (
        "Dependency failure", "依赖故障", "Сбой зависимости",
        ["upstream", "downstream", "third party", "circuit breaker", "依赖", "上游", "下游", "熔断", "зависимость"],
    ),
    "NETWORK_DNS": (
        "Network and DNS", "网络与 DNS", "Сеть и DNS",
        ["dns", "network", "packet loss", "certificate", "tls", "网络", "丢包", "证书", "解析", "сеть", "сертификат"],
    ),
    "CONFIG_ERROR": (
        "Configuration error", "配置错误", "Ошибка конфигурации",
        ["config", "misconfiguration", "yaml", "env", "配置", "参数", "конфигурация", "настройка"],
    ),
    "POD_RESTART": (
        "Pod restarts", "Pod 重启", "Перезапуски подов",
        ["crashloopbackoff", "restart", "imagepullbackoff", "liveness", "重启", "探针", "перезапуск", "под"],
    ),
    "SCHEDULING_QUOTA": (
        "Scheduling and quota", "调度与配额", "Планирование и квоты",
        ["quota", "pending", "unschedulable", "insufficient", "配额", "调度", "квота", "планировщик"],
    ),
    "TRAFFIC_SPIKE": (
        "Traffic spike", "流量突增", "Всплеск трафика",
        ["traffic", "qps", "spike", "rate limit", "流量", "突增", "限流", "трафик", "всплеск"],
    ),
}  # fmt: skip


def seed(apps: Any, schema_editor: Any) -> None:
    """Insert what is missing."""
    category = apps.get_model("cases_app", "FaultCategory")
    for code, (name, name_zh, name_ru, keywords) in CATEGORIES.items():
        values = {"name": name, "name_zh": name_zh, "name_ru": name_ru, "keywords": keywords}
        category.objects.get_or_create(code=code, defaults=values)


class Migration(migrations.Migration):
    """Data only."""

    dependencies = [("cases_app", "0001_initial")]
    operations = [migrations.RunPython(seed, migrations.RunPython.noop)]

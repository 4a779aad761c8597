"""The failure modes to start with, and who keeps them. A later migration never overwrites what Leads wrote."""

from typing import Any

from django.contrib.auth.management import create_permissions
from django.db import migrations

# code, English, Chinese, Russian
MODES = (
    ("WRONG_ROOT_CAUSE", "Wrong root cause", "根因错误", "Неверная первопричина"),
    ("HALLUCINATION", "Hallucination", "幻觉", "Выдумка"),
    ("MISSING_KNOWLEDGE", "Missing knowledge", "知识缺失", "Не хватает знаний"),
    ("RETRIEVAL_MISS", "Retrieval miss", "检索未命中", "Поиск не нашёл"),
    ("TOOL_FAILURE", "Tool failure", "工具故障", "Сбой инструмента"),
    ("TRUNCATED_EVIDENCE", "Truncated evidence", "证据被截断", "Обрезаны данные"),
    ("INCOMPLETE", "Incomplete", "答案不完整", "Неполный ответ"),
    ("UNCLEAR_ANSWER", "Unclear answer", "表述不清", "Неясный ответ"),
    ("OUT_OF_SCOPE", "Out of scope", "超出范围", "Вне компетенции"),
    ("USER_ERROR", "User error", "用户操作有误", "Ошибка пользователя"),
)
ROLES = {
    "Reviewer": ("view_failuremode",),
    "Lead": ("view_failuremode", "add_failuremode", "change_failuremode"),
    "Operator": ("view_failuremode",),
}


def seed(apps: Any, schema_editor: Any) -> None:
    """Those that are missing."""
    modes = apps.get_model("feedback_app", "FailureMode").objects
    for at, (code, name, name_zh, name_ru) in enumerate(MODES, 1):
        names = {"name": name, "name_zh": name_zh, "name_ru": name_ru}
        modes.get_or_create(code=code, defaults={**names, "position": 10 * at})


def widen_roles(apps: Any, schema_editor: Any) -> None:
    """Groups that are there keep what they have and get what they lack."""
    alias = schema_editor.connection.alias
    config = apps.get_app_config("feedback_app")
    config.models_module = True  # Django makes permissions after the last migration, which is too late for us
    create_permissions(config, verbosity=0, using=alias, apps=apps)
    config.models_module = None
    group_model, permission_model = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    for name, codenames in ROLES.items():
        group, _ = group_model.objects.using(alias).get_or_create(name=name)
        permissions = permission_model.objects.using(alias).filter(
            content_type__app_label="feedback_app", codename__in=codenames
        )
        group.permissions.add(*permissions)


class Migration(migrations.Migration):
    """Data only. Going back leaves the groups: people are in them."""

    dependencies = [("feedback_app", "0034_failure_modes")]

    operations = [
        migrations.RunPython(seed, migrations.RunPython.noop),
        migrations.RunPython(widen_roles, migrations.RunPython.noop),
    ]

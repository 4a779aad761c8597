"""Users and groups, in the frame's look. Only a superuser hands out more power than a group of roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as BaseGroupAdmin
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

admin.site.unregister(User)
admin.site.unregister(Group)

ROLES: Mapping[str, Any] = {
    "Reviewer": gettext_lazy("Reviewer"),
    "Lead": gettext_lazy("Lead"),
    "Operator": gettext_lazy("Operator"),
}
"""The groups that a migration makes, in the reader's language; any other by its own name."""

ACTIONS: Mapping[str, Any] = {
    "add": gettext_lazy("may add"),
    "change": gettext_lazy("may change"),
    "delete": gettext_lazy("may delete"),
    "view": gettext_lazy("may see"),
}


def role_name(name: str) -> str:
    """A group in the reader's language."""
    return str(ROLES.get(name, name))


def permission_name(permission: Permission) -> str:
    """Django stores the names of permissions in English."""
    action = ACTIONS.get(permission.codename.partition("_")[0])
    return f"{permission.content_type} | {action or _(permission.name)}"


class LocalNames:
    """Choices of groups and permissions in the reader's language."""

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **kwargs: Any) -> Any:
        """Django's field with other labels."""
        if db_field.related_model is Group:
            kwargs["widget"] = UnfoldAdminCheckboxSelectMultipleWidget
        field: Any = super().formfield_for_manytomany(db_field, request, **kwargs)  # type: ignore[misc]
        if db_field.related_model is Permission:
            field.label_from_instance = permission_name
        elif db_field.related_model is Group:
            field.label_from_instance = lambda group: role_name(group.name)
        return field

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[Any, dict[str, int], set[str], Any]:
        """Without the rows that only say who is in which group and what a group may: they have no names for people."""
        deleted, counts, lacking, protected = super().get_deleted_objects(objs, request)  # type: ignore[misc]
        links = [model._meta for model in apps.get_models(include_auto_created=True) if model._meta.auto_created]  # noqa: SLF001
        for link in links:
            counts.pop(link.verbose_name_plural, None)
        return (
            _without(deleted, tuple(f"{capfirst(link.verbose_name)}: " for link in links)),
            counts,
            lacking,
            protected,
        )


def _without(nodes: list[Any], beginnings: tuple[str, ...]) -> list[Any]:
    """A nested list of texts without those that begin so."""
    kept = [_without(node, beginnings) if isinstance(node, list) else node for node in nodes]
    return [node for node in kept if node != [] and not str(node).startswith(beginnings)]


class RoleFilter(admin.RelatedFieldListFilter):
    """The groups somebody is in, by their names in the reader's language."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        """Django's choices with other labels."""
        return [(key, role_name(str(name))) for key, name in super().field_choices(field, request, model_admin)]


@admin.register(User)
class UserAdmin(LocalNames, BaseUserAdmin[User], ModelAdmin):
    """People who may sign in."""

    filter_horizontal = ()  # Django's pairs of lists have names that no screen reader says
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_filter = ("is_staff", "is_superuser", "is_active", ("groups", RoleFilter))
    list_filter_submit = True

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Whoever may change users must not thereby be able to make themselves a superuser."""
        fields = tuple(super().get_readonly_fields(request, obj))
        return fields if request.user.is_superuser else (*fields, "is_superuser", "groups", "user_permissions")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nor change a superuser's password."""
        is_above = obj is not None and obj.is_superuser and not request.user.is_superuser
        return bool(super().has_change_permission(request, obj)) and not is_above

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nor delete one."""
        is_above = obj is not None and obj.is_superuser and not request.user.is_superuser
        return bool(super().has_delete_permission(request, obj)) and not is_above


@admin.register(Group)
class GroupAdmin(LocalNames, BaseGroupAdmin, ModelAdmin):
    """Roles."""

    filter_horizontal = ()
    list_display = ("role",)

    @admin.display(description=gettext_lazy("name"), ordering="name")
    def role(self, group: Group) -> SafeString:
        """What it is called in the reader's language, and by its own name, which the manuals use."""
        local = role_name(group.name)
        own = "" if local == group.name else group.name
        return format_html('{} <span class="desk-quiet">{}</span>', local, own)

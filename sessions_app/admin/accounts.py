"""Users and groups, in the frame's look. Only a superuser hands out more power than a group of roles."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as BaseGroupAdmin
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(BaseUserAdmin[User], ModelAdmin):
    """People who may sign in."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
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
class GroupAdmin(BaseGroupAdmin, ModelAdmin):
    """Roles."""

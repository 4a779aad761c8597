"""Texts of libraries that bring no Chinese or no Russian of their own, or one that reads badly.

Nothing imports this: the names stand here so that `makemessages` finds them, and our catalogues translate them.
`tests/config/test_translations.py` fails when unfold has a text that nobody translates.
"""

from django.utils.translation import gettext_noop as _

UNFOLD = (
    _("Add row"),
    _("After you've created a user, you’ll be able to edit more user options."),
    _("All applications"),
    _("Apply Filters"),
    _("Cancel"),
    _("Choose file to upload"),
    _("Click to cancel"),
    _("Click to download"),
    _("Date"),
    _("Date from"),
    _("Date to"),
    _("Expand row"),
    _("False"),
    _("General"),
    _("Go back"),
    _("Image preview"),
    _("Loading more results..."),
    _("More actions"),
    _("Next"),
    _("No data"),
    _("No recent searches"),
    _("No results found"),
    _("No results matching your query"),
    _("Not enough data."),
    _("Previous"),
    _(
        "Raw passwords are not stored, so there is no way to see this user’s password, but you can change the password "
        'using <a href="{}" class="text-primary-600 dark:text-primary-500">this form</a>.'
    ),
    _("Recent searches"),
    _("Record picture"),
    _("Reset filters"),
    _("Return to site"),
    _("Run"),
    _("Search apps and models..."),
    _("Select action"),
    _("Select action to run"),
    _("Select all rows"),
    _("Select currency"),
    _("Select record"),
    _("Submit"),
    _("This item will be deleted."),
    _("This page yielded into no results. Create a new item or reset your filters."),
    _("Toggle password visibility"),
    _("True"),
    _("Type to search"),
    _("Value"),
    _("Welcome back to"),
    _("You have been successfully logged out from the administration"),
)

AXES = (
    _("Account locked: too many login attempts. Please try again later."),
    _("Account locked: too many login attempts. Contact an admin to unlock your account."),
    _("access attempt"),
    _("access attempt expiration"),
    _("access failure"),
    _("access log"),
)

# Django's Russian sets names into sentences that would have to inflect them: «Выберите сессия для просмотра». Its
# Chinese heads a filter with 以.
DJANGO = (
    _(
        'Are you sure you want to delete the %(object_name)s "%(escaped_object)s"? All of the following related items '
        "will be deleted:"
    ),
    _(
        "Whether the user will be able to authenticate using a password or not. If disabled, they may still be able to "
        "authenticate using other backends, such as Single Sign-On or LDAP."
    ),
    _(" By %(filter_title)s "),
    _("%(name)s with ID “%(key)s” doesn’t exist. Perhaps it was deleted?"),
    _("Add %s"),
    _("Change %s"),
    _("Select %s"),
    _("Select %s to change"),
    _("Select %s to view"),
    _("The %(name)s “%(obj)s” was deleted successfully."),
    _("The {name} “{obj}” was added successfully."),
    _("The {name} “{obj}” was added successfully. You may add another {name} below."),
    _("The {name} “{obj}” was changed successfully."),
    _("The {name} “{obj}” was changed successfully. You may add another {name} below."),
    _("The {name} “{obj}” was changed successfully. You may edit it again below."),
    _("View %s"),
    _("You may edit it again below."),
)

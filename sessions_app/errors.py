"""The refusals of the domain. They know no HTTP; `config.api` gives each its status.

Imports nothing, so that every module of every app may raise them.
"""

from collections.abc import Mapping, Sequence

FieldErrors = Mapping[str, Sequence[str]]
"""Wire name of a field (dotted for nested ones, `steps.0.agentName`) → what is wrong with it."""


class DomainError(Exception):
    """A request the domain refuses. `code` is stable, `message` is for people, `errors` names fields."""

    code = "refused"

    def __init__(self, message: str, *, errors: FieldErrors | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.errors: FieldErrors = errors or {}


class InvalidInputError(DomainError):
    """The input breaks a rule that only the domain knows."""

    code = "invalid"


class UnknownObjectError(DomainError):
    """What the request speaks of does not exist."""

    code = "not_found"


class ConflictError(DomainError):
    """The object is in a state that does not allow this, or somebody else was first."""

    code = "conflict"

"""Rows in a few statements of bounded size, written and read.

Django's querysets do the same at four times the cost: half of a recording's time went into compiling statements of one
shape. Here each table has its plan, made once: its columns, and for each how a value becomes a parameter or comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.db import connection, models
from django.db.models.base import ModelState
from django.utils import timezone

from sessions_app.fields import dumps, encoded

STATEMENT_BYTES = 2_000_000
"""About how many bytes one statement carries; MariaDB's packet is 16 MiB."""

AnyRow = TypeVar("AnyRow", bound=models.Model)
Adapter = Callable[[Any], Any]


def new_row(model: type[AnyRow], **values: Any) -> AnyRow:
    """An unsaved row of defaults and `values`, by names of attributes: `Model.__init__` at a fifth of its cost."""
    constants, factories = _defaults(model)
    row = model.__new__(model)
    row._state = ModelState()  # noqa: SLF001
    row.__dict__.update(constants)
    for name, factory in factories:
        if name not in values:
            row.__dict__[name] = factory()
    row.__dict__.update(values)
    return row


@cache
def _defaults(model: type[models.Model]) -> tuple[dict[str, Any], tuple[tuple[str, Callable[[], Any]], ...]]:
    """By attribute: defaults that may be shared, and what makes the others anew."""
    fields = model._meta.concrete_fields  # noqa: SLF001
    made = [field for field in fields if field.has_default() and callable(field.default)]
    constants = {field.attname: field.get_default() for field in fields if field not in made}
    return constants, tuple((field.attname, field.default) for field in made)


def insert(model: type[AnyRow], rows: Sequence[AnyRow]) -> None:
    """Insert new rows; a key that is taken raises IntegrityError. Their keys are read back where the database can."""
    plan = _plan(model, connection.vendor, with_key=not _has_own_key(model))
    returning = _has_own_key(model) and connection.features.can_return_rows_from_bulk_insert
    tail = f" RETURNING {_quoted('id')}" if returning else ""
    for chunk, values, parameters in _statements(plan, rows):
        with connection.cursor() as cursor:
            _execute(cursor, plan.head, values, tail, parameters)
            if returning:
                for row, (key,) in zip(chunk, cursor.fetchall(), strict=True):
                    row.pk = key


def upsert(model: type[AnyRow], rows: Sequence[AnyRow], fields: Sequence[str]) -> None:
    """Update stored rows in one statement a chunk; their keys exist, so nothing is inserted."""
    plan = _plan(model, connection.vendor, with_key=True)
    columns = [_quoted(model._meta.get_field(name).column) for name in fields]  # type: ignore[union-attr]  # noqa: SLF001
    if connection.vendor == "mysql":
        tail = " ON DUPLICATE KEY UPDATE " + ", ".join(f"{column} = VALUES({column})" for column in columns)
    else:
        key = _quoted(str(model._meta.pk.column))  # noqa: SLF001
        tail = f" ON CONFLICT ({key}) DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in columns)
    for _, values, parameters in _statements(plan, rows):
        with connection.cursor() as cursor:
            _execute(cursor, plan.head, values, tail, parameters)


def update(row: models.Model, *names: str) -> None:
    """Write these attributes of a row that stands there, by its key. The caller holds its lock."""
    plan = _changing_plan(type(row), names, connection.vendor)
    values = [(row.__dict__[name], adapt) for name, adapt in plan.columns]
    parameters = [adapt(value) if adapt and value is not None else value for value, adapt in values]
    with connection.cursor() as cursor:
        cursor.execute(plan.statement, parameters)


class _ChangingPlan(NamedTuple):
    """How some columns of one row are written."""

    statement: str
    columns: tuple[tuple[str, Adapter | None], ...]  # attribute, what makes a parameter of its value; last the key


@cache
def _changing_plan(model: type[models.Model], names: tuple[str, ...], vendor: str) -> _ChangingPlan:
    fields = {field.attname: field for field in model._meta.concrete_fields}  # noqa: SLF001
    changed, key = [fields[name] for name in names], fields[str(model._meta.pk.attname)]  # noqa: SLF001
    changes = ", ".join(f"{_quoted(field.column)} = %s" for field in changed)
    return _ChangingPlan(
        f"UPDATE {_quoted(model._meta.db_table)} SET {changes} WHERE {_quoted(key.column)} = %s",  # noqa: S608, SLF001
        tuple((field.attname, _adapter(field)) for field in (*changed, key)),
    )


def select_one(
    model: type[AnyRow], column: str, value: str, names: tuple[str, ...] = (), *, lock: bool = False
) -> AnyRow | None:
    """The row whose unique `column` has this value, None if there is none; else as `select`."""
    return next(iter(select(model, column, [value], names, lock=lock)), None)


def select(
    model: type[AnyRow], column: str, values: Collection[str], names: tuple[str, ...] = (), *, lock: bool = False
) -> list[AnyRow]:
    """The rows whose `column` is one of `values`, in the order of that column, locked if asked.

    With `names` only these attributes and the key are read; others are fetched when they are asked for.
    """
    if not values:
        return []
    plan = _reading_plan(model, column, names, connection.vendor)
    places = ", ".join(["%s"] * len(values))
    tail = " FOR UPDATE" if lock and connection.features.has_select_for_update else ""
    with connection.cursor() as cursor:
        cursor.execute(f"{plan.head}({places}){plan.order}{tail}", list(values))
        rows = cursor.fetchall()
    return [model.from_db(connection.alias, plan.names, plan.converted(row)) for row in rows]


class _ReadingPlan(NamedTuple):
    """How a table's rows are read."""

    head: str  # SELECT … WHERE column IN
    order: str
    names: tuple[str, ...]  # attributes
    converters: tuple[tuple[int, Any, tuple[Any, ...]], ...]  # place, Django's expression, its converters

    def converted(self, row: Sequence[Any]) -> list[Any]:
        """The values of one row as attributes take them."""
        values = list(row)
        for place, expression, converters in self.converters:
            for convert in converters:
                values[place] = convert(values[place], expression, connection)
        return values


@cache
def _reading_plan(model: type[models.Model], column: str, names: tuple[str, ...], vendor: str) -> _ReadingPlan:
    every = model._meta.concrete_fields  # noqa: SLF001
    fields = [field for field in every if not names or field.primary_key or field.attname in names]
    table, key = model._meta.db_table, _quoted(model._meta.get_field(column).column)  # type: ignore[union-attr]  # noqa: SLF001
    columns = ", ".join(_quoted(field.column) for field in fields)
    found: list[tuple[int, Any, tuple[Any, ...]]] = []
    for place, field in enumerate(fields):
        expression = field.get_col(table)
        own = (*connection.ops.get_db_converters(expression), *expression.get_db_converters(connection))
        if own:
            found.append((place, expression, own))
    return _ReadingPlan(
        f"SELECT {columns} FROM {_quoted(table)} WHERE {key} IN ",  # noqa: S608 - names of our own models
        f" ORDER BY {key}",
        tuple(field.attname for field in fields),
        tuple(found),
    )


class _Plan(NamedTuple):
    """How the rows of one table become a statement."""

    head: str  # INSERT INTO … VALUES
    columns: tuple[tuple[str, Adapter | None], ...]  # attribute, what makes a parameter of its value
    now: frozenset[str]  # attributes that take the time of writing


@cache
def _plan(model: type[models.Model], vendor: str, *, with_key: bool) -> _Plan:
    fields = [field for field in model._meta.concrete_fields if with_key or not field.primary_key]  # noqa: SLF001
    names = ", ".join(_quoted(field.column) for field in fields)
    return _Plan(
        f"INSERT INTO {_quoted(model._meta.db_table)} ({names}) VALUES ",  # noqa: S608, SLF001 - names of our own models
        tuple((field.attname, _adapter(field)) for field in fields),
        frozenset(
            field.attname
            for field in fields
            if getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False)
        ),
    )


def _adapter(field: models.Field[Any, Any]) -> Adapter | None:
    if isinstance(field, models.ForeignKey):
        return _adapter(field.target_field)
    if isinstance(field, models.JSONField):
        return dumps
    if isinstance(field, models.DateTimeField):
        return _written_utc if connection.timezone_name == "UTC" else connection.ops.adapt_datetimefield_value
    if isinstance(field, models.UUIDField) and not connection.features.has_native_uuid_field:
        return _hex
    if isinstance(field, models.BinaryField):
        database: Any = connection
        binary: Adapter = database.Database.Binary
        return binary
    return None


def _written_utc(moment: datetime) -> str:
    """A time as both databases take it; `adapt_datetimefield_value` in a third of its time."""
    return (moment if moment.tzinfo is UTC else moment.astimezone(UTC)).replace(tzinfo=None).isoformat(" ")


def _hex(value: UUID) -> str:
    return value.hex


def _execute(cursor: Any, head: str, values: bytes, tail: str, parameters: list[Any]) -> None:
    statement = b"%b%b%b" % (head.encode(), values, tail.encode())
    if parameters:
        cursor.execute(statement.decode(), parameters)
    else:
        cursor.execute(statement)


def _statements(plan: _Plan, rows: Sequence[AnyRow]) -> Iterator[tuple[list[AnyRow], bytes, list[Any]]]:
    """Cut rows into chunks of bounded size, each with the values of its statement and their parameters."""
    most = (connection.features.max_query_params or 65_535) // len(plan.columns)
    now = timezone.now()
    quote = _quote_of_driver() if rows and connection.vendor == "mysql" else None
    chunk: list[AnyRow] = []
    values: list[bytes] = []
    parameters: list[Any] = []
    size = 0
    for row in rows:
        written, own = _values(plan, row, now, quote)
        weight = len(written) + sum(len(value) for value in own if isinstance(value, str | bytes))
        if chunk and (size + weight > STATEMENT_BYTES or len(chunk) == most):
            yield chunk, b", ".join(values), parameters
            chunk, values, parameters, size = [], [], [], 0
        chunk.append(row)
        values.append(written)
        parameters += own
        size += weight
    if chunk:
        yield chunk, b", ".join(values), parameters


Quote = Callable[[Any, Adapter | None], bytes]


def _quote_of_driver() -> Quote:
    """What writes a value as MySQL's driver does, with its own escaping, but without going over text to bytes twice."""
    connection.ensure_connection()
    driver: Any = connection.connection
    escaped = driver.string_literal

    def quote(value: Any, adapt: Adapter | None) -> bytes:
        if adapt is dumps:
            written: bytes = escaped(encoded(value))
        elif adapt is None and type(value) is str:
            written = escaped(value.encode())
        else:
            written = driver.literal(value if adapt is None else adapt(value))
        return written

    return quote


def _values(plan: _Plan, row: models.Model, now: Any, quote: Quote | None) -> tuple[bytes, list[Any]]:
    """A row as it stands in VALUES, and its parameters where the database's driver quotes nothing.

    NULL, numbers and times, most of all, are written out in any case.
    """
    attributes = row.__dict__
    written: list[bytes] = []
    parameters: list[Any] = []
    for name, adapt in plan.columns:
        value = attributes[name]
        if name in plan.now and (value is None or name == "updated_at"):
            value = now
        if value is None:
            written.append(b"NULL")
        elif adapt is None and type(value) in (int, bool):  # in JSON 1 is '1', and true is not 1
            written.append(b"%d" % value)
        elif adapt is _written_utc:
            written.append(b"'%b'" % _written_utc(value).encode())
        elif quote is not None:
            written.append(quote(value, adapt))
        else:
            written.append(b"%s")
            parameters.append(value if adapt is None else adapt(value))
    return b"(%b)" % b", ".join(written), parameters


def _has_own_key(model: type[models.Model]) -> bool:
    """Whether the database numbers the rows."""
    return isinstance(model._meta.pk, models.AutoField | models.BigAutoField)  # noqa: SLF001


def _quoted(name: str | None) -> str:
    return connection.ops.quote_name(str(name))

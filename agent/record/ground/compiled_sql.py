"""Statements that Django compiles once and this process runs many times.

Compiling a query costs the ORM five to ten times what SQLite needs to run it, and
the statements of the message path never change. Here the SQL, the adaption of
values and the conversion of results are Django's; only the compiling is not repeated.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias, cast

from django.db import DEFAULT_DB_ALIAS, connection, connections, models

Field: TypeAlias = "models.Field[Any, Any]"
#: What a database takes as it is, by the very kind of field. To learn that from the field takes ten
#: times as long.
PLAIN: dict[type[Field], type] = {
    models.CharField: str,
    models.TextField: str,
    models.BooleanField: bool,
    models.IntegerField: int,
    models.PositiveIntegerField: int,
    models.BigAutoField: int,
    models.BigIntegerField: int,
}

#: Rows of one statement that adds, at most: a database takes so many values and no more.
ROWS_AT_ONCE = 64


class PreparedColumn:
    """One field, and how its values are given to the database."""

    def __init__(self, field: Field) -> None:
        self.field = field
        stored = field.target_field if isinstance(field, models.ForeignKey) else field
        self.plain = {PLAIN.get(type(stored)), type(None)}
        """The types of values that the database takes as they are: most, which are not worth a
        call."""

    def adapted(self, value: Any, database: Any) -> Any:
        """``value`` for the connection ``database``."""
        return value if type(value) in self.plain else self.field.get_db_prep_save(value, database)


class PreparedInsert:
    """Inserts rows of ``model``, given as mappings of field names; what is not given has the
    field's default.

    A foreign key in ``loose`` becomes NULL where its row is gone.
    """

    def __init__(self, model: type[models.Model], loose: Collection[str] = ()) -> None:
        self._model = model
        self._loose = loose
        self._statements: dict[int, str] = {}

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> list[int]:
        """Insert ``rows`` with one statement; their primary keys, in order."""
        if not rows:
            return []
        database = connections[
            DEFAULT_DB_ALIAS
        ]  # the common ``connection`` looks this up for each field
        values = [value for row in rows for value in self._values(row, database)]
        with connection.cursor() as cursor:
            cursor.execute(self._statement(len(rows)), values)
            return sorted(pk for (pk,) in cursor.fetchall())

    @cached_property
    def _columns(self) -> list[tuple[str, PreparedColumn, Any]]:
        """Every column but the key, by its attribute, with the value it has when none is given."""
        columns = [
            PreparedColumn(field)
            for field in self._model._meta.concrete_fields
            if not field.primary_key
        ]
        return [
            (column.field.attname, column, column.adapted(_default(column.field), connection))
            for column in columns
        ]

    def _values(self, row: Mapping[str, Any], database: Any) -> list[Any]:
        return [
            default
            if name not in row
            else value
            if type(value := row[name]) in column.plain
            else column.adapted(value, database)
            for name, column, default in self._columns
        ]

    def _statement(self, count: int) -> str:
        statement = self._statements.get(count)
        if statement is None:
            table, key = _quoted(self._model._meta.db_table), _quoted(self._model._meta.pk.column)
            columns = ", ".join(_quoted(column.field.column) for _, column, _ in self._columns)
            row = f"({', '.join(self._place(column.field) for _, column, _ in self._columns)})"
            statement = (
                f"INSERT INTO {table} ({columns}) VALUES {', '.join([row] * count)} RETURNING {key}"  # noqa: S608
            )
            self._statements[count] = statement
        return statement

    def _place(self, field: Field) -> str:
        if field.name not in self._loose:
            return "%s"
        target = cast("models.ForeignKey[Any, Any]", field).target_field
        table, key = _quoted(target.model._meta.db_table), _quoted(target.column)
        return f"(SELECT {key} FROM {table} WHERE {key} = %s)"  # noqa: S608


class PreparedUpsert:
    """Inserts rows of ``model``, or updates all values of the row with the same value in the unique
    field ``key``.

    ``fields`` are all fields of the model except its primary key and ``key``.
    """

    def __init__(self, model: type[models.Model], key: str, *fields: str) -> None:
        self._model = model
        self._names = (key, *fields)

    def __call__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run once for each of ``rows``: the value of the key, then those of the fields."""
        if not rows:
            return
        adapted = [_adapted(self._columns, row) for row in rows]
        with connection.cursor() as cursor:
            cursor.executemany(self._statement, adapted)

    @cached_property
    def _columns(self) -> list[PreparedColumn]:
        return [
            PreparedColumn(cast("Field", self._model._meta.get_field(name))) for name in self._names
        ]

    @cached_property
    def _statement(self) -> str:
        key, *others = columns = [_quoted(column.field.column) for column in self._columns]
        into = f"INSERT INTO {_quoted(self._model._meta.db_table)} ({', '.join(columns)})"
        values, sets = (
            ", ".join(["%s"] * len(columns)),
            ", ".join(f"{name} = excluded.{name}" for name in others),
        )
        return f"{into} VALUES ({values}) ON CONFLICT ({key}) DO UPDATE SET {sets}"


class PreparedAddition:
    """Adds to the fields ``added`` of rows of ``model`` that are named by the unique fields
    ``keys``, and inserts the rows that are missing. These are all fields of the model."""

    def __init__(
        self, model: type[models.Model], keys: Sequence[str], added: Sequence[str]
    ) -> None:
        self._model = model
        self._keys = keys
        self._added = added
        self._statements: dict[int, str] = {}

    def __call__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add ``rows``, no two with the same keys: the values of the keys, then those to be added.
        They are as the database takes them."""
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[begin : begin + ROWS_AT_ONCE]
            with connection.cursor() as cursor:
                cursor.execute(self._statement(len(some)), [value for row in some for value in row])

    def _statement(self, count: int) -> str:
        if (statement := self._statements.get(count)) is None:
            statement = self._statements[count] = self._built(count)
        return statement

    def _built(self, count: int) -> str:
        meta = self._model._meta
        table = _quoted(meta.db_table)
        keys, added = (
            [_quoted(cast("Field", meta.get_field(name)).column) for name in some]
            for some in (self._keys, self._added)
        )
        row = f"({', '.join(['%s'] * len(keys + added))})"
        sums = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in added)
        return (
            f"INSERT INTO {table} ({', '.join(keys + added)}) VALUES {', '.join([row] * count)}"  # noqa: S608
            f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {sums}"
        )


class PreparedUpdate:
    """Sets ``fields`` of one row of ``model``; ``added`` are fields that values are added to.

    The row has to have the key, and the values of the fields in ``where``. ``returned`` are the
    fields that :meth:`returning` reads.
    """

    def __init__(
        self,
        model: type[models.Model],
        *fields: str,
        added: Sequence[str] = (),
        where: Sequence[str] = (),
        returned: Sequence[str] = (),
    ) -> None:
        self._model = model
        self._names = fields
        self._added = added
        self._where = where
        self._returned = returned

    def __call__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run once for each of ``rows``: the values of the fields, then of the added ones, then the
        key and the others of ``where``."""
        if not rows:
            return
        adapted = [_adapted(self._columns, row) for row in rows]
        with connection.cursor() as cursor:
            cursor.executemany(self._statement, adapted)

    def matching(self, rows: Sequence[tuple[Any, ...]]) -> list[bool]:
        """The same, telling for each of ``rows`` whether there was such a row."""
        matched = []
        with connection.cursor() as cursor:
            for row in rows:
                cursor.execute(self._statement, _adapted(self._columns, row))
                matched.append(cursor.rowcount > 0)
        return matched

    def returning(self, rows: Sequence[tuple[Any, ...]]) -> list[Sequence[Any] | None]:
        """The same, with the values of the returned fields as the row has them then; None where
        there is no such row."""
        found: list[Sequence[Any] | None] = []
        with connection.cursor() as cursor:
            for row in rows:
                cursor.execute(self._returning, _adapted(self._columns, row))
                found.append(cursor.fetchone())
        return [self._converted(row) if row is not None else None for row in found]

    @cached_property
    def _columns(self) -> list[PreparedColumn]:
        meta = self._model._meta
        key = str(meta.pk.name)
        return [
            PreparedColumn(cast("Field", meta.get_field(name)))
            for name in (*self._names, *self._added, key, *self._where)
        ]

    @cached_property
    def _statement(self) -> str:
        columns = [_quoted(column.field.column) for column in self._columns]
        changed, count = len(self._names) + len(self._added), len(self._names)
        sets = [f"{column} = %s" for column in columns[:count]]
        sets += [f"{column} = {column} + %s" for column in columns[count:changed]]
        where = " AND ".join(f"{column} = %s" for column in columns[changed:])
        return f"UPDATE {_quoted(self._model._meta.db_table)} SET {', '.join(sets)} WHERE {where}"  # noqa: S608

    @cached_property
    def _returning(self) -> str:
        fields = (self._model._meta.get_field(name) for name in self._returned)
        columns = ", ".join(_quoted(cast("Field", field).column) for field in fields)
        return f"{self._statement} RETURNING {columns}"

    @cached_property
    def _converters(self) -> dict[int, list[Any]]:
        """What makes Python's values of the database's, by the place of the returned field."""
        found = {}
        for place, name in enumerate(self._returned):
            column = cast("Field", self._model._meta.get_field(name)).cached_col
            known = connection.ops.get_db_converters(column)
            if both := [*known, *column.get_db_converters(connection)]:
                found[place] = [(one, column) for one in both]
        return found

    def _converted(self, row: Sequence[Any]) -> Sequence[Any]:
        values = list(row)
        for place, converters in self._converters.items():
            for convert, column in converters:
                values[place] = convert(values[place], column, connection)
        return values


class PreparedSelect:
    """A ``values_list`` query, compiled once and run with other values for its parameters.

    The parameters are those of the compiled query, in order; the values that the
    query was built with only show their places.
    """

    def __init__(self, query: "models.QuerySet[Any, Any]") -> None:
        self._query = query

    def __call__(self, *parameters: Any) -> list[Sequence[Any]]:
        with connection.cursor() as cursor:
            cursor.execute(self._statement, parameters)
            rows = cursor.fetchall()
        return (
            list(self._compiler.apply_converters(rows, self._converters))
            if self._converters
            else rows
        )

    @cached_property
    def _compiler(self) -> Any:
        return self._query.query.get_compiler(connection=connection)

    @cached_property
    def _statement(self) -> str:
        return str(self._compiler.as_sql()[0])

    @cached_property
    def _converters(self) -> dict[int, Any]:
        _ = self._statement  # what is selected is known once it is compiled
        found: dict[int, Any] = self._compiler.get_converters(
            [expression for expression, _, _ in self._compiler.select]
        )
        return found


def _adapted(columns: Sequence[PreparedColumn], row: tuple[Any, ...]) -> list[Any]:
    database = connections[DEFAULT_DB_ALIAS]
    return [
        value if type(value) in column.plain else column.adapted(value, database)
        for column, value in zip(columns, row, strict=True)
    ]


def _default(field: Field) -> Any:
    constant = field.db_default
    return constant.value if isinstance(constant, models.Value) else field.get_default()


def _quoted(name: str | None) -> str:
    return str(connection.ops.quote_name(str(name)))

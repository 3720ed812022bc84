"""Opening the database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine, event
from sqlalchemy import inspect as sa_inspect
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import StaticPool
from sqlalchemy.schema import CreateColumn

from extractor.errors import ConfigurationError, StoreError
from extractor.store import tables
from extractor.store.forms import json_text
from extractor.store.writer import as_store_error

PRAGMAS = ("journal_mode=WAL", "foreign_keys=ON", "synchronous=FULL")
BUSY_SECONDS = 30
"""How long a write waits for another process's transaction to end."""


def url_of(database: str, root: Path | None = None) -> URL:
    """The database's address; a relative SQLite path stands relative to the project root.

    :raises ConfigurationError: when it is no address that SQLAlchemy reads, or no database that we write to.
    """
    try:
        url = make_url(database)
    except ArgumentError:
        raise ConfigurationError(
            "the database is not an address of the form dialect://…", hint="for example sqlite:///extractor.db"
        ) from None
    if url.get_backend_name() != "sqlite":
        raise ConfigurationError(
            f"{url.get_backend_name()} is not written to by this version", hint="use sqlite:///path/to/file.db"
        )
    if root is not None and url.database and url.database != ":memory:" and not Path(url.database).is_absolute():
        url = url.set(database=str(root / url.database))
    return url


def is_there(url: URL) -> bool:
    """Whether the database holds tables of ours already; looking makes none, and no file either."""
    if not url.database or not Path(url.database).is_file():
        return False
    engine = open_engine(url, reads_only=True)
    try:
        with engine.execution_options(extractor_reads=True).connect() as connection:
            return sa_inspect(connection).has_table(tables.work.name)
    except SQLAlchemyError as error:
        raise as_store_error(error, engine) from None
    finally:
        engine.dispose()


def open_engine(url: URL, *, reads_only: bool = False) -> Engine:
    """An engine for the store, with our tables in place.

    :param reads_only: leave the database as it is; writing to it fails.
    :raises StoreError: when the database cannot be opened, or was written by a later version.
    """
    in_memory = not url.database or url.database == ":memory:"
    if not in_memory and not reads_only:
        _folder_of(url)
    options: dict[str, Any] = {
        "connect_args": {"timeout": BUSY_SECONDS, "check_same_thread": False},
        "json_serializer": json_text,
    }
    if in_memory:
        options["poolclass"] = StaticPool
    else:
        options["max_overflow"] = -1  # a thread that reads holds one for as long as it lives
    try:
        engine = create_engine(url, **options)
    except (NoSuchModuleError, ArgumentError, ImportError) as error:
        raise ConfigurationError(f"no driver for the database: {error}") from None
    _speak_sqlite(engine, ("foreign_keys=ON", "query_only=ON") if reads_only and not in_memory else PRAGMAS)
    if reads_only and not in_memory:
        return engine
    try:
        with engine.begin() as connection:
            tables.metadata.create_all(connection)
            _upgrade(connection)
    except SQLAlchemyError as error:
        raise as_store_error(error, engine) from None
    return engine


def _folder_of(url: URL) -> None:
    folder = Path(url.database or "").parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the folder of the database {url.database!r} cannot be made: {error.strerror}") from None


def _speak_sqlite(engine: Engine, pragmas: tuple[str, ...]) -> None:
    """WAL, foreign keys, and a BEGIN that we send ourselves, so that a transaction holds what it says."""

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in pragmas:
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        options = connection.get_execution_options()
        if options.get("isolation_level") != "AUTOCOMMIT":
            connection.exec_driver_sql("BEGIN" if options.get("extractor_reads") else "BEGIN IMMEDIATE")


def _upgrade(connection: Connection) -> None:
    """Bring our tables to the present version; only ever by adding to them.

    :raises StoreError: when they are of a later version.
    """
    found = connection.execute(tables.meta.select().where(tables.meta.c.key == "version")).first()
    if found is None:
        connection.execute(tables.meta.insert().values(key="version", value=str(tables.VERSION)))
        return
    if int(found.value) > tables.VERSION:
        raise StoreError(
            "the database was written by a later version of extractor", hint="upgrade with: pip install -U extractor"
        )
    if int(found.value) < tables.VERSION:
        for table in tables.metadata.sorted_tables:
            _add_columns(connection, table)
        version = tables.meta.update().where(tables.meta.c.key == "version")
        connection.execute(version.values(value=str(tables.VERSION)))


def _add_columns(connection: Connection, table: Table) -> None:
    """Add what a table of an earlier version lacks."""
    there = {column["name"] for column in sa_inspect(connection).get_columns(table.name)}
    for column in table.columns:
        if column.name not in there:
            declaration = CreateColumn(column).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {declaration}")

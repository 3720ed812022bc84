"""Our own tables: Core, not ORM, in a MetaData of their own.

They stand beside the user's tables in the user's database: in the schema ``extractor`` on PostgreSQL, with the prefix
``extractor_`` on SQLite. A host application never sees them: not in its models, and not in its migrations
(:mod:`extractor.store.migrations`).
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

PREFIX = "extractor_"
SCHEMA = "extractor"
VERSION = 3
"""Goes up with every table or column that is added; an older database gets them when it is opened. A column that is
added may be null, or has a default of the server's."""

metadata = MetaData()

meta = Table(
    f"{PREFIX}meta",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

document = Table(
    f"{PREFIX}document",
    metadata,
    Column("hash", String(64), primary_key=True, comment="SHA-256 of the bytes"),
    Column("source", Text, nullable=False, comment="where it was first seen"),
    Column("size", Integer, nullable=False, comment="bytes"),
    Column("seen_at", DateTime(timezone=True), nullable=False),
)

run = Table(
    f"{PREFIX}run",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("pipeline", String(255), nullable=False, index=True),
    Column("fingerprint", String(64), nullable=False),
    Column("models", Text, nullable=False),
    Column("started_at", DateTime(timezone=True), nullable=False),
    Column("finished_at", DateTime(timezone=True)),
    Column("stopped_by", Text, comment="why it ended early, if it did"),
)

work = Table(
    f"{PREFIX}work",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("document", String(64), ForeignKey(document.c.hash), nullable=False),
    Column("pipeline", String(255), nullable=False),
    Column("status", String(16), nullable=False, index=True, comment="running, or a settled or failed outcome"),
    Column("fingerprint", String(64), nullable=False, comment="schema, prompt, model, options: provenance only"),
    Column("run", Integer, ForeignKey(run.c.id), index=True),
    Column("source", Text, nullable=False, comment="where it was last seen"),
    Column("error", Text, nullable=False, default=""),
    Column("cause", Text, comment="traceback of a bug in a function"),
    Column("flags", JSON, nullable=False, default=list),
    Column("model", Text, nullable=False, default=""),
    Column("attempts", Integer, nullable=False, default=0),
    Column("input_tokens", Integer, nullable=False, default=0),
    Column("output_tokens", Integer, nullable=False, default=0),
    Column("cached_tokens", Integer, nullable=False, default=0),
    Column("seconds", Float, nullable=False, default=0.0),
    Column("started_at", DateTime(timezone=True), nullable=False),
    Column("finished_at", DateTime(timezone=True)),
    UniqueConstraint("document", "pipeline"),
)

reply = Table(
    f"{PREFIX}reply",
    metadata,
    Column("key", String(64), primary_key=True, comment="hash of model and question"),
    Column("model", Text, nullable=False),
    Column("body", Text, nullable=False, comment="the reply, as JSON"),
    Column("kept_at", DateTime(timezone=True), nullable=False),
)

ask = Table(
    f"{PREFIX}ask",
    metadata,
    # Only ever added to, and without foreign keys: a bill outlives what it was for.
    Column("id", Integer, primary_key=True),
    Column("run", Integer),
    Column("work", Integer, nullable=False),
    Column("pipeline", String(255), nullable=False),
    Column("document", String(64), nullable=False),
    Column("model", Text, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("kind", String(32), nullable=False, comment="reply, or why nobody answered"),
    Column("reply", String(64), comment="key of the reply that it brought"),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cached_tokens", Integer, nullable=False),
    Column("cost", Text, comment="US dollars, an exact decimal; null where the price is not known"),
    Column("tags", JSON, nullable=False),
    Column("asked_at", DateTime(timezone=True), nullable=False),
)

attempt = Table(
    f"{PREFIX}attempt",
    metadata,
    Column("work", Integer, ForeignKey(work.c.id), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("rank", Integer, nullable=False),
    Column("reply", String(64), comment="key of the reply; null where nobody answered"),
    Column("results", JSON, nullable=False, comment="verdict and text of each call"),
)

record = Table(
    f"{PREFIX}record",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("work", Integer, ForeignKey(work.c.id), nullable=False),
    Column("reply", String(64), nullable=False, comment="key of the reply that holds the call"),
    Column("position", Integer, nullable=False, comment="place of the call in its reply"),
    Column("call", String(64), nullable=False, comment="hash of function and arguments"),
    Column("function", String(64), nullable=False),
    Column("verdict", String(16), nullable=False),
    Column("table", Text, comment="the user's table; null where the result is no row"),
    Column("key", JSON, comment="primary key of the row"),
    Column("row_hash", String(64), comment="the row and its children as written"),
    Column("arguments", JSON, nullable=False, comment="as the model sent them, printed forms kept"),
    Column("content", Text, nullable=False, comment="what the model was told"),
    Column("flags", JSON, nullable=False),
    Column("written_at", DateTime(timezone=True), nullable=False),
    UniqueConstraint("work", "reply", "position"),
)

evidence = Table(
    f"{PREFIX}evidence",
    metadata,
    Column("record", Integer, ForeignKey(record.c.id, ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False, comment="place of the value in the record"),
    Column("path", Text, nullable=False, comment="such as line_items.0.amount"),
    Column("match", String(16), nullable=False, comment="exact, normalised, fuzzy, hidden, absent"),
    Column("score", Float, nullable=False),
    Column("page", Integer, comment="from 1; null where the value is absent"),
    Column("start", Integer, comment="text[start:end] of the page, or of what is hidden on it"),
    Column("end", Integer),
    Column("boxes", JSON(none_as_null=True), comment="[left, top, right, bottom] in points, one for each line"),
    Column("printed", Text, nullable=False, comment="as the document prints it; as the model sent it where absent"),
    Column("snippet", Text, nullable=False),
    Column("crop", LargeBinary, comment="picture of the place"),
    sqlite_with_rowid=False,  # one tree in place of two: there are some thirty rows a document
)

page = Table(
    f"{PREFIX}page",
    metadata,
    Column("document", String(64), ForeignKey(document.c.hash, ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("text", LargeBinary, nullable=False, comment="UTF-8, compressed with zlib"),
    Column("hidden", LargeBinary, comment="text that nobody sees on the page, likewise"),
    Column("width", Float, nullable=False, comment="in points, upright; 0 where it has no size"),
    Column("height", Float, nullable=False),
    Column("rotation", Float, nullable=False),
    Column("status", String(16), nullable=False),
    Column("how", Text, nullable=False, comment="how it was read"),
    Column("reason", Text, nullable=False, comment="why it could not be read"),
    Column("confidence", Float, comment="of OCR"),
)

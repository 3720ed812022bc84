"""A host application's Alembic never sees our tables.

Alembic compares the whole database with the host's models and would propose to drop what it does not know. It loads
this module through its own plugin door (the entry-point group ``alembic.plugins``), and we tell it that names of ours
are none of its business. The plugin's name begins with ``alembic.autogenerate.``, as those do that are in use without
being named in the host's ``env.py``.
"""

from __future__ import annotations

from typing import Any

from extractor.store.tables import PREFIX, SCHEMA


def setup(plugin: Any) -> None:
    """Called by Alembic when it loads its plugins."""
    from alembic.util import DispatchPriority

    plugin.add_autogenerate_comparator(_hide_ours, "autogenerate", priority=DispatchPriority.FIRST)


def _hide_ours(autogen_context: Any, *_args: Any) -> Any:
    from alembic.util import PriorityDispatchResult

    autogen_context._name_filters.append(_is_the_hosts)  # noqa: SLF001 - Alembic offers no public way to add one
    return PriorityDispatchResult.CONTINUE


def _is_the_hosts(name: str | None, kind: str, parents: dict[str, str | None]) -> bool:
    """Whether a name in the database belongs to the host (Alembic's ``include_name`` signature)."""
    if kind == "schema":
        return name != SCHEMA
    table = name if kind == "table" else parents.get("table_name")
    return not (table or "").startswith(PREFIX) and parents.get("schema_name") != SCHEMA

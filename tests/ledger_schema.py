"""Record types for tests of the store: unique keys, parents, rules, money."""

from decimal import Decimal
from typing import Optional

from sqlalchemy import CheckConstraint
from sqlmodel import Field, Relationship, SQLModel


class Supplier(SQLModel, table=True):
    """A parent that records refer to."""

    __tablename__ = "t_supplier"
    id: int | None = Field(default=None, primary_key=True)
    name: str


class Bill(SQLModel, table=True):
    """A record with a natural key, a foreign key, a rule and exact money."""

    __tablename__ = "t_bill"
    __table_args__ = (CheckConstraint("kind in ('bill', 'credit')", name="known_kind"),)
    id: int | None = Field(default=None, primary_key=True)
    number: str = Field(unique=True)
    kind: str = "bill"
    total: Decimal = Field(max_digits=24, decimal_places=4)
    supplier_id: int | None = Field(default=None, foreign_key="t_supplier.id")
    note: str = Field(nullable=False)
    positions: list["Position"] = Relationship(back_populates="bill", cascade_delete=True)


class Position(SQLModel, table=True):
    """A line of a bill."""

    __tablename__ = "t_position"
    id: int | None = Field(default=None, primary_key=True)
    bill_id: int | None = Field(default=None, foreign_key="t_bill.id")
    text: str
    bill: Optional["Bill"] = Relationship(back_populates="positions")


class Tick(SQLModel, table=True):
    """A record without a unique key: what is written twice stands there twice."""

    __tablename__ = "t_tick"
    id: int | None = Field(default=None, primary_key=True)
    name: str

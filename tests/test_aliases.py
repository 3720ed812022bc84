"""Aliases: ``[tool.extractor.models.NAME]``, read exactly and checked key by key."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from extractor import Pipeline
from extractor.configuration import Alias, find
from extractor.errors import ConfigurationError
from extractor.messages import Usage
from extractor.options import Options
from extractor.prices import Price

FULL = """
[tool.extractor.models.cheap]
provider = "azure"
model = "gpt-5-mini"
deployment = "my-mini"
endpoint = "https://acme.openai.azure.com/"
api_version = "2026-01-01"
key = "ACME_AZURE_KEY"
dialect = "json_schema"
price = {input = 0.1, output = "1.20", cached = 0}
rpm = 300
tpm = 200000
concurrency = 8
max_attempts = 2
context = 128000
headers = {"X-Team" = "accounts"}

[tool.extractor.models."own.server-1"]
provider = "openai"
deployment = "gpt-5-mini"
"""


def project(folder: Path, text: str) -> Path:
    """A project with these lines in its ``pyproject.toml``."""
    (folder / "pyproject.toml").write_text(f"[tool.extractor]\n{text}")
    return folder


def test_an_alias_is_read_as_it_is_written(tmp_path: Path) -> None:
    """Every key arrives, and amounts to the last digit."""
    aliases = find(project(tmp_path, FULL)).aliases
    assert aliases["cheap"] == Alias(
        "cheap", "azure", model="gpt-5-mini", deployment="my-mini", endpoint="https://acme.openai.azure.com/",
        api_version="2026-01-01", key="ACME_AZURE_KEY", dialect="json_schema",
        price=Price(Decimal("0.1"), Decimal("1.20"), Decimal(0)), rpm=300, tpm=200000, concurrency=8, max_attempts=2,
        context=128000, headers={"X-Team": "accounts"},
    )  # fmt: skip
    assert aliases["cheap"].said == {
        "model": "azure/my-mini", "endpoint": "https://acme.openai.azure.com/", "api_version": "2026-01-01",
        "key": "ACME_AZURE_KEY", "dialect": "json_schema", "rpm": 300, "tpm": 200000, "concurrency": 8,
        "max_attempts": 2, "context": 128000, "headers": {"X-Team": "accounts"},
    }  # fmt: skip
    assert aliases["own.server-1"].said == {"model": "openai/gpt-5-mini"}


def test_the_price_of_an_alias_is_its_own_or_that_of_its_model(tmp_path: Path) -> None:
    """A deployment of any name costs what its model costs, unless a price is given."""
    aliases = find(project(tmp_path, FULL)).aliases
    assert aliases["cheap"].tariff.of(Usage(10, 10)) == Decimal("0.000013")
    assert aliases["own.server-1"].tariff.of(Usage(1000, 10, 400)) == Decimal("0.00018")
    named = Alias("x", "azure", model="gpt-4o", deployment="anything")
    assert named.tariff.of(Usage(1000, 10, 400)) == Decimal("0.0021")


def test_a_pipeline_asks_by_the_alias_and_counts_its_price(tmp_path: Path) -> None:
    """The name of an alias is a model's name wherever one is given."""

    def create(name: str) -> str:
        """Record a name."""
        return name

    where = find(project(tmp_path, FULL))
    options = Options(model="own.server-1, local/smollm2-135m", project=where)
    models, tariffs = Pipeline(create, name="p").models(options)
    assert [model.name for model in models] == ["openai/gpt-5-mini", "local/smollm2-135m"]
    assert [tariff.of(Usage(1000, 10)) for tariff in tariffs] == [Decimal("0.00027"), Decimal(0)]


KEY = "the name of the environment variable that holds the key"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pries = 1", r"\[tool.extractor.models.m\] has no key 'pries'; did you mean 'price'\?"),
        ("price = 1", "price is no table such as"),
        ("price = {input = 1}", "price lacks 'output'"),
        ("price = {input = 1, ouput = 1}", "price has no key 'ouput': did you mean 'output'"),
        ("price = {input = 'much', output = 1}", "price input is no amount"),
        ("price = {input = -1, output = 1}", "price input is no amount"),
        ("price = {input = nan, output = 1}", "price input is no amount"),
        ("price = {input = inf, output = 1}", "price input is no amount"),
        ("price = {input = true, output = 1}", "price input is no amount"),
        ("price = {input = 1e9, output = 1}", "price input is no amount"),
        ("rpm = 0", "rpm is no whole number above 0"),
        ("tpm = 1.5", "tpm is no whole number above 0"),
        ("concurrency = true", "concurrency is no whole number above 0"),
        ("context = '8k'", "context is no whole number above 0"),
        ("endpoint = 'acme.com'", "endpoint is no address"),
        ("endpoint = 'https://user:secret@acme.com'", "endpoint is no address"),
        ("endpoint = 'https://[::1'", "endpoint is no address"),
        ("key = 'sk-abcdef0123456789'", KEY),
        ("key = 'AKIAIOSFODNN7EXAMPLE'", KEY),
        ("key = '0123456789abcdef0123456789abcdef'", KEY),
        ("key = ''", "key is no text"),
        ("headers = {Authorization = 'Bearer secret'}", "headers holds 'Authorization'"),
        ("headers = {x = 1}", "headers is no table of texts"),
        ("headers = 'x'", "headers is no table of texts"),
        ("dialect = 7", "dialect is no text"),
    ],
)
def test_what_an_alias_cannot_be_is_one_line(tmp_path: Path, line: str, said: str) -> None:
    """File, table and key are named, with the nearest key; what may be a secret is never repeated."""
    text = f"[tool.extractor.models.m]\nprovider = 'openai'\nmodel = 'x'\n{line}\n"
    with pytest.raises(ConfigurationError, match=said) as raised:
        find(project(tmp_path, text))
    assert str(tmp_path / "pyproject.toml") in str(raised.value)
    assert not any(secret in str(raised.value) for secret in ("abcdef", "AKIA", "secret"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models = 1", r"\[tool.extractor.models\] is no table"),
        ("models = {m = 1}", r"\[tool.extractor.models.m\] is no table"),
        ("models = {m = {model = 'x'}}", "has no provider"),
        ("models = {m = {provider = 'openai'}}", "names neither model nor deployment"),
        ("models = {'a/b' = {provider = 'openai', model = 'x'}}", "a model's own name has letters"),
        ("models = {'a,b' = {provider = 'openai', model = 'x'}}", "a model's own name has letters"),
    ],
)
def test_an_alias_names_a_model(tmp_path: Path, text: str, said: str) -> None:
    """An alias without provider or model, or under a name that could not be given, is one line."""
    with pytest.raises(ConfigurationError, match=said):
        find(project(tmp_path, text))

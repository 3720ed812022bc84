"""The commands and their words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="extractor",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Turn documents into validated records in your own database.",
)
models = typer.Typer(no_args_is_help=True, help="Models that run on this machine, and their weights.")
app.add_typer(models, name="models")

Name = Annotated[str, typer.Argument(metavar="PIPELINE", help="Name of a pipeline, or module:attribute.")]
MaybeName = Annotated[str | None, typer.Argument(metavar="PIPELINE", help="Only this pipeline.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON lines on stdout; progress goes to stderr.")]
Database = Annotated[str | None, typer.Option(metavar="URL", help="Database to write to, such as sqlite:///my.db.")]
Root = Annotated[Path | None, typer.Option("--project", metavar="DIR", help="Project folder; found upward by default.")]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("extractor"))
        raise typer.Exit


@app.callback()
def start(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Turn documents into validated records in your own database."""


@app.command()
def run(
    pipeline: Name,
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE", help="Files, folders or globs.")],
    *,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Model, or several separated by commas: first choice first.")
    ] = None,
    database: Database = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Documents asked about at a time.")] = None,
    max_failures: Annotated[
        str, typer.Option(metavar="N|N%", help="Failures up to which the exit code is still 0.")
    ] = "0",
    max_cost: Annotated[str | None, typer.Option(metavar="USD", help="Stop before the run costs more.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Stop before the run takes more, in and out.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate documents, tokens and cost; ask nothing.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ask anew where a reply is kept already.")] = False,
    tag: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Count the cost under it; repeatable.")] = None,
    rpm: Annotated[float | None, typer.Option(min=0.01, help="Requests a minute, all workers together.")] = None,
    tpm: Annotated[float | None, typer.Option(min=1, help="Tokens a minute.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Requests in flight.")] = None,
    dialect: Annotated[
        str | None, typer.Option(metavar="NAME", help="How questions are worded: tools, json, …")
    ] = None,
    passwords: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Passwords for documents that ask for one, one a line.")
    ] = None,
    log_level: Annotated[str | None, typer.Option(metavar="LEVEL", help="debug, info, warning or error.")] = None,
    json: Json = False,
    project: Root = None,
) -> None:
    """Extract from documents into the database; settled documents are left alone.

    Exit codes: 0 all settled well, 1 failures, 2 usage or configuration, 3 nothing succeeded, 4 stopped by a budget or
    a signal (run again to go on).
    """
    from extractor.cli.running import Request, run_command

    options = {
        "model": model, "database": database, "workers": workers, "max_cost": max_cost, "max_tokens": max_tokens,
        "fresh": fresh, "tags": tuple(tag or ()), "rpm": rpm, "tpm": tpm, "concurrency": concurrency,
        "dialect": dialect,
    }  # fmt: skip
    wanted = Request(pipeline, tuple(sources), options, max_failures, json, project, dry_run, log_level, passwords)
    raise typer.Exit(run_command(wanted))


@app.command()
def status(pipeline: MaybeName = None, json: Json = False, database: Database = None, project: Root = None) -> None:
    """What became of the documents: counts by outcome, and the reason of each that is not done."""
    from extractor.cli.ledger import status_command

    status_command(pipeline, json=json, database=database, root=project)


@app.command()
def records(pipeline: Name, json: Json = False, database: Database = None, project: Root = None) -> None:
    """The records that a pipeline has written."""
    from extractor.cli.ledger import records_command

    records_command(pipeline, json=json, database=database, root=project)


@app.command()
def cost(
    pipeline: MaybeName = None,
    by: Annotated[
        str, typer.Option(metavar="NAMES", help="month, day, pipeline, model, tag, run, document or outcome.")
    ] = "pipeline,model",
    json: Json = False,
    database: Database = None,
    project: Root = None,
) -> None:
    """What has been asked and what it cost: asks, tokens and money, failed asks too."""
    from extractor.cli.cost import cost_command

    cost_command(pipeline, by, json=json, database=database, root=project)


@models.command("list")
def models_list(json: Json = False) -> None:
    """The catalogue: names, sizes, licences, and what is on this machine."""
    from extractor.cli.weights import list_command

    list_command(json=json)


@models.command("pull")
def models_pull(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name in the catalogue.")],
    source: Annotated[str | None, typer.Option("--from", metavar="PATH|URL", help="Take the file from here.")] = None,
    json: Json = False,
) -> None:
    """Fetch the weights of a model, verified by their hash."""
    from extractor.cli.weights import pull_command

    pull_command(name, source, json=json)

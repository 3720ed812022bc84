"""The command line: parse, call, print. Each command group is a module of its own, imported when it is needed."""

from __future__ import annotations

import sys

STOPPED = 4
INTERRUPTED = 130
"""What the parser makes of an interrupt that nobody has caught."""


def main() -> None:
    """The ``extractor`` command. Whatever is wrong is one line on stderr and an exit code, never a traceback."""
    try:
        code = _run()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        code = STOPPED if "run" in sys.argv[1:2] else 0  # whoever reads a list may have seen enough; a run is not done
    if code == INTERRUPTED:
        sys.stderr.write("extractor: stopped\n")
        code = STOPPED
    sys.exit(code)


def _run() -> int:
    """Run the command that the arguments name; returns the exit code."""
    import typer

    from extractor.cli.app import app
    from extractor.cli.output import make_safe
    from extractor.errors import ExtractorError

    make_safe()
    misuse: type[Exception] = typer.BadParameter.__mro__[1]  # the parser's class for every wrong word
    try:
        return int(app(standalone_mode=False) or 0)
    except ExtractorError as error:
        sys.stderr.write(f"extractor: {error}\n")
    except misuse as error:
        sys.stderr.write(_misuse(error))
    return 2


def _misuse(error: Exception) -> str:
    """The line about a wrong word on the command line; nothing when its answer, the help, has been shown."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return ""
    message = " ".join(str(getattr(error, "format_message", error.__str__)()).split()).rstrip(".")
    path = getattr(getattr(error, "ctx", None), "command_path", "extractor")
    return f"extractor: {message[:1].lower()}{message[1:]}; see: {path} --help\n"

"""The command line: parse, call, print. Each command group is a module of its own, imported when it is needed."""

from __future__ import annotations

import sys


def main() -> None:
    """The ``extractor`` command. Whatever is wrong is one line on stderr and an exit code, never a traceback."""
    from extractor.cli.app import app
    from extractor.errors import ExtractorError

    try:
        app()
    except ExtractorError as error:
        sys.stderr.write(f"extractor: {error}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write("extractor: stopped\n")
        sys.exit(4)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)

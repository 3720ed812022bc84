"""A process that has imported what commands need, and forks one for each: the same command for a tenth of the time.

It reads one JSON object a line (``words``, ``folder``, ``environment``, ``out``, ``err``) and answers each with the
exit code on a line of its own.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any


def main() -> None:
    """Serve until stdin closes."""
    import extractor.cli.ledger
    import extractor.cli.running
    import extractor.cli.weights
    import extractor.store.store  # noqa: F401 - all of them for the children
    from extractor.models.providers import FACTORIES

    os.environ["OPENAI_API_KEY"] = "sk-none"
    FACTORIES["openai"]("none").prepare()  # imports the SDKs, and connects to nobody

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _be(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _be(command: dict[str, Any]) -> None:
    """Become the command; never returns."""
    for stream, file in ((0, os.devnull), (1, command["out"]), (2, command["err"])):
        opened = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, stream)
        os.close(opened)
    os.chdir(command["folder"])
    os.environ.clear()
    os.environ.update(command["environment"])
    sys.argv = [str(Path(sys.executable).with_name("extractor")), *command["words"]]
    sys.path[0] = command["folder"]
    code: Any = 0
    try:
        from extractor.cli import main as command_line

        command_line()
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
        code = 1
    for told in (sys.stdout, sys.stderr):
        if not told.closed:
            told.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    main()

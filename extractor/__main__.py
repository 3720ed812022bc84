"""``python -m extractor`` is the ``extractor`` command."""

from extractor.cli import main

if __name__ == "__main__":
    main()

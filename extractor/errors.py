"""Every error that extractor raises on purpose.

::

    ExtractorError
    ├── UsageError                  the command or the code asks for something that cannot be
    │   ├── ConfigurationError      a setting, pipeline or model name that does not exist or does not fit
    │   ├── MissingExtra            an optional dependency is not installed
    │   └── DefinitionError         a function, draft or table that cannot be offered to a model
    ├── DocumentError               one document cannot be read; the batch goes on
    │   ├── UnsupportedDocument
    │   ├── UnreadableDocument
    │   ├── EncryptedDocument
    │   └── EmptyDocument
    ├── ModelError                  no model can be had
    │   ├── WeightsError            weights that cannot be fetched, verified or written
    │   └── ProviderError           the provider refuses every request (wrong key, unknown model)
    ├── StoreError                  the database cannot be opened, read or written
    └── OutcomeError                an outcome does not hold what was asked of it

    Rejected                        raised by the user's own function: the model is to mend its answer

``str()`` of an error says what happened, where, and what to do next; it never carries document text or keys.
"""

from __future__ import annotations


class ExtractorError(Exception):
    """The root. ``hint`` says what to do next, and is part of ``str()``."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class UsageError(ExtractorError):
    """The command or the code asks for something that cannot be (exit code 2)."""


class ConfigurationError(UsageError):
    """A setting, a pipeline or a model name that does not exist or does not fit."""


class MissingExtra(UsageError):
    """An optional dependency is not installed; the hint is the line that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} is not installed", hint=f"install it with: pip install 'extractor[{extra}]'")


class DefinitionError(UsageError):
    """A function, draft or table that cannot be offered to a model, found when it is defined."""


class DocumentError(ExtractorError):
    """One document cannot be read. ``source`` names it, ``page`` counts from 1 where one page is at fault."""

    def __init__(self, message: str, *, source: str = "", page: int | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.source = source
        self.page = page


class UnsupportedDocument(DocumentError):
    """No loader reads this kind of file."""


class UnreadableDocument(DocumentError):
    """The file is broken, or cannot be opened."""


class EncryptedDocument(DocumentError):
    """The file asks for a password."""


class EmptyDocument(DocumentError):
    """The file holds no text to read."""


class ModelError(ExtractorError):
    """No model can be had."""


class WeightsError(ModelError):
    """Weights that cannot be fetched, verified or written."""


class ProviderError(ModelError):
    """The provider refuses every request (wrong key, unknown model), or does not answer any more.

    ``kind`` is the kind of the last :class:`~extractor.messages.Unanswered`.
    """

    def __init__(self, message: str, *, kind: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.kind = kind


class StoreError(ExtractorError):
    """The database cannot be opened, read or written, or its tables do not fit."""


class OutcomeError(ExtractorError):
    """An outcome does not hold what was asked of it."""


class Rejected(Exception):
    """Raise this in an extraction function to send the model back with a reason that it can act on.

    :param reason: what is wrong, by field path where one is known: ``"total: 12.00 is not net 9.00 + tax 2.00"``.
        Several reasons may be given; the model is told all of them at once.
    """

    def __init__(self, *reasons: str) -> None:
        super().__init__(*reasons)
        self.reasons = reasons or ("rejected without a reason",)

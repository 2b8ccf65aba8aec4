"""The real vLLM as a managed child: nothing outlives a killed run; adapters go by name."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from contract_backends import given

from offline_judge.backends.options import EngineOptions
from offline_judge.backends.probe import answered
from offline_judge.backends.vllm import VllmBackend
from offline_judge.domain.message import Message, Sampling

pytestmark = pytest.mark.engine

MAKE_ADAPTER = """
import json, sys, torch
from pathlib import Path
from safetensors.torch import save_file
model, out = Path(sys.argv[1]), Path(sys.argv[2])
config = json.loads((model / "config.json").read_text())
torch.manual_seed(0)
size, rank = config["hidden_size"], 4
tensors = {}
for layer in range(config["num_hidden_layers"]):
    name = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
    tensors[f"{name}.lora_A.weight"] = torch.randn(rank, size)
    tensors[f"{name}.lora_B.weight"] = torch.randn(size, rank)
out.mkdir()
save_file(tensors, str(out / "adapter_model.safetensors"))
(out / "adapter_config.json").write_text(json.dumps({
    "peft_type": "LORA", "r": rank, "lora_alpha": 8, "target_modules": ["q_proj"],
    "bias": "none", "lora_dropout": 0.0, "task_type": "CAUSAL_LM",
    "base_model_name_or_path": str(model),
}))
"""


@pytest.fixture
def python() -> str:
    return given("VLLM", "an interpreter that has vLLM")


@pytest.fixture
def folder() -> str:
    return given("VLLM_MODEL", "a folder with the small weights for vLLM")


def family(pid: int) -> set[int]:
    """The process and all below it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text("utf-8", errors="replace")
            except OSError:
                continue
            state, parent = stat.rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(entry.name)] = int(parent)
    found, level = set[int](), {pid} & parents.keys()
    while level:
        found |= level
        level = {child for child, parent in parents.items() if parent in level} - found
    return found


def test_nothing_of_vllm_outlives_a_killed_run(python: str, folder: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("parent_of_vllm.py")), python, folder],
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        warden = int(parent.stdout.readline())
        members = family(warden)
        # The warden, the server and its engine at least.
        assert len(members) >= 3
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 30
    while any(family(pid) for pid in members) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(family(pid) for pid in members)


@pytest.fixture
def adapter(python: str, folder: str, tmp_path: Path) -> Path:
    """A LoRA adapter of chance numbers, so that its answers are others."""
    made = tmp_path / "strange"
    subprocess.run([python, "-c", MAKE_ADAPTER, folder, str(made)], check=True)
    return made


async def test_an_adapter_is_asked_for_by_its_name(python: str, folder: str, adapter: Path) -> None:
    options = EngineOptions(
        Path(folder),
        "small",
        window=512,
        python=python,
        cache_bytes_per_token=23_040,
        adapter=adapter,
    )
    backend = VllmBackend(options)
    await backend.start(lambda phase, detail="": None)
    try:
        assert backend.capabilities.window == 512
        prompt = await backend.prepare([Message(role="user", content="Name a river.")])
        adapted = await answered(backend, prompt, Sampling(max_tokens=12))
        backend._model = "small"
        plain = await answered(backend, prompt, Sampling(max_tokens=12))
    finally:
        await backend.close()
    assert plain.text
    assert adapted.token_ids != plain.token_ids

"""`doctor`: every part looked at, each problem with its remedy, none that ends the others."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from offline_judge.backends.scripted import ScriptedBackend
from offline_judge.checks import machine, parts, servers
from offline_judge.checks.doctor import CHECKS, examine
from offline_judge.checks.findings import Finding, findings
from offline_judge.cli.main import main
from offline_judge.domain.capability import CapabilityReport
from offline_judge.domain.message import Capabilities
from offline_judge.domain.run import ModelIdentity
from offline_judge.errors import UsageError
from offline_judge.runner.engine import Engine
from offline_judge.settings import Settings
from offline_judge.wiring.probes import probe_engine, stored_probe


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        judge="scripted",
        data_dir=str(tmp_path / "data"),
        cache_dir=str(tmp_path / "cache"),
        models_dir=str(tmp_path / "models"),
    )


def named(found: list[Finding], area: str, name: str) -> Finding:
    return next(one for one in found if (one.area, one.name) == (area, name))


def test_a_check_that_fails_is_a_finding_and_the_next_one_is_made(settings: Settings) -> None:
    def wrong(_: Settings) -> Iterator[Finding]:
        raise UsageError("no good", where="there", remedy="do this")
        yield

    def broken(_: Settings) -> Iterator[Finding]:
        yield Finding("b", "first", "ok", "seen")
        raise ZeroDivisionError("oh")

    def fine(_: Settings) -> Iterator[Finding]:
        yield Finding("c", "x", "ok", "well")

    found = findings([("a", wrong), ("b", broken), ("c", fine)], settings)
    assert (found[0].state, found[0].text, found[0].remedy) == (
        "problem",
        "no good [there]",
        "do this",
    )
    assert [one.area for one in found] == ["a", "b", "b", "c"]
    assert "ZeroDivisionError: oh" in found[2].text


def test_an_installation_is_looked_at_from_end_to_end(settings: Settings) -> None:
    found = examine(settings)
    assert {one.area for one in found} >= {"machine", "devices", "engines", "storage"}
    assert named(found, "engines", "judge").text.startswith("scripted by scripted")
    assert named(found, "engines", "probe").remedy.startswith("offline-judge doctor --probe")
    assert not [one for one in found if "could not be looked at" in one.text]
    assert len({name for name, _ in CHECKS}) == len(CHECKS)


def report(**changes: Any) -> list[dict[str, Any]]:
    one = {"kind": "CPU", "name": "CPU", "description": "A processor", "free": 1, "total": 2}
    return [one, {**one, **changes}] if changes else [one]


def devices(monkeypatch: pytest.MonkeyPatch, tool: str, **changes: Any) -> list[Finding]:
    monkeypatch.setattr(machine, "device_report", lambda _: report(**changes))
    monkeypatch.setattr(machine, "_asked", lambda name: "A card" if name == tool else "")
    return list(machine.check_devices(Settings()))


def test_a_gpu_that_the_engine_sees_is_told_with_its_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = devices(
        monkeypatch, "", kind="GPU", name="CUDA0", description="RTX", free=8 * 10**9, total=10**10
    )
    assert named(found, "devices", "CUDA0").text == "RTX: 8.00 GB of 10.00 GB free"
    assert all(one.state == "ok" for one in found)


@pytest.mark.parametrize(
    ("tool", "build"), [("nvidia-smi", "llama-cuda"), ("rocm-smi", "llama-rocm")]
)
def test_a_gpu_that_the_engine_does_not_see_names_the_build(
    monkeypatch: pytest.MonkeyPatch, tool: str, build: str
) -> None:
    found = named(devices(monkeypatch, tool), "devices", "engine")
    assert found.state == "note"
    assert f"engines install {build}" in found.remedy


def test_a_gpu_that_is_required_and_not_there_is_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "device_report", lambda _: report())
    monkeypatch.setattr(machine, "_asked", lambda _: "")
    (found,) = machine.check_devices(Settings(gpu="required"))
    assert (found.state, found.name) == ("problem", "gpu")
    (found,) = machine.check_devices(Settings())
    assert found.state == "ok"


def test_the_engine_of_this_interpreter_tells_its_devices() -> None:
    found = machine.device_report(sys.executable)
    assert found[0]["kind"] == "CPU"
    assert found[0]["total"] > 0


def test_little_memory_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "free_memory", lambda: 10**9)
    monkeypatch.setattr(machine, "usable_cores", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (5.0, 0.0, 0.0))
    found = list(machine.check_machine(Settings()))
    assert named(found, "machine", "memory").state == "problem"
    assert "5.0 cores of 2" in named(found, "machine", "load").text


def test_folders_that_cannot_be_written_are_problems(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    found = list(machine.check_storage(settings))
    assert [one.state for one in found if one.name in ("data", "cache", "models")] == [
        "problem",
        "problem",
        "problem",
    ]
    assert "OFFLINE_JUDGE_DATA_DIR" in named(found, "storage", "data").remedy


def test_a_secret_that_others_can_read_is_a_problem(settings: Settings) -> None:
    settings.data_path.mkdir()
    secret = settings.data_path / "secret"
    secret.write_bytes(b"x")
    secret.chmod(0o644)
    found = named(list(machine.check_storage(settings)), "storage", "secret")
    assert found.remedy == f"chmod 600 {secret}"
    secret.chmod(0o600)
    assert all(one.name != "secret" for one in machine.check_storage(settings))


def test_no_weights_of_a_judge_is_a_problem_unless_a_server_judges(tmp_path: Path) -> None:
    lacking = Settings(models_dir=str(tmp_path), cache_dir=str(tmp_path))
    (found,) = parts.check_weights(lacking)
    assert found.state == "problem"
    assert "models pull" in found.remedy
    served = Settings(judge="ollama:m", models_dir=str(tmp_path), cache_dir=str(tmp_path))
    assert list(parts.check_weights(served)) == []


def test_a_variable_that_is_no_setting_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFLINE_JUDGE_WINDW", "1")
    found = named(list(parts.check_settings(Settings())), "settings", "OFFLINE_JUDGE_WINDW")
    assert "OFFLINE_JUDGE_WINDOW" in found.remedy


def test_what_leaves_the_machine_is_told() -> None:
    settings = Settings(judge="vllm:m@http://10.0.0.2:8000", allow_remote="10.0.0.2")
    found = named(list(parts.check_settings(settings)), "settings", "leaves this machine")
    assert "10.0.0.2" in found.text


def test_nothing_on_the_usual_ports_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_models", lambda _: None)
    assert list(servers.check_servers(Settings())) == []
    monkeypatch.setattr(servers, "_models", lambda address: ["a"] if "11434" in address else [])
    found = {one.name: one for one in servers.check_servers(Settings())}
    assert "--judge ollama:a" in found["ollama"].text
    assert found["vllm"].state == "note"


def seen(**changes: Any) -> CapabilityReport:
    can = Capabilities(
        window=512,
        slots=2,
        token_level=True,
        label_probabilities=True,
        constraints=("json_schema",),
        **changes.pop("can", {}),
    )
    return CapabilityReport(
        engine="e",
        capabilities=can,
        needle="found",
        needle_tokens=464,
        bad_constraint_refused=True,
    ).model_copy(update=changes)


def test_a_sound_engine_has_no_problems() -> None:
    assert seen().problems() == ()
    assert all(one.state == "ok" for one in parts.probe_findings(seen()))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mixed_up": True}, "mixes up"),
        ({"needle": "lost"}, "front of a prompt of 464 tokens"),
        ({"needle": "cut"}, "front of a prompt of 464 tokens"),
    ],
)
def test_what_makes_judgments_worthless_is_a_problem(changes: Any, words: str) -> None:
    found = parts.probe_findings(seen(**changes))
    (problem,) = [one for one in found if one.state == "problem"]
    assert words in problem.text
    assert problem.remedy


def test_a_model_that_overlooks_what_was_read_is_worth_knowing_and_no_fault() -> None:
    found = [one for one in parts.probe_findings(seen(needle="missed")) if one.state != "ok"]
    assert {one.state for one in found} == {"note"}
    assert "model itself" in found[-1].text


def test_a_probe_is_kept_and_found_again_for_the_same_judge_only(settings: Settings) -> None:
    identity = ModelIdentity(name="m", sha256="ab", engine="scripted", engine_version="1")
    engine = Engine(ScriptedBackend(), "scripted", "1", "m", 4096)
    assert stored_probe(settings, identity) is None
    told: list[str] = []
    report = probe_engine(engine, identity, settings, lambda phase, detail="": told.append(detail))
    assert report.capabilities.label_probabilities
    assert "front of a full prompt (4096 tokens)" in told
    assert stored_probe(settings, identity) == report
    other = identity.model_copy(update={"sha256": "cd"})
    assert stored_probe(settings, other) is None


def test_the_command_ends_with_1_where_there_is_a_problem(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("data_dir", "cache_dir", "models_dir"):
        monkeypatch.setenv(f"OFFLINE_JUDGE_{name.upper()}", getattr(settings, name))
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--json"])
    assert ended.value.code == 1
    found = json.loads(capsys.readouterr().out)
    assert found["problems"] > 0
    assert all(one["remedy"] for one in found["findings"] if one["state"] == "problem")
    with pytest.raises(SystemExit):
        main(["doctor"])
    assert "! judge: no judge's weights are here" in capsys.readouterr().out

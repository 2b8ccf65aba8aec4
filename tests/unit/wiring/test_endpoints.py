"""Names of servers: their kind, model and address, and which may be asked at all."""

from typing import Any

import pytest

from offline_judge.errors import UsageError
from offline_judge.settings import Settings
from offline_judge.wiring import settled
from offline_judge.wiring.endpoints import Endpoint, endpoints, is_loopback, leaves_machine


def found(judge: str, environ: dict[str, str] | None = None, **more: Any) -> tuple[Endpoint, ...]:
    return endpoints(Settings(judge=judge, **more), environ or {})


@pytest.mark.parametrize(
    ("name", "backend", "model", "url"),
    [
        ("ollama:qwen2.5:7b", "ollama", "qwen2.5:7b", "http://127.0.0.1:11434"),
        ("lmstudio:qwen@q4_k_m", "lmstudio", "qwen@q4_k_m", "http://127.0.0.1:1234"),
        ("vllm:Qwen/Qwen3-8B", "vllm", "Qwen/Qwen3-8B", "http://127.0.0.1:8000"),
        ("llama-server:any", "llama_server", "any", "http://127.0.0.1:8080"),
        ("openai:m@http://localhost:9/v1", "openai", "m", "http://localhost:9"),
        ("vllm:m@http://[::1]:8001/", "vllm", "m", "http://[::1]:8001"),
    ],
)
def test_a_name_is_a_server(name: str, backend: str, model: str, url: str) -> None:
    (one,) = found(name)
    assert (one.backend, one.model, one.url, one.api_key) == (backend, model, url, "")
    assert one.local


def test_a_card_is_no_server() -> None:
    assert found("qwen2.5-coder-1.5b-instruct") == ()
    assert found("scripted") == ()
    assert found("scripted:/some/vllm:file.json") == ()


def test_base_url_is_the_address_where_the_name_has_none() -> None:
    assert found("vllm:m", base_url="http://127.0.0.1:9/v1")[0].url == "http://127.0.0.1:9"
    (one,) = found("vllm:m@http://127.0.0.1:7", base_url="http://127.0.0.1:9")
    assert one.url == "http://127.0.0.1:7"


def test_the_environment_of_openai_is_read_for_openai_only() -> None:
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:5/v1", "OPENAI_API_KEY": "secret"}
    (one,) = found("openai:m", environ)
    assert (one.url, one.api_key) == ("http://127.0.0.1:5", "secret")
    for kind in ("ollama", "lmstudio", "vllm", "llama-server"):
        (one,) = found(f"{kind}:m", environ)
        assert one.api_key == ""
        assert ":5" not in one.url


def test_a_key_of_our_own_is_for_every_server() -> None:
    environ = {"OFFLINE_JUDGE_API_KEY": "own", "OPENAI_API_KEY": "other"}
    assert found("vllm:m", environ)[0].api_key == "own"
    assert found("openai:m@http://127.0.0.1:5", environ)[0].api_key == "own"


@pytest.mark.parametrize("host", ["10.0.0.2", "example.org", "0.0.0.0", "127.0.0.1.example.org"])
def test_another_machine_must_be_allowed_by_its_name(host: str) -> None:
    name = f"vllm:m@http://{host}:8000"
    with pytest.raises(UsageError, match=f"--allow-remote {host}"):
        found(name)
    with pytest.raises(UsageError, match="another machine"):
        found(name, allow_remote=f"not.{host}")
    (one,) = found(name, allow_remote=f"other, {host}")
    assert not one.local
    settings = Settings(judge=name, allow_remote=host)
    (sentence,) = leaves_machine(settings)
    assert f"to http://{host}:8000" in sentence


def test_nothing_leaves_for_a_card_or_a_server_of_this_machine() -> None:
    assert leaves_machine(Settings()) == ()
    assert leaves_machine(Settings(judge="ollama:m")) == ()


def test_what_the_candidate_is_asked_leaves_too() -> None:
    settings = Settings(allow_remote="10.0.0.2")
    (sentence,) = leaves_machine(settings, "vllm:m@http://10.0.0.2:8000")
    assert "10.0.0.2" in sentence


def test_several_servers_of_one_model() -> None:
    both = found("vllm:m@http://127.0.0.1:1, vllm:m@http://127.0.0.1:2")
    assert [one.url for one in both] == ["http://127.0.0.1:1", "http://127.0.0.1:2"]


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        ("vllm:m@http://127.0.0.1:1, vllm:n@http://127.0.0.1:2", "have one model"),
        ("vllm:m@http://127.0.0.1:1, ollama:m@http://127.0.0.1:2", "of one kind"),
        ("vllm:m, vllm:m", "named twice"),
        ("vllm:m, smollm2-135m-instruct", "cannot judge together"),
        ("one-card, another-card", "Several judges"),
        ("vllm:", "has no model"),
        ("foo:m@http://127.0.0.1:1", "no kind of server"),
        ("openai:m", "address is not known"),
        ("vllm:m@http://user:word@127.0.0.1:1", "more than an address"),
        ("vllm:m@http://127.0.0.1:1?key=1", "more than an address"),
        ("vllm:m@127.0.0.1:8000", "begins with http://"),
        ("llama-server:m@ftp://127.0.0.1", "begins with http://"),
        ("llama-server:m@", "begins with http://"),
        ("vllm:m@http://127.0.0.1:99999", "no address of a server"),
    ],
)
def test_names_that_cannot_be_meant_are_refused(judge: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        found(judge)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="no address"):
        found("vllm:m", base_url="127.0.0.1:8000")


def test_loopback_is_told_without_asking_anybody() -> None:
    assert is_loopback("127.8.9.10")
    assert is_loopback("::1")
    assert not is_loopback("localhost.example.org")
    assert not is_loopback("2130706433")


def test_several_servers_have_a_lane_each_at_least() -> None:
    names = [f"vllm:m@http://127.0.0.1:{port}" for port in (1, 2, 3)]
    assert settled(Settings(judge=", ".join(names))).lanes == 3
    assert settled(Settings(judge=", ".join(names), lanes=8)).lanes == 8
    assert settled(Settings(judge="one-card")).lanes == 1


def test_flags_that_contradict_the_judge_are_refused() -> None:
    given = {"origins": {"base_url": "flag", "engine": "flag"}}
    with pytest.raises(UsageError, match="the judge is a model card"):
        found("one-card", base_url="http://127.0.0.1:1", **given)
    with pytest.raises(UsageError, match="the judge is a server"):
        found("vllm:m", engine="llama_cpp", **given)
    with pytest.raises(UsageError, match="names of hosts"):
        found("vllm:m", allow_remote="http://10.0.0.1")

"""Reports: figures over the common samples, paired differences, and data that has no figure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from study_helpers import (
    LABELS,
    SmallSearch,
    report,
    score,
    scores,
    scripted_settings,
    write_data,
)

from offline_judge import api, wiring
from offline_judge.domain.scores import Interval
from offline_judge.errors import DataError, StorageError, UsageError
from offline_judge.settings import Settings
from offline_judge.studies.costs import cheapest, condition_cost
from offline_judge.studies.markdown import number, show, to_markdown
from offline_judge.studies.plot import draw
from offline_judge.studies.report import StudyReport
from offline_judge.studies.scores import Table
from offline_judge.studies.writing import as_json, figures_csv


def kappa(found: StudyReport, condition: str, reading: str = "default") -> Interval:
    return next(
        one.figures["kappa"]
        for one in found.figures
        if one.condition == condition and one.reading == reading
    )


def test_only_samples_that_every_condition_judged_are_compared() -> None:
    found = report(scores("sage", 8), scores("direct", 4)[:5])
    assert (found.samples, found.questions, found.left_out) == (5, 3, 3)
    assert {one.n for one in found.figures} == {5}


def test_an_unscored_sample_is_counted_beside_and_never_as_wrong() -> None:
    direct = scores("direct", 8)
    direct[0] = score("direct", 0, says=None, label=True)
    found = report(scores("sage", 8), direct)
    one = next(figures for figures in found.figures if figures.condition == "direct")
    assert (one.n, one.unscored) == (7, 1)
    assert one.figures["accuracy"].value == 1.0


def test_a_difference_is_of_the_same_samples_on_both_sides() -> None:
    direct = scores("direct", 8)
    direct[7] = score("direct", 7, says=None, label=False)
    found = report(scores("sage", 7), direct)
    pair = found.differences[0]
    assert (pair.first, pair.second) == ("sage", "direct")
    # Alone, sage is wrong about sample 7; on the samples that both judged it is never wrong.
    assert kappa(found, "sage").value != 1.0
    assert pair.interval.value == 0.0
    assert pair.interval.n == 14


def test_conditions_that_agree_differ_by_nothing() -> None:
    found = report(scores("sage", 5), scores("direct", 5))
    interval = found.differences[0].interval
    assert (interval.value, interval.low, interval.high) == (0.0, 0.0, 0.0)


def test_where_people_say_one_thing_only_the_report_says_why_there_is_no_kappa() -> None:
    same = [score(name, n, says=0.9, label=True) for name in ("sage", "direct") for n in range(4)]
    found = report(same)
    assert kappa(found, "sage").value is None
    text = to_markdown(found)
    assert "chance agrees fully" in text
    assert "nan" not in (text + as_json(found) + figures_csv(found)).lower()
    assert found.cheapest is None


def test_one_question_has_figures_and_no_intervals() -> None:
    found = report(scores("sage", 8)[:2], scores("direct", 1)[:2])
    assert kappa(found, "sage").value == 1.0
    assert kappa(found, "sage").low is None
    assert "one question cannot be resampled" in to_markdown(found)


def test_a_condition_without_any_verdict_stands_in_the_report(tmp_path: Path) -> None:
    nothing = [score("direct", n, says=None, label=label) for n, label in enumerate(LABELS)]
    found = report(scores("sage", 6), nothing)
    one = next(figures for figures in found.figures if figures.condition == "direct")
    assert (one.n, one.unscored) == (0, 8)
    assert kappa(found, "direct").value is None
    assert "direct" in to_markdown(found)
    assert all(path.stat().st_size > 1000 for path in draw(found, tmp_path))


def test_nothing_in_common_is_an_error_with_a_remedy() -> None:
    with pytest.raises(DataError, match="go on"):
        report(scores("sage", 8)[:4], scores("direct", 8)[4:])


def test_a_single_condition_is_a_report_too(tmp_path: Path) -> None:
    found = report(scores("direct", 6))
    assert found.main == "direct"
    assert found.differences == ()
    assert draw(found, tmp_path)


def test_the_picture_is_the_same_for_the_same_report(tmp_path: Path) -> None:
    found = report(scores("sage", 8), scores("direct", 4))
    contents = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        contents.append([path.read_bytes() for path in draw(found, tmp_path / name)])
    assert contents[0] == contents[1]
    assert b"sage" in contents[0][1]


def test_samples_are_parted_by_when_the_passage_was_found() -> None:
    rounds = [1, 1, 2, 3, 0, 0, None, None]
    sage = [
        score("sage", n, says=0.9 if label else 0.1, label=label, gold_round=rounds[n])
        for n, label in enumerate(LABELS)
    ]
    found = report(sage, scores("sage-n1", 2))
    parts = {one.group: one for one in found.gold}
    assert {name: part.n for name, part in parts.items()} == {
        "gold": 6,
        "first": 2,
        "later": 2,
        "never": 2,
    }
    assert parts["gold"].kappas["sage"].value == 1.0
    assert parts["later"].kappas["sage"].value is None  # people say yes to both
    assert parts["gold"].differences["sage-n1"].n == 12
    assert "found by a later round only (.33)" in to_markdown(found)


def test_each_condition_is_shown_on_the_samples_whose_passage_is_known() -> None:
    sage = [
        score("sage", n, says=0.9, label=label, gold_round=[1, 0, 2, None][n // 2])
        for n, label in enumerate(LABELS)
    ]
    single = [
        score("sage-single", n, says=0.9 if label else 0.1, label=label, gold_round=n % 2)
        for n, label in enumerate(LABELS)
    ]
    found = {one.condition: one for one in report(sage, single, scores("direct", 8)).found}
    assert {one.n for one in found.values()} == {6}
    parts = {name: (one.first, one.later, one.never) for name, one in found.items()}
    assert parts == {"sage": (2, 2, 2), "sage-single": (3, 0, 3), "direct": (0, 0, 0)}
    assert found["sage-single"].kappa.value == 1.0
    assert found["sage-single"].gap.value == 0.0
    assert found["sage"].gap.value == pytest.approx(0.5)


def test_without_known_passages_there_is_no_such_part() -> None:
    assert report(scores("sage", 6)).gold == ()


def test_the_cheapest_is_looked_for_among_those_that_are_as_good() -> None:
    table = Table(
        [
            *scores("sage", 8, seconds=9.0),
            *scores("sage-n1", 8, seconds=3.0),
            *scores("direct", 0, seconds=1.0),
        ]
    )
    names = table.common()
    costs = [condition_cost(table, name, names, []) for name in table.conditions]
    found = cheapest(table, names, costs, {"sage": 1.0, "sage-n1": 1.0, "direct": -1.0})
    assert found is not None
    assert (found.best, found.cheapest) == ("sage", "sage-n1")
    assert found.within == ("sage-n1", "sage")


def test_conditions_that_see_the_key_are_no_choice() -> None:
    found = report(scores("reference", 8, seconds=1.0), scores("sage", 7), scores("direct", 6))
    assert found.cheapest is not None
    assert found.cheapest.best == "sage"
    assert "reference" not in found.cheapest.within


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.574, ".57"), (-0.04, "-.04"), (1.0, "1.00"), (-0.001, ".00"), (0, ".00")],
)
def test_numbers(value: float, shown: str) -> None:
    assert number(value) == shown


def test_an_interval_without_ends_shows_its_value() -> None:
    assert show(Interval(value=0.5)) == ".50"
    assert show(Interval(value=None, reason="why")) == "-"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(wiring, "open_search", lambda *_: SmallSearch())
    return scripted_settings(tmp_path)


def test_a_study_is_written_without_texts_and_reported_again_without_runs(
    settings: Settings, tmp_path: Path
) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "out"
    request = api.StudyRequest(data, conditions=("direct", "sage", "sage-n1"), out=out)
    view = api.study_sage(request, settings)
    names = {path.name for path in view.files}
    assert names >= {"report.md", "scores.csv", "costs.csv", "figures.csv", "study.json"}
    assert names >= {"kappa.png", "kappa.svg"}
    for path in view.files:
        assert b"secret" not in path.read_bytes()
        assert b"hidden" not in path.read_bytes()
        assert str(tmp_path).encode() not in path.read_bytes()
    again = api.study_report(out)
    assert again.report == view.report
    assert again.markdown == view.markdown
    assert json.loads((out / "study.json").read_text())["samples"] == 8


def test_a_folder_that_takes_no_files_is_told_before_anything_is_judged(
    settings: Settings, tmp_path: Path
) -> None:
    out = tmp_path / "file"
    out.touch()
    request = api.StudyRequest(write_data(tmp_path / "d.jsonl"), conditions=("direct",), out=out)
    with pytest.raises(StorageError, match="Cannot write") as caught:
        api.study_sage(request, settings)
    assert caught.value.where == str(out)
    assert api.list_runs(settings) == []


def test_a_report_outlives_a_folder_that_broke_meanwhile(
    settings: Settings, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    (out / "scores.csv").mkdir(parents=True)  # in the way of a file
    request = api.StudyRequest(write_data(tmp_path / "d.jsonl"), conditions=("direct",), out=out)
    view = api.study_sage(request, settings)
    assert view.report.samples == 8
    assert view.files == ()
    assert view.failure is not None
    assert view.failure.where == str(out / "scores.csv")


def test_gold_passages_are_followed_through_the_rounds(settings: Settings, tmp_path: Path) -> None:
    data, gold = write_data(tmp_path / "d.jsonl"), tmp_path / "gold.jsonl"
    # The question's own search finds `p<length % 7>-1` first of all.
    question = "What is secret 0?"
    name = f"p{len(question) % 7}-1"
    gold.write_text(json.dumps({"question": f"  {question.upper()}", "gold_passage_id": name}))
    request = api.StudyRequest(data, conditions=("direct", "sage-single"), gold=gold)
    found = api.study_sage(request, settings).report
    parts = {one.group: one.n for one in found.gold}
    assert (parts["gold"], parts["first"]) == (2, 2)


def test_a_gold_file_without_passages_is_refused_before_judging(
    settings: Settings, tmp_path: Path
) -> None:
    gold = tmp_path / "gold.jsonl"
    gold.write_text('{"question": "Which?"}\n')
    request = api.StudyRequest(write_data(tmp_path / "d.jsonl"), gold=gold)
    with pytest.raises(DataError, match="line 1: `gold_passage_id` is missing"):
        api.study_sage(request, settings)
    assert api.list_runs(settings) == []


def test_without_reference_answers_conditions_that_need_them_are_skipped(
    settings: Settings, tmp_path: Path
) -> None:
    data = write_data(tmp_path / "d.jsonl")
    request = api.StudyRequest(data, conditions=("direct", "reference", "lexical"))
    found = api.study_sage(request, settings).report
    assert {one.condition for one in found.figures} == {"direct"}
    assert sum("is skipped" in note for note in found.about.notes) == 2
    with pytest.raises(UsageError, match="No condition is left"):
        api.study_sage(api.StudyRequest(data, conditions=("lexical",)), settings)


def test_without_labels_nothing_is_judged(settings: Settings, tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl", every={"label": None})
    with pytest.raises(DataError, match="--labels"):
        api.study_sage(api.StudyRequest(data), settings)
    assert api.list_runs(settings) == []


def test_labels_of_a_file_take_the_place_of_the_data_files(
    settings: Settings, tmp_path: Path
) -> None:
    data, labels = write_data(tmp_path / "d.jsonl"), tmp_path / "labels.jsonl"
    rows = [{"id": f"s{n}", "label": n < 2} for n in range(5)]
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows))
    request = api.StudyRequest(data, labels=labels, conditions=("direct",))
    found = api.study_sage(request, settings).report
    assert found.samples == 5
    assert found.figures[0].figures["people_correct"].value == pytest.approx(2 / 5)
    assert any("3 samples without a label" in note for note in found.about.notes)


def test_an_array_of_labels_is_refused_with_a_remedy(settings: Settings, tmp_path: Path) -> None:
    data, labels = write_data(tmp_path / "d.jsonl"), tmp_path / "labels.json"
    labels.write_text('[{"id": "s0", "label": true}]')
    with pytest.raises(DataError, match="one JSON array") as caught:
        api.study_sage(api.StudyRequest(data, labels=labels, conditions=("direct",)), settings)
    assert caught.value.where == str(labels)
    assert "jq -c '.[]' labels.json" in caught.value.remedy


def test_labels_of_unknown_samples_are_refused_or_counted(
    settings: Settings, tmp_path: Path
) -> None:
    data, labels = write_data(tmp_path / "d.jsonl"), tmp_path / "labels.jsonl"
    labels.write_text('{"id": "s0", "label": true}\n{"id": "other", "label": false}\n')
    request = api.StudyRequest(data, labels=labels, conditions=("direct",))
    with pytest.raises(DataError, match="other"):
        api.study_sage(request, settings)
    lenient = api.StudyRequest(data, labels=labels, conditions=("direct",), skip_bad=True)
    found = api.study_sage(lenient, settings).report
    assert found.samples == 1
    assert any("1 labels are of samples" in note for note in found.about.notes)


def test_own_conditions_stand_beside_the_shipped_ones(settings: Settings, tmp_path: Path) -> None:
    request = api.StudyRequest(
        write_data(tmp_path / "d.jsonl"),
        conditions=("direct",),
        more=("talking=direct:rationale=true",),
    )
    found = api.study_sage(request, settings).report
    assert found.about.options["talking"] == {"rationale": True}
    assert {one.condition for one in found.figures} == {"direct", "talking"}


def test_two_conditions_that_judge_alike_are_refused(settings: Settings, tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl")
    more = ("again=sage:rounds=3,rationale=false",)
    request = api.StudyRequest(data, conditions=("sage",), more=more)
    with pytest.raises(UsageError, match="`sage` and `again` judge in the same way"):
        api.study_sage(request, settings)


@pytest.mark.parametrize(
    "more", ["direct=direct", "x", "x=", "=direct", "a b=direct", "x=direct:rationale"]
)
def test_a_condition_that_cannot_be_one_is_refused(
    settings: Settings, tmp_path: Path, more: str
) -> None:
    request = api.StudyRequest(write_data(tmp_path / "d.jsonl"), more=(more,))
    with pytest.raises(UsageError):
        api.study_sage(request, settings)


def test_an_unknown_condition_gets_a_hint(settings: Settings, tmp_path: Path) -> None:
    request = api.StudyRequest(write_data(tmp_path / "d.jsonl"), conditions=("sage-n4",))
    with pytest.raises(UsageError, match="Did you mean"):
        api.study_sage(request, settings)

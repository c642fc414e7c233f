"""A script that says what was recorded of the Responses API is worded as the recording, event for event."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tests.shared import STREAMS
from tests.testing.responses import ENCRYPTED, of_type, voiced
from turnkeeper.testing import Answer, call, error, finish, say, think


def recorded() -> list[Path]:
    """The recordings that consist of what scripts can say."""
    if STREAMS is None:
        return []
    paths = [path for path in STREAMS.glob("*.json") if json.loads(path.read_text("utf-8"))["family"] == "openai-responses"]
    return sorted(path for path in paths if not strange(events_of(path)))


def events_of(path: Path) -> list[Any]:
    lines = path.with_suffix(".sse").read_text("utf-8").splitlines()
    return [json.loads(line[5:]) for line in lines if line.startswith("data:") and line[5:].strip() != "[DONE]"]


def strange(events: list[Any]) -> bool:
    """Recordings with gaps, of other items, with annotations, or with an end to arguments that no delta began."""
    kinds = {one["item"]["type"] for one in events if "item" in one}
    gaps = [one.get("sequence_number") for one in events] != list(range(len(events)))
    lone = of_type("function_call_arguments.done", events) and not of_type("function_call_arguments.delta", events)
    annotated = of_type("output_text.annotation.added", events)
    return bool(gaps or kinds - {"message", "reasoning", "function_call"} or lone or annotated)


def script_of(events: list[Any]) -> Answer:
    """The script that says what was recorded, delta for delta."""
    script = Answer()
    for added in of_type("output_item.added", events):
        own = [one for one in events if one.get("output_index") == added["output_index"]]
        deltas = [one for one in own if one["type"].endswith(".delta")]
        pieces = [one["delta"] for one in deltas]
        match added["item"]:
            case {"type": "function_call", "name": name, "call_id": call_id}:
                script += call(name, "".join(pieces), pieces=pieces, id=call_id)
            case {"type": "message"}:
                script += say("".join(pieces), pieces=pieces)
            case _:
                script += thoughts_of(deltas)
    for one in events:
        if one["type"] == "error":
            said = one.get("error", one)
            script += error(said["message"], code=said["code"], type=said["type"], name="error") + finish("failed")
    return script


def thoughts_of(deltas: list[Any]) -> Answer:
    script = Answer() if deltas else think("")
    for _, part in groupby(deltas, key=lambda one: one.get("summary_index")):
        pieces = [one["delta"] for one in part]
        field = "reasoning_text" if "content_index" in deltas[0] else "summary"
        script += think("".join(pieces), field, pieces=pieces)
    return script


def gist(events: list[Any]) -> list[Any]:
    """What of the events is not made up by the server."""
    names = (
        "type",
        "sequence_number",
        "output_index",
        "content_index",
        "summary_index",
        "delta",
        "text",
        "refusal",
        "arguments",
    )
    kept = [{name: one[name] for name in names if name in one} for one in events]
    return [one | {"has": sorted(event.get("part", {}))} for one, event in zip(kept, events, strict=True)]


@pytest.mark.skipif(STREAMS is None, reason="the recorded streams are not beside this checkout")
@pytest.mark.parametrize("path", recorded(), ids=lambda path: path.stem)
def test_a_script_of_a_recording_is_worded_as_the_recording(path: Path) -> None:
    events = events_of(path)
    made = voiced(script_of(events), **ENCRYPTED)
    assert gist(made) == gist(events)
    for ours, theirs in zip(made, events, strict=True):
        if "xai" in path.stem:
            continue  # its events and responses have few of the fields, its reasoning a status
        assert set(ours) <= set(theirs)
        assert set(theirs) - set(ours) <= {"obfuscation", "copilot_usage"}
        if "response" in ours:
            assert set(ours["response"]) - set(theirs["response"]) <= {"completed_at", "prompt_cache_key"}
        if "item" in ours:
            assert set(theirs["item"]) - set(ours["item"]) <= {"phase", "namespace", "caller"}

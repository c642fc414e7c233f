"""Asks all questions, one after another."""

from __future__ import annotations

from collections.abc import Callable

from turnkeeper.probe.ask import Endpoint
from turnkeeper.probe.findings import Found
from turnkeeper.probe.questions import QUESTIONS, Asked, StopProbing, model_entries

_LISTED = 3  # names that are shown of a list


async def listed_models(endpoint: Endpoint, found: Found) -> list[dict[str, object]]:
    """The models that the endpoint lists, with what it says of each; empty where it lists none."""
    if endpoint.model.family == "novelai":
        found.put("models", "unknown", "this family has no list")
        return []
    heard = await endpoint.get("/models")
    entries = model_entries(heard) if heard.fault is None else []
    if entries:
        names = [str(entry["id"]) for entry in entries]
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        found.put("models", "yes", f"{', '.join(names[:_LISTED])}{more}")
    else:
        found.put("models", "no", str(heard.fault)[:160] if heard.fault is not None else "the list is empty or no list")
    return entries


async def probe(endpoint: Endpoint, found: Found, entry: dict[str, object], progress: Callable[[str], None]) -> str:
    """Fills `found`, as far as it comes before it is cancelled. Returns why the probe ended early, "" where it did not.

    entry: what the list of models says of this one. progress: told what is asked next.
    """
    asked = Asked(endpoint, found, [], entry)
    for number, (about, question) in enumerate(QUESTIONS, 1):
        progress(f"{number}/{len(QUESTIONS)} {about} ...")
        try:
            await question(asked)
        except StopProbing as why:
            return str(why)
    return ""

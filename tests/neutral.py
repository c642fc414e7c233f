"""Requests of all families as one kind of conversation, so that one test can look at any."""

from __future__ import annotations

import re
from typing import Any

from turnkeeper.testing import SeenRequest


def conversation(request: SeenRequest) -> list[dict[str, Any]]:
    """The messages of a request as chat completions would have them: role, content, tool_calls, tool_call_id."""
    body = request.body
    if "input" in body:
        return _of_responses(body)
    if "contents" in body:
        return _of_gemini(body)
    if request.path.endswith("/messages"):
        return _of_messages(body)
    return body["messages"]


def offered(request: SeenRequest) -> list[str]:
    """The names of the tools that a request offers."""
    tools: list[dict[str, Any]] = request.body.get("tools", [])
    if not tools and "messages" in request.body:  # a model that calls in text finds them in its prompt (S10.1)
        return re.findall(r'^\{"name":"([^"]+)","description"', str(request.body["messages"][0]["content"]), re.MULTILINE)
    if tools and "functionDeclarations" in tools[0]:
        return [one["name"] for one in tools[0]["functionDeclarations"]]
    return [one.get("function", one)["name"] for one in tools]


def _asked(messages: list[dict[str, Any]], call_id: str, name: str) -> None:
    """A call, in the assistant message that stands last, or in one of its own."""
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": None})
    messages[-1].setdefault("tool_calls", []).append({"id": call_id, "function": {"name": name}})


def _of_responses(body: dict[str, Any]) -> list[dict[str, Any]]:
    messages = [{"role": "system", "content": body["instructions"]}] if "instructions" in body else []
    for item in body["input"]:
        match item["type"]:
            case "message":
                messages.append({"role": item["role"], "content": _said(item["content"])})
            case "function_call":
                _asked(messages, item["call_id"], item["name"])
            case "function_call_output":
                messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": _said(item["output"])})
            case _:
                pass
    return messages


def _of_messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    messages = [{"role": "system", "content": _said(body["system"])}] if "system" in body else []
    for message in body["messages"]:
        for block in message["content"]:
            match block["type"]:
                case "text":
                    messages.append({"role": message["role"], "content": block["text"]})
                case "tool_use":
                    _asked(messages, block["id"], block["name"])
                case "tool_result":
                    messages.append({"role": "tool", "tool_call_id": block["tool_use_id"], "content": _said(block["content"])})
                case _:
                    messages.append({"role": message["role"], "content": block})
    return messages


def _of_gemini(body: dict[str, Any]) -> list[dict[str, Any]]:
    instruction = body.get("systemInstruction")
    messages = [{"role": "system", "content": instruction["parts"][0]["text"]}] if instruction else []
    for content in body["contents"]:
        role = "assistant" if content["role"] == "model" else "user"
        for part in content["parts"]:
            if "functionCall" in part:
                _asked(messages, "", part["functionCall"]["name"])
            elif "functionResponse" in part:
                answer = part["functionResponse"]
                found = {"role": "tool", "tool_call_id": answer.get("id", ""), "content": answer["response"]["result"]}
                messages.append(found)
            elif "text" in part:
                messages.append({"role": role, "content": part["text"]})
            else:
                messages.append({"role": role, "content": part})
    return messages


def _said(content: Any) -> Any:
    """Text, where it is nothing else."""
    if isinstance(content, list) and all("text" in part for part in content):
        return "".join(part["text"] for part in content)
    return content

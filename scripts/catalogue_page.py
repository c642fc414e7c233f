"""Makes docs/catalogue.md from the catalogue of quirks: `python -m scripts.catalogue_page`. A test fails where they differ."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from turnkeeper.providers.catalogue import Traits

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "catalogue.md"
SOURCE = ROOT / "turnkeeper" / "providers" / "catalogue.toml"
HEAD = """# Servers, models and their quirks

Made from `turnkeeper/providers/catalogue.toml` by `make docs`. What is known of a server is laid over the defaults, what is
known of a model over that. Where your server wants it otherwise, say so in turnkeeper.toml; that counts last:

```toml
[models.mine]
name = "gemma-3-27b"
base_url = "http://10.0.0.5:9000/v1"
quirks = { alternate = true, system_role = "user", context_window = 16384 }
```

or in code: `Model("openai-chat", "gemma-3-27b", base_url=..., quirks={"alternate": True})`. A field that does not exist, or a
value that it can't have, stops the start with one sentence.

| quirk | default | what it is |
| --- | --- | --- |
"""
SERVERS = """
## Servers

A server is known by its host; one on this machine, or in its network, by its usual port. `turnkeeper chat` takes the first
whose variable is set, from above.

| server | where | key | quirks |
| --- | --- | --- | --- |
"""
MODELS = """
## Models

By name, without regard to case and to what stands before the last slash; the last row that matches counts, field by field.

| name | at | quirks |
| --- | --- | --- |
"""


def page() -> str:
    """The page's text."""
    text = SOURCE.read_text("utf-8")
    table = tomllib.loads(text)
    fields = [_field(line) for line in _section(text, "[default]") if " = " in line]
    servers = [_server(entry) for entry in table["server"]]
    models = [_model(entry) for entry in table["model"]]
    return HEAD + "\n".join(fields) + "\n" + SERVERS + "\n".join(servers) + "\n" + MODELS + "\n".join(models) + "\n"


def _section(text: str, head: str) -> list[str]:
    lines = text.splitlines()
    begin = lines.index(head) + 1
    return lines[begin : next(place for place in range(begin, len(lines)) if not lines[place].strip())]


def _field(line: str) -> str:
    found = re.fullmatch(r"(\w+) = (.+?)\s+# (.+)", line)
    if found is None:
        raise SystemExit(f"{SOURCE.name}: a field of [default] has no comment: {line}")
    name, value, told = found.groups()
    return f"| `{name}` | `{value}` | {told.replace('|', '/')} |"


def _server(entry: dict[str, Any]) -> str:
    where = ", ".join(f"`{host}{entry.get('path', '')}`" for host in entry.get("hosts", ())) or f"port {entry.get('port')}"
    key = f"`{entry['key_env']}`" if "key_env" in entry else ""
    return f"| {entry['name']} | {where} | {key} | {_quirks(entry)} |"


def _model(entry: dict[str, Any]) -> str:
    patterns = [entry["match"]] if isinstance(entry["match"], str) else entry["match"]
    names = ", ".join(f"`{pattern}`" for pattern in patterns)
    return f"| {names} | {entry.get('server', '')} | {_quirks(entry)} |"


def _quirks(entry: dict[str, Any]) -> str:
    told = {name: value for name, value in entry.items() if name in Traits.__struct_fields__}
    return ", ".join(f"{name} {_value(value)}" for name, value in told.items())


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"({len(value)})" if value else "(none)"
    return {True: "yes", False: "no"}.get(value, f"{value:,}") if isinstance(value, int) else f"`{value}`"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")

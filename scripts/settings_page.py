"""Makes docs/settings.md from turnkeeper/settings.py: `python -m scripts.settings_page`. A test fails where the two differ."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "settings.md"
HEAD = """# Settings

Made from `turnkeeper/settings.py` by `make docs`. Each may be given to `Settings(...)`, or stand in turnkeeper.toml:

```toml
[settings]
max_passes = 50

[chat]                                   # of `turnkeeper chat`
system_prompt = "You are the keeper of a lighthouse."
folders = ["~/notes"]                    # where read_file may read
language = "en"                          # of notices: en or ja
journal = "sqlite:///turns.db"

[models.fast]                            # the first section leads; --model NAME takes another
family = "openai-chat"
name = "gpt-5-mini"
base_url = "https://api.openai.com/v1"
key_env = "OPENAI_API_KEY"               # the variable that holds the key
fallbacks = ["other"]                    # tried in order when this one fails
quirks = { vision = true }               # fields that are otherwise here: catalogue.md

[models.other]
name = "llama3.2"
base_url = "http://127.0.0.1:11434/v1"
```

Durations are seconds. A wrong name or value stops the start with the file, the line and the nearest known name.

| setting | default | what it is; range | rule |
| --- | --- | --- | --- |
"""


def page() -> str:
    """The page's text."""
    source = (ROOT / "turnkeeper" / "settings.py").read_text("utf-8")
    rows: list[str] = []
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name == "Settings":
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.value is not None:
                    rows.append(_row(field.target.id, ast.unparse(field.value), lines[field.lineno - 2]))
    return HEAD + "\n".join(rows) + "\n"


def _row(name: str, default: str, comment: str) -> str:
    said = comment.strip().removeprefix("#").strip()
    rule = re.match(r"(S\d+(?:\.\d+)?[a-z]?): ", said)
    told = said[rule.end() :] if rule else said
    value = str(eval(default, {})) if re.fullmatch(r"[\d\s*.+_]+", default) else default  # noqa: S307  # digits only
    return f"| `{name}` | {value} | {told.replace('|', '/')} | {rule.group(1) if rule else ''} |"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")

# turnkeeper.toml: read once, checked whole, and refused with the file, the line and the mend where it is wrong (S16.3).

"""The configuration file."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from turnkeeper.errors import ConfigurationError
from turnkeeper.providers.catalogue import family_at
from turnkeeper.providers.model import Model
from turnkeeper.settings import Settings, settings_from

FILE_NAME = "turnkeeper.toml"
_TOP = ("settings", "models", "chat")
_CHAT = ("system_prompt", "folders", "language", "journal")
_MODEL = (*Model.__struct_fields__, "key_env", "fallbacks")


class Config(Struct, frozen=True):
    """What the file says. models: by their section's name, in the file's order. fallbacks: names of sections, by section."""

    settings: Settings
    models: dict[str, Model]
    fallbacks: dict[str, tuple[str, ...]]
    system_prompt: str = ""
    folders: tuple[Path, ...] = ()
    language: str = "en"
    journal: str = ""
    path: Path | None = None

    def chain(self, name: str) -> list[Model]:
        """The model `name`, then its fallbacks."""
        return [self.models[name], *[self.models[other] for other in self.fallbacks.get(name, ())]]


def read_config(path: Path | None, env: Mapping[str, str], *, folders: tuple[Path, ...] = ()) -> Config:
    """Reads the configuration.

    path: the file; None looks for turnkeeper.toml in `folders`, and is content with none.
    env: the environment, where `key_env` names a variable.
    Raises ConfigurationError naming file, line, field and mend.
    """
    found = path or next((folder / FILE_NAME for folder in folders if (folder / FILE_NAME).is_file()), None)
    if found is None:
        return Config(Settings(), {}, {})
    try:
        text = found.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"{found} can't be read: {reason}.") from None
    try:
        return _Reader(found, text, env).read(tomllib.loads(text))
    except tomllib.TOMLDecodeError as problem:
        raise ConfigurationError(f"{found}: not valid TOML: {problem}.") from None


class _Reader:
    def __init__(self, path: Path, text: str, env: Mapping[str, str]) -> None:
        self._path = path
        self._lines = text.splitlines()
        self._env = env

    def read(self, table: dict[str, Any]) -> Config:
        self._check(table, _TOP, "")
        chat = self._section(table, "chat", _CHAT)
        models: dict[str, Model] = {}
        fallbacks: dict[str, tuple[str, ...]] = {}
        for name, section in cast(dict[str, Any], self._typed(table.get("models", {}), dict, "models")).items():
            fields = cast(dict[str, Any], self._typed(section, dict, f"models.{name}"))
            self._check(fields, _MODEL, f"models.{name}")
            fallbacks[name] = tuple(
                cast(list[str], self._typed(fields.get("fallbacks", []), list, f"models.{name}", "fallbacks"))
            )
            models[name] = self._model(name, fields)
        for name, others in fallbacks.items():
            for other in others:
                if other not in models:
                    raise self._error("fallbacks", f"models.{name}", f"there is no section [models.{other}]")
        return Config(
            settings=self._settings(table),
            models=models,
            fallbacks=fallbacks,
            system_prompt=cast(str, self._typed(chat.get("system_prompt", ""), str, "chat", "system_prompt")),
            folders=tuple(
                Path(one).expanduser() for one in cast(list[str], self._typed(chat.get("folders", []), list, "chat", "folders"))
            ),
            language=cast(str, self._typed(chat.get("language", "en"), str, "chat", "language")),
            journal=cast(str, self._typed(chat.get("journal", ""), str, "chat", "journal")),
            path=self._path,
        )

    def _settings(self, table: dict[str, Any]) -> Settings:
        section = self._section(table, "settings", Settings.__struct_fields__)
        try:
            return settings_from(section)
        except ConfigurationError as problem:
            named = re.search(r"`(\w+)`", str(problem))
            raise ConfigurationError(
                f"{self._path}:{self._line(named.group(1) if named else '', 'settings')}: {problem}"
            ) from None

    def _model(self, name: str, fields: dict[str, Any]) -> Model:
        section = f"models.{name}"
        values = {key: value for key, value in fields.items() if key not in ("key_env", "fallbacks")}
        variable = fields.get("key_env")
        if variable is not None:
            key = self._env.get(cast(str, self._typed(variable, str, section, "key_env")), "")
            if not key:
                raise self._error("key_env", section, f"the environment variable {variable} is not set; it holds the key")
            values["keys"] = [*cast(list[str], values.get("keys", [])), key]
        values.setdefault("family", family_at(str(values.get("base_url", ""))))
        values.setdefault("name", name)
        try:
            return Model(**values)
        except (ConfigurationError, TypeError) as problem:
            raise ConfigurationError(f"{self._path}:{self._line('', section)}: {problem}") from None

    def _section(self, table: dict[str, Any], name: str, known: tuple[str, ...]) -> dict[str, Any]:
        section = cast(dict[str, Any], self._typed(table.get(name, {}), dict, name))
        self._check(section, known, name)
        return section

    def _check(self, table: dict[str, Any], known: tuple[str, ...], section: str) -> None:
        for name in table:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                meant = f"; did you mean `{near[0]}`?" if near else f"; known: {', '.join(known)}."
                where = f" in [{section}]" if section else ""
                raise ConfigurationError(
                    f"{self._path}:{self._line(name, section)}: unknown setting `{name}`{where}{meant} "
                    "All of them: docs/settings.md."
                )

    def _typed(self, value: object, kind: type, section: str, field: str = "") -> object:
        if not isinstance(value, kind):
            names = {dict: "a table", list: "a list", str: "text"}
            raise self._error(field, section, f"must be {names[kind]}, not {value!r}"[:200])
        return value

    def _error(self, field: str, section: str, said: str) -> ConfigurationError:
        named = f"`{field}` in [{section}]" if field else f"[{section}]"
        return ConfigurationError(f"{self._path}:{self._line(field, section)}: {named}: {said}.")

    def _line(self, field: str, section: str) -> int:
        """The line where a field, or its section, stands: as good as a look at the text can tell."""
        inside = not section
        begin = 1
        for number, line in enumerate(self._lines, 1):
            head = re.match(r"\s*\[+([^\]]+)\]+", line)
            if head:
                inside = head.group(1).strip().strip('"') in (section, field)
                begin = number if inside else begin
                if inside and field in ("", head.group(1).strip()):
                    return number
            elif inside and field and re.match(rf"\s*[\"']?{re.escape(field)}[\"']?\s*=", line):
                return number
        return begin

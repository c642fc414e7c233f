"""Which model answers when nobody named one."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnkeeper.config import Config
from turnkeeper.providers.catalogue import known_servers
from turnkeeper.settings import Settings
from turnkeeper.surfaces.choose import Wish, opened


@pytest.mark.parametrize("variable", sorted({server.key_env for server in known_servers()}))
async def test_each_key_of_the_catalogue_chooses_a_model_of_its_server(variable: str, tmp_path: Path) -> None:
    """Of two ways to speak to one server, one that is known here is taken."""
    async with opened(Wish(), Config(Settings(), {}, {}), {variable: "k-0123456789"}, tmp_path) as chosen:
        taken = next(server for server in known_servers() if server.key_env == variable)
        assert [(one.family, one.url, one.name) for one in chosen.models] == [
            (taken.family, taken.base_url, taken.default_model)
        ]
        assert variable in chosen.why

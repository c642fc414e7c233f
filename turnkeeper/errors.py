"""Exceptions. An end that the policy answers is a value, not one of these (see `types.ends`).

Each message is one sentence for people: what happened, which file, setting or key (never its value), what to do.
"""

from __future__ import annotations

from turnkeeper.types.faults import Fault


class TurnkeeperError(Exception):
    """Anything that a person can mend; the command line prints its text and exits with 1."""


class ConfigurationError(TurnkeeperError):
    """A setting, file or argument is wrong (S16.3)."""


class ToolDefinitionError(ConfigurationError):
    """A function can't be offered as a tool, for a reason in its signature or docstring."""


class JournalError(TurnkeeperError):
    """The journal can't be opened, read or written (S15.1b)."""


class ReentrantTurnError(TurnkeeperError):
    """A turn asked for a turn in a channel that it holds itself, directly or through others (S13.3a)."""


class ProviderError(TurnkeeperError):
    """The provider refused or broke; `fault` says how, and whose fault it is (S12.4)."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault

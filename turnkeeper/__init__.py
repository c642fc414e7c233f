"""Turnkeeper: a tool loop for chat that finishes the reply.

from turnkeeper import Engine, Model, Settings, tool
"""

from turnkeeper.engine import Engine, Host
from turnkeeper.errors import (
    ConfigurationError,
    JournalError,
    ProviderError,
    ReentrantTurnError,
    ToolDefinitionError,
    TurnkeeperError,
)
from turnkeeper.providers.model import Model
from turnkeeper.settings import Settings
from turnkeeper.tools.context import ToolContext
from turnkeeper.tools.tool import Tool, tool
from turnkeeper.types.messages import Picture
from turnkeeper.types.outcomes import ContextItem, Continue, EndTurn, Expression, RestartWith, Succeeded
from turnkeeper.types.shown import MessageShown, NoticeGiven, Shown, TextShown, ToolBegan, ToolEnded, TurnEnded
from turnkeeper.types.turn import TurnResult

__all__ = [
    "ConfigurationError",
    "ContextItem",
    "Continue",
    "EndTurn",
    "Engine",
    "Expression",
    "Host",
    "JournalError",
    "MessageShown",
    "Model",
    "NoticeGiven",
    "Picture",
    "ProviderError",
    "ReentrantTurnError",
    "RestartWith",
    "Settings",
    "Shown",
    "Succeeded",
    "TextShown",
    "Tool",
    "ToolBegan",
    "ToolContext",
    "ToolDefinitionError",
    "ToolEnded",
    "TurnEnded",
    "TurnResult",
    "TurnkeeperError",
    "tool",
]

"""A channel: its lock and queue, its conversation, and one turn from admission to finaliser."""

"""The terminal: a chat in which typing while the model writes is a follow-up, and Ctrl-C is /kill."""

"""Tools: functions that a model may call.

`tool` makes one of a typed function, `schema` reads its signature, `toolbox` finds one by the name that a model wrote,
`results` makes readable text of whatever it returned, `builtin/` holds ours. To add one: write a typed function, put `@tool`
above it, and give it to the engine.
"""

"""The inner tier: one attempt, from its first request to its end.

`tool_loop` is the loop; `policy` decides every step of it and is pure; `stream_once`, `execute_tool`, `context_restart` and
`build_result` are the four stages. To change how a turn ends, change `policy` and docs/ends.md. To add a stage, add a step.
"""

"""`turnkeeper.testing.strict_gemini`: what a strict Gemini server refuses (S2.5a, S4.6)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnkeeper.testing import Rules, SeenRequest
from turnkeeper.testing.strict_gemini import knows_model, problems

USER = {"role": "user", "parts": [{"text": "why tides?"}]}
SAID = {"role": "model", "parts": [{"text": "The moon."}]}
PICTURE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
SIGNED = {"thoughtSignature": "AbC+/w=="}


def seen(body: Any, model: str = "gemini-2.5-flash") -> SeenRequest:
    path = f"/v1beta/models/{model}:streamGenerateContent?alt=sse"
    return SeenRequest(at=0.0, path=path, headers={}, body=body, raw=b"", key="")


def of_model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def of_user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def called(name: Any = "roll", args: Any = None, **beside: Any) -> dict[str, Any]:
    fields = {name: beside.pop(name) for name in ("id", "partialArgs") if name in beside}
    return {"functionCall": {"name": name, "args": {} if args is None else args} | fields} | beside


def result(name: Any = "roll", response: Any = None, **fields: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"result": 4} if response is None else response} | fields}


def request(*contents: Any, **fields: Any) -> dict[str, Any]:
    return {"contents": list(contents)} | fields


def declared(*declarations: Any, **fields: Any) -> dict[str, Any]:
    """A request with functions."""
    return request(USER, tools=[{"functionDeclarations": list(declarations)}], **fields)


def taking(schema: Any, name: str = "n") -> dict[str, Any]:
    """A request with a function of one parameter with this schema."""
    parameters = {"type": "object", "properties": {name: schema}, "required": [name]}
    return declared({"name": "roll", "parameters": parameters})


def configured(**settings: Any) -> dict[str, Any]:
    return request(USER, generationConfig=settings)


ROLL = {
    "name": "roll",
    "description": "Rolls dice.",
    "parameters": {"type": "OBJECT", "properties": {"n": {"type": "INTEGER"}}},
}
WHERE = "tools[0].functionDeclarations[0]"
AT = f"{WHERE}.parameters.properties.n"
CALLING = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["roll"]}}

VALID = [
    ("one question", request(USER)),
    ("a conversation", request(USER, SAID, USER, systemInstruction={"parts": [{"text": "Be brief."}]})),
    (
        "a system instruction in snake case",
        request(USER, system_instruction={"role": "user", "parts": [{"text": "Be brief."}]}),
    ),
    ("two contents of the user", request(USER, USER)),
    ("a picture", request(of_user({"text": "what is it?"}, PICTURE))),
    ("a picture in snake case", request(of_user({"inline_data": {"mime_type": "image/png", "data": "_-8"}}))),
    ("a file", request(of_user({"fileData": {"fileUri": "https://example.com/a.pdf", "mimeType": "application/pdf"}}))),
    ("a call and its response", request(USER, of_model(called()), of_user(result()))),
    ("parallel calls", request(USER, of_model(called("a"), called("b")), of_user(result("a"), result("b")))),
    ("two calls of one name", request(USER, of_model(called(), called()), of_user(result(), result()))),
    ("calls with ids", request(USER, of_model(called(id="x"), called(id="y")), of_user(result(id="x"), result(id="y")))),
    ("two passes", request(USER, of_model(called()), of_user(result()), of_model(called()), of_user(result()))),
    (
        "thoughts, text and a call",
        request(USER, of_model({"text": "Hm", "thought": True}, {"text": "So"}, called()), of_user(result())),
    ),
    ("a picture with the responses", request(USER, of_model(called()), of_user(result(), PICTURE))),
    ("no args", request(USER, of_model({"functionCall": {"name": "roll"}}), of_user(result()))),
    ("an empty text with a signature", request(USER, of_model({"text": ""} | SIGNED), USER)),
    (
        "code that was run",
        request(
            USER,
            of_model(
                {"executableCode": {"language": "PYTHON", "code": "1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK"}}
            ),
            USER,
        ),
    ),
    ("a tool", declared(ROLL)),
    ("a tool without parameters", declared({"name": "now"})),
    ("a tool in snake case", request(USER, tools=[{"function_declarations": [ROLL]}])),
    (
        "a tool with a schema of the other kind",
        declared({"name": "roll", "parametersJsonSchema": {"type": "object", "additionalProperties": False}}),
    ),
    ("a tool of the server", request(USER, tools=[{"googleSearch": {}}])),
    ("a tool that must be called", declared(ROLL, toolConfig=CALLING)),
    ("a text", taking({"type": "string", "format": "date-time", "minLength": 1, "maxLength": "9", "pattern": "^a"})),
    ("a choice", taking({"type": "STRING", "enum": ["a", "b"], "format": "enum", "title": "T", "description": "D"})),
    ("a number", taking({"type": "number", "minimum": 0.5, "maximum": 2, "nullable": True, "example": 1})),
    ("a list", taking({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3})),
    ("one of several", taking({"anyOf": [{"type": "string"}, {"type": "integer"}]})),
    (
        "an object in an object",
        taking(
            {
                "type": "object",
                "properties": {"default": {"type": "boolean"}},
                "required": ["default"],
                "propertyOrdering": ["default"],
            }
        ),
    ),
    ("a free object below the top", taking({"type": "object"})),
    ("settings", configured(temperature=2, topP=1, topK=40, maxOutputTokens=9, stopSequences=["x"], seed=-1, candidateCount=1)),
    ("settings in snake case", configured(max_output_tokens=9)),
    ("a level of thinking", configured(thinkingConfig={"includeThoughts": True, "thinkingLevel": "low"})),
    ("a budget of thinking", configured(thinkingConfig={"thinkingBudget": -1})),
    (
        "an answer in JSON",
        configured(
            responseMimeType="application/json", responseSchema={"type": "object", "properties": {"n": {"type": "integer"}}}
        ),
    ),
    ("safety", request(USER, safetySettings=[{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}])),
    ("something cached", request(USER, cachedContent="cachedContents/x", labels={}, store=False)),
]


@pytest.mark.parametrize("body", [body for _, body in VALID], ids=[name for name, _ in VALID])
def test_what_the_server_takes(body) -> None:
    assert problems(seen(body), Rules(models=("gemini-2.5-flash",))) == []


EQUAL = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
AFTER_USER = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
AFTER_CALL = "Please ensure that function response turn comes immediately after a function call turn."


def unknown(name: str, where: str = "") -> str:
    at = f" at '{where}'" if where else ""
    return f'Invalid JSON payload received. Unknown name "{name}"{at}: Cannot find field.'


INVALID = [
    (None, "the body is not a JSON object"),
    ([USER], "the body is not a JSON object"),
    (request(), "contents: contents is not specified"),
    ({"contents": USER}, "contents: contents is not specified"),
    (request("hi"), "contents[0]: not an object"),
    (request(USER, messages=[]), unknown("messages")),
    (request(USER, max_tokens=3), unknown("max_tokens")),
    # contents and parts
    (request(of_user({"text": "x"}) | {"role": "assistant"}), "contents[0].role: Please use a valid role: user, model."),
    (request({"parts": [{"text": "x"}]}), "contents[0].role: Please use a valid role: user, model."),
    (request(USER | {"content": "x"}), unknown("content", "contents[0]")),
    (request({"role": "user"}), "contents[0].parts: contents.parts must not be empty."),
    (request(of_user()), "contents[0].parts: contents.parts must not be empty."),
    (request(of_user("x")), "contents[0].parts[0]: not an object"),
    (request(of_user({})), "contents[0].parts[0].data: required oneof field 'data' must have one initialized field"),
    (request(of_user({"thought": True})), "contents[0].parts[0].data: required oneof field"),
    (request(of_user({"text": "x"} | PICTURE)), "oneof field 'data' is already set: text and inlineData in one part"),
    (request(of_user({"type": "text", "text": "x"})), unknown("type", "contents[0].parts[0]")),
    (request(of_user({"text": ""})), "contents[0].parts[0].text: the text is empty"),
    (request(of_user({"text": None})), "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING)"),
    (request(of_user({"text": "x", "thought": 1})), "contents[0].parts[0].thought: neither true nor false"),
    (
        request(USER, of_model({"text": "x", "thoughtSignature": "a b"}), USER),
        "thoughtSignature' (TYPE_BYTES), Base64 decoding failed",
    ),
    (request(of_user({"inlineData": "x"})), "contents[0].parts[0].inlineData: not an object"),
    (request(of_user({"inlineData": {"data": "AAAA"}})), "inlineData.mimeType: Unsupported MIME type: None"),
    (
        request(of_user({"inlineData": {"mimeType": "png", "data": "AAAA"}})),
        "inlineData.mimeType: Unsupported MIME type: 'png'",
    ),
    (
        request(of_user({"inlineData": {"mimeType": "image/png", "data": ""}})),
        "inlineData.data' (TYPE_BYTES), Base64 decoding failed",
    ),
    (request(of_user({"inlineData": {"mimeType": "image/png", "data": "AAAAA"}})), "Base64 decoding failed"),
    (request(of_user({"inlineData": {"mimeType": "image/png", "data": "data:image/png;base64,AA"}})), "Base64 decoding failed"),
    (
        request(of_user({"inlineData": {"mimeType": "image/png", "data": "AAAA", "url": "x"}})),
        unknown("url", "contents[0].parts[0].inlineData"),
    ),
    (request(of_user({"fileData": {"mimeType": "image/png"}})), "contents[0].parts[0].fileData.fileUri: must not be empty"),
    (request(USER, of_model({"executableCode": {"code": "1"}}), USER), "executableCode: language and code are needed"),
    (request(USER, of_model({"codeExecutionResult": {}}), USER), "codeExecutionResult.outcome: must be specified"),
    # calls and responses by themselves
    (request(USER, of_model(called("")), of_user(result(""))), "functionCall.name: Name cannot be empty."),
    (request(USER, of_model(called("würfel")), of_user(result("würfel"))), "Invalid function name 'würfel'"),
    (request(USER, of_model(called("4d")), of_user(result("4d"))), "functionResponse.name: Invalid function name '4d'"),
    (request(USER, of_model(called("x" * 65)), of_user(result("x" * 65))), f"Invalid function name '{'x' * 65}'"),
    (
        request(USER, of_model(called(args='{"n": 2}')), of_user(result())),
        "functionCall.args' (type.googleapis.com/google.protobuf.Struct)",
    ),
    (
        request(USER, of_model(called(args=[1])), of_user(result())),
        "functionCall.args' (type.googleapis.com/google.protobuf.Struct)",
    ),
    (
        request(USER, of_model(called(partialArgs=[])), of_user(result())),
        unknown("partialArgs", "contents[1].parts[0].functionCall"),
    ),
    (
        request(USER, of_model(called(id=3)), of_user(result(id=3))),
        "Invalid value at 'contents[1].parts[0].functionCall.id' (TYPE_STRING)",
    ),
    (
        request(USER, of_model(called()), of_user(result(response="4"))),
        "functionResponse.response' (type.googleapis.com/google.protobuf.Struct)",
    ),
    (
        request(USER, of_model(called()), of_user({"functionResponse": {"name": "roll"}})),
        "functionResponse.response' (type.googleapis.com",
    ),
    (
        request(USER, of_model(called()), of_user(result(content="4"))),
        unknown("content", "contents[2].parts[0].functionResponse"),
    ),
    (request(of_user(called()), of_user(result())), "contents[0].parts[0]: only the model calls functions"),
    (
        request(USER, of_model(called()), of_model(result()), USER),
        "contents[2].parts[0]: function responses come from the user",
    ),
    # turns
    (request(SAID, USER), "contents[0]: Please ensure that the conversation begins with a user turn."),
    (request(of_model(called()), of_user(result())), f"contents[0]: {AFTER_USER}"),
    (request(USER, SAID, of_model(called()), of_user(result())), f"contents[2]: {AFTER_USER}"),
    (request(USER, of_model(called())), f"contents[2]: {EQUAL} (0 for 1)"),
    (request(USER, of_model(called()), USER), f"contents[2]: {EQUAL} (0 for 1)"),
    (request(USER, of_model(called("a"), called("b")), of_user(result("a"))), f"{EQUAL} (1 for 2)"),
    (request(USER, of_model(called("a"), called("b")), of_user(result("a")), of_user(result("b"))), f"{EQUAL} (1 for 2)"),
    (request(USER, of_model(called()), of_user(result(), result())), f"{EQUAL} (2 for 1)"),
    (
        request(USER, of_model(called("a"), called("b")), of_user(result("b"), result("a"))),
        "contents[2]: response 0 is of 'b', the call was of 'a'",
    ),
    (request(USER, of_model(called(id="x")), of_user(result(id="y"))), "contents[2]: response 0 has the id 'y', the call 'x'"),
    (request(USER, of_model(called(id="x")), of_user(result())), "contents[2]: response 0 has the id None, the call 'x'"),
    (request(of_user(result())), f"contents[0]: {AFTER_CALL}"),
    (request(USER, of_user(result())), f"contents[1]: {AFTER_CALL}"),
    (request(USER, of_model(called()), of_user(result()), of_user(result())), f"contents[3]: {AFTER_CALL}"),
    (request(USER, of_model(called()), USER, of_user(result())), f"contents[3]: {AFTER_CALL}"),
    (request(USER, SAID), "this model does not support prefill: the conversation must end with a user turn"),
    # the system
    (request(USER, systemInstruction="Be brief."), "systemInstruction: not an object"),
    (request(USER, systemInstruction={"parts": []}), "systemInstruction.parts: contents.parts must not be empty."),
    (request(USER, systemInstruction={"parts": [{"text": ""}]}), "systemInstruction.parts[0].text: the text is empty"),
    (request(USER, systemInstruction={"parts": [PICTURE]}), "systemInstruction.parts[0]: only text is allowed here"),
    (request(USER, systemInstruction={"text": "x"}), unknown("text", "systemInstruction")),
    (declared(ROLL, cachedContent="cachedContents/x"), "CachedContent can not be used with"),
    # tools
    (request(USER, tools={}), "tools: not a list"),
    (request(USER, tools=["x"]), "tools[0]: not an object"),
    (request(USER, tools=[{}]), "tools[0].tool_type: required one_of 'tool_type' must have one initialized field"),
    (declared(), "tools[0].tool_type: required one_of 'tool_type' must have one initialized field"),
    (request(USER, tools=[{"type": "function", "function": ROLL}]), unknown("function", "tools[0]")),
    (request(USER, tools=[{"functionDeclarations": ROLL}]), "tools[0].functionDeclarations: not a list"),
    (declared("x"), f"{WHERE}: not an object"),
    (declared(ROLL | {"strict": True}), unknown("strict", WHERE)),
    (declared(ROLL, ROLL), "tools[0].functionDeclarations[1].name: Duplicate function declaration found: roll"),
    (
        request(USER, tools=[{"functionDeclarations": [ROLL]}] * 2),
        "tools[1].functionDeclarations[0].name: Duplicate function declaration",
    ),
    (declared({"name": "a b"}), f"{WHERE}.name: Invalid function name 'a b'"),
    (declared({"description": "x"}), f"{WHERE}.name: Invalid function name None"),
    (declared({"name": "a", "description": 3}), f"{WHERE}.description: not a text"),
    (declared(ROLL | {"parametersJsonSchema": {"type": "object"}}), "parameters and parametersJsonSchema exclude each other"),
    (declared({"name": "a", "parametersJsonSchema": {"type": "string"}}), "parametersJsonSchema: not a schema of type object"),
    (declared({"name": "a", "parameters": None}), f"{WHERE}.parameters: a schema is an object"),
    (declared({"name": "a", "parameters": {"type": "string"}}), f"{WHERE}.parameters.type: parameters must be of OBJECT type"),
    (
        declared({"name": "a", "parameters": {"type": "object"}}),
        f"{WHERE}.parameters.properties: should be non-empty for OBJECT type",
    ),
    (
        declared({"name": "a", "parameters": {"type": "object", "properties": {}}}),
        "properties: should be non-empty for OBJECT type",
    ),
    (
        declared({"name": "a", "parameters": {"type": "object", "properties": []}}),
        f"{WHERE}.parameters.properties: not an object",
    ),
    (declared(toolConfig=CALLING), "Function calling config is set without function_declarations."),
    (
        declared(ROLL, toolConfig={"functionCallingConfig": {"mode": "auto"}}),
        "toolConfig.functionCallingConfig.mode: 'auto' is unknown",
    ),
    (
        declared(ROLL, toolConfig={"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["roll"]}}),
        "only allowed when mode is ANY",
    ),
    (
        declared(ROLL, toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["b"]}}),
        "allowedFunctionNames: 'b' is not declared",
    ),
    (
        declared(ROLL, toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": "b"}}),
        "allowedFunctionNames: not a list",
    ),
    (declared(ROLL, toolConfig={"functionCallingConfig": "ANY"}), "toolConfig.functionCallingConfig: not an object"),
    (declared(ROLL, toolConfig="auto"), "toolConfig: not an object"),
    (declared(ROLL, toolConfig={"mode": "ANY"}), unknown("mode", "toolConfig")),
    # schemas
    *(
        (taking({"type": "string", keyword: "x"}), unknown(keyword, AT))
        for keyword in (
            "additionalProperties",
            "$ref",
            "$schema",
            "$defs",
            "oneOf",
            "allOf",
            "const",
            "default",
            "exclusiveMinimum",
        )
    ),
    (
        declared({"name": "a", "parameters": ROLL["parameters"] | {"additionalProperties": False}}),
        unknown("additionalProperties", f"{WHERE}.parameters"),
    ),
    (taking({"type": "array", "items": {"type": "string", "const": "x"}}), unknown("const", f"{AT}.items")),
    (taking({"anyOf": [{"type": "string"}, {"type": "integer", "const": 1}]}), unknown("const", f"{AT}.anyOf[1]")),
    (
        taking({"type": ["string", "null"]}),
        f"Unknown name \"type\" at '{AT}': Proto field is not repeating, cannot start list.",
    ),
    (taking({"anyOf": [{"type": "string"}, {"type": "null"}]}), f"Invalid value at '{AT}.anyOf[1].type': 'null'"),
    (taking({"type": "String"}), f"Invalid value at '{AT}.type': 'String'"),
    (taking({"type": "float"}), f"Invalid value at '{AT}.type': 'float'"),
    (taking({}), f"{AT}.type: must be specified"),
    (taking(True), f"{AT}: a schema is an object"),
    (taking({"type": "array"}), f"{AT}.items: missing field"),
    (taking({"type": "array", "items": []}), f"{AT}.items: a schema is an object"),
    (taking({"type": "string", "items": {"type": "string"}}), f"{AT}.items: only allowed for ARRAY type"),
    (
        taking({"type": "array", "items": {"type": "string"}, "properties": {}}),
        f"{AT}.properties: only allowed for OBJECT type",
    ),
    (taking({"type": "integer", "enum": [1, 2]}), f"{AT}.enum: only allowed for STRING type"),
    (taking({"type": "integer", "enum": [1, 2]}), f"Invalid value at '{AT}.enum[0]' (TYPE_STRING), 1"),
    (taking({"type": "string", "enum": ["a", None]}), f"Invalid value at '{AT}.enum[1]' (TYPE_STRING), None"),
    (taking({"type": "string", "enum": ["a", ""]}), f"{AT}.enum[1]: cannot be empty"),
    (taking({"type": "string", "enum": []}), f"{AT}.enum: not a list with at least one value"),
    (taking({"type": "string", "format": "uri"}), f"{AT}.format: only 'enum' and 'date-time' are supported for STRING type"),
    (taking({"type": "string", "minLength": -1}), f"{AT}.minLength: not a whole number"),
    (taking({"type": "number", "minimum": "0"}), f"{AT}.minimum: not a number"),
    (taking({"type": "string", "description": None}), f"{AT}.description: not a text"),
    (taking({"type": "string", "nullable": "yes"}), f"{AT}.nullable: neither true nor false"),
    (taking({"type": "object", "required": ["x"]}), f"{AT}.required[0]: property is not defined: 'x'"),
    (
        taking({"type": "object", "properties": {"a": {"type": "string"}}, "propertyOrdering": ["b"]}),
        f"{AT}.propertyOrdering[0]: property is not defined",
    ),
    (taking({"type": "object", "required": "x"}), f"{AT}.required: not a list"),
    (taking({"anyOf": []}), f"{AT}.anyOf: not a list with at least one schema"),
    # settings
    (request(USER, generationConfig=[]), "generationConfig: not an object"),
    (configured(max_tokens=3), unknown("max_tokens", "generationConfig")),
    (configured(temperature=2.1), "generationConfig.temperature: 2.1 is no number from 0 to 2"),
    (configured(topP="1"), "generationConfig.topP: '1' is no number from 0 to 1"),
    (configured(maxOutputTokens=0), "generationConfig.maxOutputTokens: 0 is no whole number from 1 up"),
    (configured(topK=1.5), "generationConfig.topK: 1.5 is no whole number from 1 up"),
    (configured(stopSequences=["a"] * 6), "generationConfig.stopSequences: not a list of at most 5 texts"),
    (configured(stopSequences="a"), "generationConfig.stopSequences: not a list of at most 5 texts"),
    (configured(thinkingConfig=True), "generationConfig.thinkingConfig: not an object"),
    (configured(thinkingConfig={"effort": "low"}), unknown("effort", "generationConfig.thinkingConfig")),
    (configured(thinkingConfig={"includeThoughts": 1}), "includeThoughts: neither true nor false"),
    (configured(thinkingConfig={"thinkingLevel": "max"}), "thinkingLevel: 'max' is unknown"),
    (configured(thinkingConfig={"thinkingBudget": "9"}), "thinkingBudget: '9' is no whole number from -1 up"),
    (
        configured(thinkingConfig={"thinkingBudget": 9, "thinkingLevel": "low"}),
        "You can only set only one of thinking budget and thinking level.",
    ),
    (configured(responseMimeType="json"), "generationConfig.responseMimeType: allowed are"),
    (configured(responseSchema={"type": "string"}), "responseSchema: only allowed when responseMimeType is application/json"),
    (
        configured(responseMimeType="application/json", responseSchema={"type": "x"}),
        "Invalid value at 'generationConfig.responseSchema.type'",
    ),
    (
        configured(responseMimeType="application/json", responseSchema={"type": "string"}, responseJsonSchema={}),
        "exclude each other",
    ),
    (request(USER, safetySettings={}), "safetySettings: not a list"),
    (request(USER, safetySettings=[{"category": "x"}]), "safetySettings[0]: category and threshold are needed"),
]


@pytest.mark.parametrize(("body", "sentence"), INVALID, ids=[f"{n} {case[1][:60]}" for n, case in enumerate(INVALID)])
def test_what_the_server_refuses(body, sentence) -> None:
    assert sentence in "\n".join(problems(seen(body), Rules(models=("gemini-2.5-flash",))))


def test_a_free_name_of_a_property_is_no_keyword() -> None:
    """Names of parameters are the tool's own: neither unknown, nor to be read as snake case."""
    assert problems(seen(taking({"type": "string"}, name="additional_properties")), Rules()) == []
    assert problems(seen(taking({"type": "string"}, name="$ref")), Rules()) == []


def test_the_model_stands_in_the_path() -> None:
    rules = Rules(models=("gemini-x",))
    known, strange = seen(request(USER), "gemini-x"), seen(request(USER), "gemini-y")
    assert (problems(known, rules), knows_model(known, rules)) == ([], True)
    assert problems(strange, rules) == [
        "models/gemini-y is not found for API version v1beta, or is not supported for streamGenerateContent. There is gemini-x"
    ]
    assert (knows_model(strange, rules), problems(strange, Rules())) == (False, [])
    nameless = SeenRequest(at=0.0, path="/v1beta/x", headers={}, body=request(USER), raw=b"", key="")
    assert problems(nameless, Rules()) == ["the path names no model"]


RULED = [
    (Rules(prefill=True), request(USER, SAID), ""),
    (Rules(alternate=True), request(USER, SAID, USER), ""),
    (Rules(alternate=True), request(USER, of_model(called()), of_user(result()), SAID, USER), ""),
    (
        Rules(alternate=True),
        request(USER, USER),
        "contents[1]: Please ensure that multiturn requests alternate between user and model.",
    ),
    (Rules(alternate=True), request(USER, SAID, SAID, USER), "contents[2]: Please ensure that multiturn requests alternate"),
    (Rules(refuses=("safetySettings",)), request(USER, safetySettings=[]), "safetySettings: unsupported parameter"),
    (Rules(refuses=("safetySettings",)), request(USER), ""),
]


@pytest.mark.parametrize(("rules", "body", "sentence"), RULED)
def test_rules_that_only_some_servers_have(rules, body, sentence) -> None:
    found = problems(seen(body), rules)
    assert bool(found) == bool(sentence)
    assert sentence in "\n".join(found)


MISSING = "Function call is missing a thought_signature in functionCall parts."
SIGNATURES = [
    ("signed", [USER, of_model(called(**SIGNED)), of_user(result())], ""),
    ("signed in snake case", [USER, of_model(called(thought_signature="AbC=")), of_user(result())], ""),
    ("only the first of parallel calls", [USER, of_model(called(**SIGNED), called()), of_user(result(), result())], ""),
    ("after a text", [USER, of_model({"text": "So"}, called(**SIGNED)), of_user(result())], ""),
    ("of an earlier turn", [USER, of_model(called()), of_user(result()), SAID, USER], ""),
    (
        "unsigned",
        [USER, of_model(called()), of_user(result())],
        f"contents[1].parts[0]: {MISSING} Additional data, function call `roll`.",
    ),
    ("empty", [USER, of_model(called(thoughtSignature="")), of_user(result())], f"contents[1].parts[0]: {MISSING}"),
    (
        "only the second",
        [USER, of_model(called(), called(**SIGNED)), of_user(result(), result())],
        f"contents[1].parts[0]: {MISSING}",
    ),
    (
        "on the text before",
        [USER, of_model({"text": "So"} | SIGNED, called()), of_user(result())],
        f"contents[1].parts[1]: {MISSING}",
    ),
    (
        "a later pass of the turn",
        [USER, of_model(called(**SIGNED)), of_user(result()), of_model(called()), of_user(result())],
        f"contents[3].parts[0]: {MISSING}",
    ),
    (
        "a text beside the responses begins no turn",
        [USER, of_model(called()), of_user(result(), {"text": "Go on."})],
        f"contents[1].parts[0]: {MISSING}",
    ),
]


@pytest.mark.parametrize(("name", "contents", "sentence"), SIGNATURES, ids=[case[0] for case in SIGNATURES])
def test_gemini_3_wants_its_signatures_back(name, contents, sentence) -> None:
    found = problems(seen(request(*contents), "gemini-3-pro-preview"), Rules())
    assert bool(found) == bool(sentence)
    assert sentence in "\n".join(found)
    assert MISSING not in "\n".join(problems(seen(request(*contents), "gemini-2.5-pro"), Rules()))


NAMES = [
    *(
        "contents",
        "role",
        "parts",
        "text",
        "inlineData",
        "mimeType",
        "data",
        "functionCall",
        "functionResponse",
        "name",
        "args",
    ),
    *(
        "response",
        "id",
        "thoughtSignature",
        "tools",
        "functionDeclarations",
        "parameters",
        "type",
        "properties",
        "items",
        "anyOf",
    ),
    *("enum", "required", "toolConfig", "functionCallingConfig", "mode", "allowedFunctionNames", "generationConfig", "topK"),
    *("stopSequences", "thinkingConfig", "thinkingLevel", "responseSchema", "safetySettings", "systemInstruction", "fileData"),
]
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["user", "model", "object", "AUTO"])
)
JUNK = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner, max_size=5)
    ),
)
PARTS = st.lists(
    st.fixed_dictionaries({}, optional=dict.fromkeys(("text", "functionCall", "functionResponse", "inlineData"), JUNK))
)
CONTENTS = st.lists(st.fixed_dictionaries({"role": st.sampled_from(["user", "model"]), "parts": PARTS | JUNK}))
TOOLS = st.lists(
    st.fixed_dictionaries({"functionDeclarations": st.lists(st.fixed_dictionaries({"name": JUNK, "parameters": JUNK}))})
)


@settings(max_examples=300, deadline=None)
@given(
    JUNK
    | st.fixed_dictionaries({"contents": CONTENTS | JUNK, "tools": TOOLS | JUNK, "toolConfig": JUNK, "generationConfig": JUNK})
)
def test_junk_is_a_problem_and_no_crash(junk) -> None:
    assert isinstance(problems(seen(junk, "gemini-3-x"), Rules(alternate=True)), list)


@settings(max_examples=200, deadline=None)
@given(st.text() | st.text(alphabet="/v1betamodls:?=&%alt"))
def test_a_junk_path_is_no_crash(path) -> None:
    strange = SeenRequest(at=0.0, path=path, headers={}, body=request(USER), raw=b"", key="")
    assert isinstance(problems(strange, Rules(models=("gemini-x",))), list)


def test_a_schema_without_bottom_is_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(500):
        schema = {"type": "array", "items": schema}
    assert "the schema is nested too deeply" in "\n".join(problems(seen(taking(schema)), Rules()))

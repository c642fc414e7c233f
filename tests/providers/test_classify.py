"""Error answers in our classes (S12.4, S3.3b), and the connection's own failures as one sentence each."""

from __future__ import annotations

import json
import socket
import time
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import Bench
from tests.shared import STREAMS
from turnkeeper import Model
from turnkeeper.errors import ProviderError
from turnkeeper.providers.classify import fault_in_stream, fault_of_answer
from turnkeeper.providers.transport import HttpRequest, Transport
from turnkeeper.testing import fail, framing, raw, say
from turnkeeper.types.faults import Fault

NOW = 1_796_126_400.0  # 2026-12-01T12:00:00Z


def classify(status: int, body: Any, headers: dict[str, str] | None = None) -> Fault:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return fault_of_answer(status, headers or {}, data, where="h/v1", now=NOW)


def openai(message: str, code: str | None = None, kind: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def anthropic(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def google(code: int, status: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def reason(name: str) -> dict[str, Any]:
    return {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": name,
        "domain": "googleapis.com",
        "metadata": {"service": "x"},
    }


def openrouter(code: int, message: str, raw: Any = None, **metadata: Any) -> dict[str, Any]:
    return {
        "error": {"code": code, "message": message, "metadata": {"raw": raw, "provider_name": "Maker", **metadata}},
        "user_id": "u",
    }


def mistral(message: str, kind: str, code: str | None = None) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def litellm(said: str, kind: str | None = None, code: str = "400") -> dict[str, Any]:
    return {"error": {"message": said, "type": kind, "param": None, "code": code}}


def short(fault: Fault) -> str:
    """Kind, blame and what rests, and the flags that are set: what a row of the table says."""
    flags = [name for name in ("picture", "prefill") if getattr(fault, name)]
    return " ".join([fault.kind, fault.blame, fault.rests, *flags])


@dataclass
class Case:
    says: str
    status: int
    body: Any
    means: str
    headers: dict[str, str] = field(default_factory=dict[str, str])
    wait_s: float | None = None

    def __str__(self) -> str:
        return self.says


KEYS = [
    Case("OpenAI: a wrong key", 401, openai("Incorrect API key provided: sk-ab*****yz.", "invalid_api_key"), "auth key key"),
    Case("OpenAI: no key at all", 401, openai("You didn't provide an API key.", None, "invalid_request_error"), "auth key key"),
    Case("OpenAI: a key without the scope", 401, openai("You have insufficient permissions for this operation. Missing scopes: model.request."), "permission key key"),
    Case("Anthropic: a wrong key", 401, anthropic("authentication_error", "invalid x-api-key"), "auth key key"),
    Case("Anthropic: a key that may not", 403, anthropic("permission_error", "Your API key does not have permission to use the specified resource."), "permission key key"),
    Case("Gemini: a wrong key comes as 400", 400, google(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", reason("API_KEY_INVALID")), "auth key key"),
    Case("Gemini: a list round the error", 400, [google(400, "INVALID_ARGUMENT", "API key expired. Please renew the API key.", reason("API_KEY_INVALID"))], "auth key key"),
    Case("Gemini: the API is not enabled for the key's project", 403, google(403, "PERMISSION_DENIED", "Generative Language API has not been used in project 12 before or it is disabled.", reason("SERVICE_DISABLED")), "permission key key"),
    Case("Azure: a wrong key or endpoint", 401, {"error": {"code": "401", "message": "Access denied due to invalid subscription key or wrong API endpoint."}}, "auth key key"),
    Case("OpenRouter: no credentials", 401, {"error": {"message": "No auth credentials found", "code": 401}}, "auth key key"),
    Case("DeepSeek: a wrong key", 401, openai("Authentication Fails, Your api key: ****1234 is invalid", "invalid_request_error", "authentication_error"), "auth key key"),
    Case("xAI: a wrong key comes as 400", 400, {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: xa***yz. You can obtain an API key from https://console.x.ai."}, "auth key key"),
    Case("Moonshot: a wrong key", 401, openai("Invalid Authentication", None, "invalid_authentication_error"), "auth key key"),
    Case("Alibaba: a wrong key", 401, {"code": "InvalidApiKey", "message": "Invalid API-key provided.", "request_id": "r"}, "auth key key"),
    Case("Mistral: unauthorized, in its gateway's form", 401, {"message": "Unauthorized", "request_id": "r"}, "auth key key"),
    Case("FastAPI: unauthorized", 401, {"detail": "Unauthorized"}, "auth key key"),
    Case("Bedrock: the code is in a header", 403, {"message": "The security token included in the request is invalid."}, "auth key key", {"x-amzn-errortype": "UnrecognizedClientException:http://internal.example/"}),
    Case("NovelAI: a wrong token", 401, {"statusCode": 401, "message": "Invalid accessToken"}, "auth key key"),
    Case("LiteLLM: an unknown virtual key", 401, litellm("Authentication Error, Invalid proxy server token passed.", "token_not_found_in_db", "401"), "auth key key"),
    Case("401 with a page: a proxy's, not the server's", 401, b"<html><h1>Authorization Required</h1></html>", "auth network nothing"),
    Case("401 that asks for a password: a proxy's", 401, b"401 Unauthorized", "auth network nothing", {"www-authenticate": 'Basic realm="gate"'}),
    Case("407: a proxy's", 407, b"", "auth network nothing"),
    Case("403 that says nothing of a key", 403, {"error": "Forbidden"}, "permission key pair"),
    Case("403 that speaks of rights", 403, openai("You have insufficient permissions"), "permission key key"),
]  # fmt: skip
LIMITS = [
    Case("OpenAI: a model's limit", 429, openai("Rate limit reached for gpt-x on requests per min (RPM): Limit 3, Used 3. Please try again in 20s.", "rate_limit_exceeded", "requests"), "rate_limit key pair", wait_s=20),
    Case("OpenAI: an exhausted bucket", 429, openai("Rate limit reached", "rate_limit_exceeded", "tokens"), "rate_limit key pair", {"x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-requests": "1h0m0s", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, 360),
    Case("OpenAI: the quota is spent", 429, openai("You exceeded your current quota, please check your plan and billing details.", "insufficient_quota", "insufficient_quota"), "quota_exhausted key key"),
    Case("OpenAI: the hard limit of the bill", 400, openai("Billing hard limit has been reached", "billing_hard_limit_reached"), "credit_ceiling key key"),
    Case("ChatGPT: a usage limit", 429, {"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus", "resets_in_seconds": 500000}}, "quota_exhausted key key", wait_s=500000),
    Case("Anthropic: a model's limit", 429, anthropic("rate_limit_error", "This request would exceed your organization's rate limit of 30,000 input tokens per minute."), "rate_limit key pair", {"retry-after": "17"}, 17),
    Case("Anthropic: the account's limit", 429, anthropic("rate_limit_error", "This request would exceed your account's rate limit. Please try again later."), "quota_exhausted key key", {"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": str(int(NOW) + 7200)}, 7200),
    Case("Anthropic: the credit is spent", 400, anthropic("invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."), "credit_ceiling key key"),
    Case("Anthropic: the workspace's own limit", 400, anthropic("invalid_request_error", "You have reached your specified API usage limits. You will regain access on 2026-12-02 at 00:00 UTC."), "quota_exhausted key key", wait_s=43200),
    Case("Anthropic: billing", 403, anthropic("billing_error", "There's an issue with your account's billing."), "credit_ceiling key key"),
    Case("Anthropic: overloaded", 529, anthropic("overloaded_error", "Overloaded"), "overloaded model nothing"),
    Case("Gemini: a limit a minute that speaks of plan and billing", 429, google(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: x, limit: 10\nPlease retry in 34.07s.", {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}), "rate_limit key pair", wait_s=34.07),
    Case("Gemini: a model's quota for the day", 429, google(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}, {"retryDelay": "41s"}), "rate_limit key pair", wait_s=41),
    Case("Gemini: prepaid credits are gone", 429, google(429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted."), "credit_ceiling key key"),
    Case("Gemini: the model is overloaded", 503, google(503, "UNAVAILABLE", "The model is overloaded. Please try again later."), "overloaded model nothing"),
    Case("Azure: a limit", 429, {"error": {"code": "RateLimitReached", "message": "Requests to the ChatCompletions_Create Operation have exceeded token rate limit. Please retry after 6 seconds."}}, "rate_limit key pair", wait_s=6),
    Case("Azure: too many requests", 429, {"statusCode": 429, "message": "Rate limit is exceeded. Try again in 2 seconds."}, "rate_limit key pair", {"retry-after-ms": "1500"}, 2),
    Case("OpenRouter: a maker's limit", 429, openrouter(429, "Provider returned error", "maker/model:free is temporarily rate-limited upstream."), "rate_limit key pair"),
    Case("OpenRouter: free requests of the day", 429, {"error": {"message": "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day", "code": 429, "metadata": {"headers": {"X-RateLimit-Limit": "50", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str((int(NOW) + 43200) * 1000)}}}}, "rate_limit key pair", wait_s=43200),
    Case("OpenRouter: out of credit", 402, openrouter(402, "This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 900."), "credit_ceiling key key"),
    Case("OpenRouter: more prompt than the credit buys", 402, {"error": {"message": "Prompt tokens limit exceeded: 69120 > 36608.", "code": 402}}, "credit_ceiling key key"),
    Case("OpenRouter: the key's own limit", 403, {"error": {"message": "Key limit exceeded (monthly limit). Manage it using https://openrouter.ai/settings/keys", "code": 403}}, "quota_exhausted key key"),
    Case("Groq: tokens a day", 429, openai("Rate limit reached for model `m` in organization `o` on tokens per day (TPD): Limit 100000, Used 99000. Please try again in 27m30.5s.", "rate_limit_exceeded", "tokens"), "rate_limit key pair", {"retry-after": "1651"}, 1651),
    Case("Mistral: a limit", 429, mistral("Requests rate limit exceeded", "rate_limited", "1300"), "rate_limit key pair"),
    Case("Mistral: bare", 429, {"message": "Requests rate limit exceeded"}, "rate_limit key pair"),
    Case("Mistral: no capacity for the model", 429, mistral("Service tier capacity exceeded for this model.", "service_tier_capacity_exceeded", "3505"), "overloaded model nothing"),
    Case("DeepSeek: no money", 402, openai("Insufficient Balance", "invalid_request_error", "unknown_error"), "credit_ceiling key key"),
    Case("DeepSeek: busy", 503, openai("The server is busy. Please try again later.", None, "service_unavailable_error"), "overloaded model nothing"),
    Case("xAI: out of credit comes as 429", 429, {"code": "Some resource has been exhausted", "error": "Your team t has either used all available credits or reached its monthly spending limit."}, "credit_ceiling key key"),
    Case("xAI: out of credit comes as 403", 403, {"code": "The caller does not have permission", "error": "You have run out of credits or need a Grok subscription."}, "credit_ceiling key key"),
    Case("Moonshot: the account is not active", 403, openai("Your account o is not active, exceeded current quota, please check your plan and billing details", None, "exceeded_current_quota_error"), "quota_exhausted key key"),
    Case("Moonshot: the engine is overloaded, as 429", 429, openai("The engine is currently overloaded, please try again later", None, "engine_overloaded_error"), "overloaded model nothing"),
    Case("Moonshot: a limit", 429, openai("Your account reached organization max RPM: 6, please try again after 1 seconds", None, "rate_limit_reached_error"), "rate_limit key pair", wait_s=1),
    Case("Z.ai: no money comes as 429", 429, {"error": {"code": "1113", "message": "Insufficient balance or no resource package. Please recharge."}}, "credit_ceiling key key"),
    Case("Z.ai: no money, named a rate limit", 429, anthropic("rate_limit_error", "[1113][Insufficient balance or no resource package. Please recharge.][20260922]"), "credit_ceiling key key"),
    Case("Z.ai: no money, in Chinese", 429, {"error": {"code": "1113", "message": "余额不足或无可用资源包,请充值。"}}, "credit_ceiling key key"),
    Case("Z.ai: the plan's window is used up", 429, {"error": {"code": "1308", "message": "Usage limit reached for 5 hour. Your limit will reset at 2026-12-01 15:30:06"}}, "quota_exhausted key key", wait_s=12606),
    Case("Z.ai: too many at once", 429, {"error": {"code": "1302", "message": "High concurrency usage of this API, please reduce concurrency"}}, "rate_limit key pair"),
    Case("Alibaba: a limit a minute worded as a spent quota", 429, openai("You exceeded your current quota, please check your plan and billing details. See https://help.example/error-code#token-limit.", "insufficient_quota", "insufficient_quota"), "rate_limit key pair"),
    Case("Alibaba: throttled", 429, {"code": "Throttling.RateQuota", "message": "Requests rate limit exceeded, please try again later.", "request_id": "r"}, "rate_limit key pair"),
    Case("Alibaba: in arrears", 400, {"code": "Arrearage", "message": "Access denied, please make sure your account is in good standing."}, "credit_ceiling key key"),
    Case("Together: out of credit", 402, openai("Credit limit exceeded, please navigate to settings to add credits.", None, "credit_limit"), "credit_ceiling key key"),
    Case("Fireworks: a limit", 429, {"error": "Rate limit exceeded, please try again later"}, "rate_limit key pair"),
    Case("Cerebras: high traffic", 429, {"message": "We're experiencing high traffic right now! Please try again soon.", "type": "too_many_requests_error", "param": "queue", "code": "queue_exceeded"}, "overloaded model nothing"),
    Case("Cerebras: tokens of the day", 429, {"message": "Tokens per day limit exceeded - too many tokens processed.", "type": "too_many_tokens_error", "code": "token_quota_exceeded"}, "rate_limit key pair", {"x-ratelimit-remaining-tokens-day": "0", "x-ratelimit-reset-tokens-day": "33011.38"}, 33011.38),
    Case("Perplexity: a limit", 429, openai("Request rate limit exceeded, please try again later", None, "rate_limit_error"), "rate_limit key pair"),
    Case("KoboldCpp: busy", 503, {"detail": {"msg": "Server is busy; please try again later.", "type": "service_unavailable"}}, "overloaded model nothing"),
    Case("llama.cpp: still loading", 503, openai("Loading model", "503", "unavailable_error"), "overloaded model nothing"),
    Case("NovelAI: one at a time", 429, {"statusCode": 429, "message": "Concurrent generation is locked"}, "rate_limit key pair"),
    Case("NovelAI: no subscription", 402, {"statusCode": 402, "message": "Active subscription is required to access this endpoint."}, "credit_ceiling key key"),
    Case("Bedrock: throttled, in words of tokens", 429, {"message": "Too many tokens, please wait before trying again."}, "rate_limit key pair", {"x-amzn-errortype": "ThrottlingException"}),
    Case("LiteLLM: the budget of a key", 400, litellm("Budget has been exceeded! Current cost: 10.2, Max budget: 10.0", "budget_exceeded"), "quota_exhausted key key"),
    Case("LiteLLM: the budget, said as a refused key", 401, litellm("Authentication Error, ExceededBudget: User=x over budget. Spend=3, Budget=2", "auth_error", "401"), "quota_exhausted key key"),
    Case("Vertex: exhausted, and no more said", 429, [google(429, "RESOURCE_EXHAUSTED", "Resource exhausted. Please try again later.")], "rate_limit key pair"),
    Case("LiteLLM: every deployment cools down", 429, litellm("No deployments available for selected model, Try again in 60 seconds. Passed model=m.", "None", "429"), "rate_limit key pair", wait_s=60),
    Case("LiteLLM: a maker's limit as JSON in words", 429, litellm('litellm.RateLimitError: AnthropicException - {"type":"error","error":{"type":"rate_limit_error","message":"Slow down. Try again in ~162 min"}}', "throttling_error", "429"), "rate_limit key pair", wait_s=9720),
    Case("LiteLLM: a maker's quota as a printed dict", 429, litellm("litellm.RateLimitError: OpenAIException - Error code: 429 - {'error': {'message': 'Spent.', 'type': 'insufficient_quota', 'code': 'insufficient_quota'}}"), "quota_exhausted key key"),
    Case("a relay's 500 for a maker's 429", 500, litellm("upstream failed", None, "429"), "rate_limit key pair"),
    Case("Fireworks: suspended over a bill", 412, {"error": "Account a is suspended, possibly due to reaching the monthly spending limit"}, "quota_exhausted key key"),
    Case("a relay: a key's own budget", 403, openai("This API key has exceeded its budget"), "quota_exhausted key key"),
    Case("402 and nothing more", 402, b"", "credit_ceiling key key"),
    Case("403 about billing", 403, openai("Please enable billing for this project."), "credit_ceiling key key"),
    Case("429 and nothing more", 429, b"", "rate_limit key pair", {"retry-after": "Tue, 01 Dec 2026 12:05:00 GMT"}, 300),
    Case("429 page of a gateway", 429, b"<html>Too Many Requests</html>", "rate_limit key pair", {"retry-after": "9"}, 9),
]  # fmt: skip
TOO_LONG = [
    Case("OpenAI: the window", 400, openai("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", "context_length_exceeded"), "context_length request nothing"),
    Case("OpenAI responses: the window", 400, openai("Your input exceeds the context window of this model. Please adjust your input and try again."), "context_length request nothing"),
    Case("OpenAI: one request above the limit of a minute", 429, openai("Request too large for gpt-x on tokens per min (TPM): Limit 30000, Requested 45000.", "rate_limit_exceeded", "tokens"), "context_length request nothing"),
    Case("Anthropic: the prompt", 400, anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), "context_length request nothing"),
    Case("Anthropic: prompt and answer", 400, anthropic("invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"), "context_length request nothing"),
    Case("Anthropic: too many bytes", 413, anthropic("request_too_large", "Request exceeds the maximum size"), "context_length request nothing"),
    Case("Gemini: the window", 400, google(400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."), "context_length request nothing"),
    Case("llama.cpp: the window", 400, {"error": {"code": 400, "message": "the request exceeds the available context size (8192), try increasing it", "type": "exceed_context_size_error", "n_ctx": 8192}}, "context_length request nothing"),
    Case("llama.cpp, older: the window, as 500", 500, {"error": {"code": 500, "message": "the request exceeds the available context size. try increasing the context size or enable context shift", "type": "server_error"}}, "context_length request nothing"),
    Case("a local template: the question fell out of the window", 500, openai("no user query found in messages"), "context_length request nothing"),
    Case("vLLM: the window", 400, {"object": "error", "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens", "type": "BadRequestError", "param": None, "code": 400}, "context_length request nothing"),
    Case("Ollama: the window", 400, {"error": "the input length exceeds the context length"}, "context_length request nothing"),
    Case("LM Studio: the window", 400, {"error": "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens"}, "context_length request nothing"),
    Case("Mistral: the window", 400, mistral("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", "invalid_request_prompt", "3051"), "context_length request nothing"),
    Case("Groq: the window", 400, openai("Please reduce the length of the messages or completion.", "context_length_exceeded"), "context_length request nothing"),
    Case("Groq: above the limit of a minute", 413, openai("Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again.", "rate_limit_exceeded", "tokens"), "context_length request nothing"),
    Case("DeepSeek: the window", 400, openai("This model's maximum context length is 131072 tokens. However, you requested 140000 tokens", "invalid_request_error", "invalid_request_error"), "context_length request nothing"),
    Case("Bedrock: the window", 400, {"message": "Input is too long for requested model."}, "context_length request nothing", {"x-amzn-errortype": "ValidationException"}),
    Case("xAI: the window", 400, {"code": "Client specified an invalid argument", "error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens."}, "context_length request nothing"),
    Case("Moonshot: the window", 400, openai("Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)", None, "invalid_request_error"), "context_length request nothing"),
    Case("Z.ai: the window", 400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}, "context_length request nothing"),
    Case("Alibaba: the window", 400, openai("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", "invalid_parameter_error"), "context_length request nothing"),
    Case("Together: the window", 422, openai("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000", None, "invalid_request_error"), "context_length request nothing"),
    Case("Fireworks: the window", 400, {"error": {"object": "error", "type": "invalid_request_error", "message": "The prompt is too long: 140000, model maximum context length: 131071"}}, "context_length request nothing"),
    Case("Cerebras: the window", 400, {"message": "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192", "type": "invalid_request_error", "code": "context_length_exceeded"}, "context_length request nothing"),
    Case("OpenRouter: the window", 400, openrouter(400, "Provider returned error", '{"error":{"message":"This endpoint\'s maximum context length is 8192 tokens","code":400}}'), "context_length request nothing"),
    Case("LiteLLM: the window", 400, litellm("litellm.ContextWindowExceededError: too much"), "context_length request nothing"),
    Case("Copilot: the window", 400, openai("prompt token count of 140000 exceeds the limit of 128000"), "context_length request nothing"),
    Case("SGLang: the window", 400, {"object": "error", "message": "The input (9000 tokens) is longer than the model's context length (8192 tokens).", "code": 400}, "context_length request nothing"),
    Case("413 and nothing more", 413, b"", "context_length request nothing"),
    Case("413 page of a gateway", 413, b"<html>413 Request Entity Too Large</html>", "context_length request nothing"),
    Case("an answer budget above the model's is no full window", 400, openai("max_tokens is too large: 100000. This model supports at most 16384 completion tokens", "invalid_value"), "bad_request request nothing"),
    Case("the same at Anthropic", 400, anthropic("invalid_request_error", "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens"), "bad_request request nothing"),
]  # fmt: skip
REFUSED = [
    Case("OpenAI: flagged", 400, openai("Your request was rejected as a result of our safety system.", "content_policy_violation"), "content_blocked request nothing"),
    Case("OpenAI: a flagged prompt", 400, openai("Invalid prompt: your prompt was flagged as potentially violating our usage policy.", "invalid_prompt"), "content_blocked request nothing"),
    Case("Azure: the filter", 400, {"error": {"code": "content_filter", "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", "status": 400, "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, "content_blocked request nothing"),
    Case("OpenRouter: moderated", 403, openrouter(403, "maker/model requires moderation on Maker. Your input was flagged for \"violence\".", reasons=["violence"], flagged_input="..."), "content_blocked request nothing"),
    Case("DeepSeek: content risk", 400, openai("Content Exists Risk", "invalid_request_error"), "content_blocked request nothing"),
    Case("Alibaba: inspected", 400, {"code": "DataInspectionFailed", "message": "Input data may contain inappropriate content."}, "content_blocked request nothing"),
    Case("xAI: guidelines", 403, {"code": "The caller does not have permission", "error": "Content violates usage guidelines."}, "content_blocked request nothing"),
    Case("Z.ai: unsafe", 400, {"error": {"code": "1301", "message": "System detected potentially unsafe or sensitive content in input or generation."}}, "content_blocked request nothing"),
    Case("OpenAI: the region", 403, {"error": {"code": "unsupported_country_region_territory", "message": "Country, region, or territory not supported", "type": "request_forbidden"}}, "permission network provider"),
    Case("Gemini: the region", 400, google(400, "FAILED_PRECONDITION", "User location is not supported for the API use."), "permission network provider"),
    Case("OpenRouter: a maker's region leaves the other makers", 403, openrouter(403, "Provider returned error", '{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported"}}'), "permission model pair"),
    Case("a model that is not offered here", 403, openai("This model is not available in your region."), "permission model pair"),
    Case("Anthropic: prefill", 400, anthropic("invalid_request_error", "This model does not support assistant message prefill. The conversation must end with a user message."), "bad_request request nothing prefill"),
    Case("Anthropic: blanks after a prefill", 400, anthropic("invalid_request_error", "messages: final assistant content cannot end with trailing whitespace"), "bad_request request nothing prefill"),
    Case("Mistral: prefill", 400, mistral("Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant", "invalid_request_message_order", "3230"), "bad_request request nothing prefill"),
    Case("llama.cpp: prefill and thinking", 400, openai("Assistant response prefill is incompatible with enable_thinking."), "bad_request request nothing prefill"),
    Case("Gemini: prefill", 400, google(400, "INVALID_ARGUMENT", "Please ensure that multiturn requests ends with a user role or a function response."), "bad_request request nothing prefill"),
    Case("Perplexity: prefill", 400, openai("Last message must have role `user`.", None, "invalid_message"), "bad_request request nothing prefill"),
    Case("Anthropic: a broken picture", 400, anthropic("invalid_request_error", "Could not process image"), "bad_request request nothing picture"),
    Case("Anthropic: a large picture", 400, anthropic("invalid_request_error", "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 8123456 bytes > 5242880 bytes"), "bad_request request nothing picture"),
    Case("OpenAI: no picture", 400, openai("Invalid image data.", "invalid_image"), "bad_request request nothing picture"),
    Case("OpenAI: a format", 400, openai("You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png']", "image_parse_error"), "bad_request request nothing picture"),
    Case("Gemini: no picture", 400, google(400, "INVALID_ARGUMENT", "Unable to process input image. Please retry or report."), "bad_request request nothing picture"),
    Case("OpenRouter: no endpoint sees", 404, {"error": {"message": "No endpoints found that support image input", "code": 404}}, "bad_request request nothing picture"),
    Case("llama.cpp: the model does not see", 500, openai("image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", "500", "server_error"), "bad_request request nothing picture"),
    Case("LM Studio: the model does not see", 400, {"error": "Model does not support images. Please use a model that does."}, "bad_request request nothing picture"),
    Case("vLLM: too many pictures", 400, {"object": "error", "message": "At most 1 image(s) may be provided in one request.", "code": 400}, "bad_request request nothing picture"),
    Case("DeepSeek: pictures are unknown to it", 400, openai("unknown variant `image_url`, expected `text`", "invalid_request_error"), "bad_request request nothing picture"),
    Case("OpenAI: a model that does not see", 400, openai("Invalid content type. image_url is only supported by certain models.", "invalid_value"), "bad_request request nothing picture"),
    Case("Gemini: a model that does not see", 400, google(400, "INVALID_ARGUMENT", "Image input modality is not enabled for models/m"), "bad_request request nothing picture"),
    Case("a value that is the word image is no picture", 400, openai("Invalid value: 'image'. Supported values are: 'text'", "invalid_value"), "bad_request request nothing"),
    Case("a limit on pictures a minute is a limit", 429, openai("Rate limit reached for images per min.", "rate_limit_exceeded"), "rate_limit key pair"),
    Case("Groq: the model wrote a wrong call", 400, openai("Failed to call a function. Please adjust your prompt.", "tool_use_failed", "invalid_request_error"), "server model nothing"),
    Case("FastAPI: a missing field", 422, {"detail": [{"loc": ["body", "messages", 0], "msg": "field required", "type": "value_error.missing"}]}, "bad_request request nothing"),
    Case("vLLM: a printed complaint that quotes the conversation", 400, mistral("[{'type': 'missing', 'loc': ('body',), 'msg': 'Field required', 'input': {'messages': 'my api key is expired, context length too'}}]", "Bad Request"), "bad_request request nothing"),
    Case("a message that only quotes JSON", 400, openai('Cannot read {"code": 7, "limit": true} as a schema'), "bad_request request nothing"),
    Case("Mistral: a field it does not take", 422, mistral("Extra inputs are not permitted", "invalid_request_error"), "bad_request request nothing"),
    Case("Ollama: no tools", 400, {"error": "registry.ollama.ai/library/m does not support tools"}, "bad_request request nothing"),
    Case("OpenAI: a parameter under another name", 400, openai("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "unsupported_parameter"), "bad_request request nothing"),
    Case("OpenAI: a call without its result", 400, openai("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."), "bad_request request nothing"),
    Case("Anthropic: roles in a row are no prefill", 400, anthropic("invalid_request_error", 'messages: roles must alternate between "user" and "assistant", but found multiple "user" roles in a row'), "bad_request request nothing"),
    Case("Mistral: the order of roles is no prefill", 400, mistral("Unexpected role 'user' after role 'tool'", "invalid_request_message_order", "3230"), "bad_request request nothing"),
    Case("OpenAI: an item that it does not keep is no model", 404, openai("Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."), "bad_request request nothing"),
    Case("OpenAI: a wrong value", 400, openai("Invalid 'messages[3]'", "invalid_value"), "bad_request request nothing"),
    Case("405 on a wrong path", 405, b"", "bad_request request nothing"),
    Case("405 with a page", 405, b"<html>Method Not Allowed</html>", "bad_request request nothing"),
    Case("418, and bytes that are no text", 418, b"\xff\xfe", "bad_request request nothing"),
]  # fmt: skip
MODELS = [
    Case("OpenAI: unknown model", 404, openai("The model `nope` does not exist or you do not have access to it.", "model_not_found"), "model_unavailable model pair"),
    Case("Azure: unknown deployment", 404, {"error": {"code": "DeploymentNotFound", "message": "The API deployment for this resource does not exist."}}, "model_unavailable model pair"),
    Case("Anthropic: unknown model", 404, anthropic("not_found_error", "model: claude-nope"), "model_unavailable model pair"),
    Case("OpenRouter: unknown model", 400, {"error": {"message": "nope/nope is not a valid model ID", "code": 400}}, "model_unavailable model pair"),
    Case("Mistral: unknown model", 400, mistral("Invalid model: nope", "invalid_model", "1500"), "model_unavailable model pair"),
    Case("DeepSeek: unknown model", 400, openai("Model Not Exist", "invalid_request_error", "invalid_request_error"), "model_unavailable model pair"),
    Case("xAI: unknown model", 404, {"code": "Some requested entity was not found", "error": "The model nope does not exist or your team t does not have access to it."}, "model_unavailable model pair"),
    Case("Moonshot: unknown model", 404, openai("Not found the model nope or Permission denied", None, "resource_not_found_error"), "model_unavailable model pair"),
    Case("Z.ai: unknown model", 400, {"error": {"code": "1211", "message": "Unknown Model, please check the model code."}}, "model_unavailable model pair"),
    Case("Groq: a model that is gone", 400, openai("The model `old` has been decommissioned and is no longer supported.", "model_decommissioned"), "model_unavailable model pair"),
    Case("Fireworks: unknown model", 404, {"error": {"message": "Model not found, inaccessible, and/or not deployed", "code": "NOT_FOUND"}}, "model_unavailable model pair"),
    Case("Perplexity: unknown model", 400, openai("Invalid model 'nope'. Permitted models can be found in the documentation.", None, "invalid_model"), "model_unavailable model pair"),
    Case("Ollama: unknown model", 404, {"error": "model 'nope' not found"}, "model_unavailable model pair"),
    Case("vLLM: unknown model", 404, {"object": "error", "message": "The model `nope` does not exist.", "type": "NotFoundError", "param": None, "code": 404}, "model_unavailable model pair"),
    Case("LM Studio: nothing is loaded", 404, openai("No models loaded. Please load a model in the developer page.", "model_not_found"), "model_unavailable model pair"),
    Case("Bedrock: only by a profile", 400, {"message": "Invocation of model ID m with on-demand throughput isn\u2019t supported."}, "model_unavailable model pair"),
    Case("LiteLLM: unknown model", 400, litellm("/chat/completions: Invalid model name passed in model=nope."), "model_unavailable model pair"),
    Case("404 and nothing more", 404, b"", "model_unavailable model pair"),
    Case("OpenAI: a model that the project may not use", 403, openai("Project `p` does not have access to model `gpt-x`", "model_not_found", "invalid_request_error"), "permission model pair"),
    Case("a model that is not open to the project", 403, openai("Model not available to your project"), "permission model pair"),
    Case("Bedrock: a model that was not asked for", 403, {"message": "You don\u2019t have access\nto the model with the specified model ID."}, "permission model pair", {"x-amzn-errortype": "AccessDeniedException"}),
    Case("LiteLLM: a model that the key may not use", 401, litellm("key not allowed to access model. This key can only access models=['a']. Tried to access b", "key_model_access_denied", "401"), "permission model pair"),
    Case("Groq: terms to accept", 400, openai("The model `m` requires terms acceptance.", "model_terms_required"), "permission model pair"),
    Case("OpenAI: a wrong path", 404, openai("Invalid URL (POST /v1/chat/completion)", None, "invalid_request_error"), "bad_request request nothing"),
    Case("FastAPI: a wrong path", 404, {"detail": "Not Found"}, "bad_request request nothing"),
    Case("Ollama: a wrong path", 404, b"404 page not found", "bad_request request nothing"),
    Case("llama.cpp: a wrong path", 404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}, "bad_request request nothing"),
    Case("404 page: no API there", 404, b"<html>not found</html>", "protocol network nothing"),
    Case("a redirect", 302, b"", "protocol network nothing"),
]  # fmt: skip
SERVERS = [
    Case("a bot challenge by its header", 403, b"<html>x</html>", "network network nothing", {"cf-mitigated": "challenge"}),
    Case("a bot challenge by its page", 403, b"<title>Just a moment...</title>", "network network nothing"),
    Case("a block page", 403, b"<!DOCTYPE html><title>Attention Required! | Cloudflare</title>", "network network nothing"),
    Case("a challenge that calls itself 503", 503, b"<html><script src=/cdn-cgi/challenge-platform/x></script>", "network network nothing"),
    Case("a firewall's bare code", 403, b"error code: 1020", "network network nothing"),
    Case("Cloudflare's own limit is a limit", 429, b"error code: 1015", "rate_limit key pair"),
    Case("403 page of anything", 403, b"<html>403 Forbidden</html>", "network network nothing"),
    Case("OpenAI: its own error", 500, openai("The server had an error while processing your request.", None, "server_error"), "server model nothing"),
    Case("Anthropic: its own error", 500, anthropic("api_error", "Internal server error"), "server model nothing"),
    Case("Gemini: too slow", 504, google(504, "DEADLINE_EXCEEDED", "The request timed out."), "timeout model nothing"),
    Case("OpenRouter: a maker's error", 502, openrouter(502, "Provider returned error", "boom"), "server model nothing"),
    Case("Ollama: not enough memory", 500, {"error": "model requires more system memory (9.1 GiB) than is available (7.5 GiB)"}, "server model nothing"),
    Case("a gateway's page", 502, b"<html>Bad gateway</html>", "server model nothing"),
    Case("a page of a server at work", 503, b"<html>Service Unavailable</html>", "overloaded model nothing", {"retry-after": "120"}, 120),
    Case("a gateway's patience", 524, b"<html>A timeout occurred</html>", "timeout model nothing"),
    Case("500 and nothing more", 500, b"", "server model nothing"),
    Case("503 and null", 503, None, "overloaded model nothing"),
    Case("JSON that calls itself a page", 401, openai("Incorrect API key provided", "invalid_api_key"), "auth key key", {"content-type": "text/html"}),
]  # fmt: skip


@pytest.mark.parametrize("case", [*KEYS, *LIMITS, *TOO_LONG, *REFUSED, *MODELS, *SERVERS], ids=str)
def test_an_error_answer_says_its_class_whose_fault_it_is_and_what_rests(case: Case) -> None:
    """S12.4, S3.3a, S3.3b"""
    fault = classify(case.status, case.body, case.headers)
    assert short(fault) == case.means, fault.said
    assert fault.status == case.status
    assert fault.retry_after_s == (pytest.approx(case.wait_s) if case.wait_s is not None else None)
    assert fault.said
    assert fault.advice


STREAMED = [
    ("Anthropic: overloaded", {"type": "overloaded_error", "message": "Overloaded"}, "overloaded model nothing"),
    ("Anthropic: the whole event", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded model nothing"),
    ("Anthropic: its own", {"type": "api_error", "message": "Internal server error"}, "server model nothing"),
    ("Responses: failed on its side", {"code": "server_error", "message": "The model failed."}, "server model nothing"),
    ("Responses: a limit", {"code": "rate_limit_exceeded", "message": "Rate limit reached. Please try again in 1.5s."}, "rate_limit key pair"),
    ("Responses: the window", {"code": "context_length_exceeded", "message": "Too long."}, "context_length request nothing"),
    ("Responses: the quota, as an event", {"type": "error", "error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "Spent."}}, "quota_exhausted key key"),
    ("Responses: the whole event", {"type": "response.failed", "response": {"status": "failed", "error": {"code": "invalid_prompt", "message": "Your prompt was flagged."}}}, "content_blocked request nothing"),
    ("Gemini: unavailable", {"code": 503, "status": "UNAVAILABLE", "message": "The model is overloaded."}, "overloaded model nothing"),
    ("Gemini: a limit", {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota, check billing."}, "rate_limit key pair"),
    ("OpenRouter: a maker is gone", {"code": 502, "message": "Provider disconnected", "metadata": {"error_type": "provider_unavailable"}}, "server model nothing"),
    ("OpenRouter: a maker is overloaded", {"code": 502, "message": "Provider returned error", "metadata": {"error_type": "provider_overloaded"}}, "overloaded model nothing"),
    ("OpenRouter: the window", {"code": 400, "message": "Token limit reached"}, "context_length request nothing"),
    ("Groq: a wrong call", {"message": "Tool call validation failed", "type": "invalid_request_error", "code": "tool_use_failed", "status_code": 400}, "server model nothing"),
    ("LM Studio: a wrong path", {"error": "Unexpected endpoint or method. (POST /v1/chat/completion)"}, "bad_request request nothing"),
    ("a text", "upstream connect error", "server model nothing"),
    ("a request that it does not take", {"type": "invalid_request_error", "message": "messages: bad"}, "bad_request request nothing"),
    ("words that are only telling with a status", {"message": "missing key 'choices' of the project"}, "server model nothing"),
    ("nothing", None, "server model nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "means"), [row[1:] for row in STREAMED], ids=[row[0] for row in STREAMED])
def test_an_error_inside_a_stream_means_what_it_means_as_an_answer(error: Any, means: str) -> None:
    fault = fault_in_stream(error)
    assert short(fault) == means, fault


def test_an_error_inside_a_stream_names_its_time() -> None:
    assert fault_in_stream({"code": "rate_limit_exceeded", "message": "Please try again in 1.5s."}).retry_after_s == 1.5
    limit = {"type": "usage_limit_reached", "resets_at": NOW + 60}
    assert fault_in_stream(limit, now=NOW).retry_after_s == 60
    assert fault_in_stream(limit).retry_after_s is None


def recorded() -> list[dict[str, Any]]:
    return [] if STREAMS is None else json.loads((STREAMS / "errors" / "recorded.json").read_text("utf-8"))


RECORDED = {
    404: "model_unavailable model pair",
    429: "rate_limit key pair",
    "not supported. Supported models": "model_unavailable model pair",
    "gpt-5.2-proo": "model_unavailable model pair",
    "model identifier is invalid": "model_unavailable model pair",
    "tool_use_failed": "server model nothing",
    400: "bad_request request nothing",
}
"""What each recorded error means: by words in it, else by its status."""


@pytest.mark.skipif(STREAMS is None, reason="the recorded errors are not beside this checkout")
@pytest.mark.parametrize("one", recorded(), ids=lambda one: f"{one['provider']} {one['status']} {one['source'][-50:]}")
def test_a_recorded_error_is_classified_and_quoted(one: dict[str, Any]) -> None:
    text = json.dumps(one["body"])
    expected = next(
        (RECORDED[words] for words in RECORDED if isinstance(words, str) and words in text), RECORDED[one["status"]]
    )
    fault = classify(one["status"], one["body"], one["headers"])
    assert short(fault) == expected, fault.said
    message = one["body"].get("message") or one["body"].get("detail") or one["body"]["error"]["message"]
    assert fault.said.startswith(message[:50])


def test_what_the_server_said_is_one_short_line_without_secrets() -> None:
    key = "sk-proj-0123456789abcdef0123456789abcdef"
    said = classify(401, openai(f"Wrong\n  key:\x1b[1m {key}\u2028" + "and so on " * 90, "invalid_api_key")).said
    assert said.startswith("Wrong key: [1m [redacted] and so on")
    assert len(said) <= 300
    for at in range(250, 310):  # a key at the place of the cut leaves no part behind
        assert "0123" not in classify(401, openai("x" * at + " " + key)).said
    assert "hunter2hunter2" not in classify(502, b"<html>GET /?api_key=hunter2hunter2</html>").said


def test_what_a_body_says_is_read_in_every_form() -> None:
    body = {
        "detail": [{"loc": ["body", "messages", 0], "msg": "field required"}, {"loc": ["body", "model"], "msg": "too short"}]
    }
    assert classify(422, body).said == "body.messages.0: field required: body.model: too short"
    inner = json.dumps({"error": {"message": json.dumps({"error": {"message": "deep", "code": "overloaded"}})}})
    found = classify(500, {"error": {"message": "litellm.APIError: " + inner}})
    assert (found.said, found.kind) == ("litellm.APIError: deep", "overloaded")
    printed = litellm("""VertexAIException - b'{\\n  "error": {\\n    "code": 429,\\n    "message": "Slow"}}'""")
    assert classify(500, printed).kind == "rate_limit"
    assert classify(500, b'event: error\ndata: {"error": {"type": "overloaded_error", "message": "Full"}}').kind == "overloaded"
    assert classify(405, b"").said == "the answer was empty"
    assert classify(401, b"<html><style>a{}</style><h1>Please &</h1> log in</html>").said.endswith(
        "did not answer: Please & log in"
    )


def test_the_place_is_shown_without_its_query() -> None:
    """S12.4: a 405 on a wrong path shows the URL, and the query may hold a key."""
    fault = fault_of_answer(405, {}, b"", where="h.example/v1/chat?key=hunter2")
    assert fault.where == "h.example/v1/chat"
    assert "h.example/v1/chat (HTTP 405)" in str(fault)


def test_advice_fits_what_has_to_change() -> None:
    """S3.6: money where money is missing, another model where the key may not use this one, and so on."""
    assert "credit" in classify(429, openai("", "insufficient_quota")).advice
    assert "not the key" in classify(401, b"<html></html>").advice
    assert "place" in classify(403, openai("", "unsupported_country_region_territory")).advice
    assert "enabled" in classify(403, openai("Project `p` does not have access to model `m`")).advice
    assert "picture" in classify(400, openai("Could not process image")).advice


def test_a_fault_of_an_older_record_is_still_read() -> None:
    old = b'{"type":"Fault","kind":"server","blame":"model","said":"","where":"","status":null,"retry_after_s":null}'
    assert msgspec.json.decode(old, type=Fault) == Fault("server", "model")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(["error", "message", "code", "status", "type", "detail", "metadata", "raw", "retry_after", "resets_at", "loc", "msg"]) | st.text(), inner, max_size=5),
    max_leaves=12,
)  # fmt: skip
HEADERS = st.dictionaries(
    st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-remaining", "content-type", "x-amzn-errortype"]),
    st.text() | st.integers().map(str) | st.floats().map(str),
)  # fmt: skip


def check(fault: Fault) -> None:
    assert len(fault.said) <= 300
    assert len(fault.said.splitlines()) <= 1
    assert fault.retry_after_s is None or 0 <= fault.retry_after_s <= 366 * 86400
    assert msgspec.json.decode(msgspec.json.encode(fault), type=Fault) == fault


@given(st.integers(300, 599), HEADERS, JSON)
def test_no_json_makes_it_fail(status: int, headers: dict[str, str], value: Any) -> None:
    check(classify(status, value, headers))
    check(fault_in_stream(value, now=NOW))
    check(classify(status, {"error": {"message": json.dumps(value)}}, headers))


@given(st.integers(300, 599), HEADERS, st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_make_it_fail(status: int, headers: dict[str, str], body: bytes) -> None:
    check(classify(status, body, headers))


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 60000,
        b'{"error":' * 6000,
        b'{"message":"' + b"[{" * 30000,
        b'{"a":1' + b"0" * 9000 + b"}",
        b"<" * 65536,
        b"try again in " * 5000,
        b"model x " * 8000,
    ],
)
def test_a_hostile_body_is_read_in_no_time(body: bytes) -> None:
    before = time.perf_counter()
    check(classify(500, body))
    check(fault_in_stream(body.decode()))
    assert time.perf_counter() - before < 1


async def failure(url: str) -> str:
    transport = Transport(connect_timeout_s=2)
    try:
        with pytest.raises(ProviderError) as caught:
            await transport.open(HttpRequest(url, {"Authorization": "Bearer sk-secret-0123456789"}, b"{}"))
        assert caught.value.fault.kind == "network"
        assert "secret" not in str(caught.value)
        return str(caught.value)
    finally:
        await transport.aclose()


async def test_connections_that_fail_are_one_sentence_each(bench: Bench) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    assert "connection refused" in await failure(f"http://127.0.0.1:{port}/v1?key=sk-secret-0123456789")
    assert "TLS failed" in await failure(bench.provider.base_url.replace("http:", "https:") + "/chat/completions")
    assert "host name was not found" in await failure("http://no-such-host.invalid/v1")


async def test_what_is_no_answer_of_this_family_is_a_protocol_error_with_a_quote(bench: Bench) -> None:
    bench.provider.play(
        raw(b"<html><body>Please log in</body></html>") + framing(content_type="text/html"),
        fail(302, headers={"Location": "https://elsewhere.example/"}, body=""),
    )
    engine = bench.engine()
    result = await engine.run("go")
    assert result.fault is not None
    assert (result.fault.kind, "Please log in" in result.fault.said) == ("protocol", True)
    result = await engine.run("go")
    assert result.fault is not None
    assert result.fault.status == 302


@pytest.mark.parametrize(
    "how", [{"gzip": True}, {"brotli": True}, {"content_type": ""}, {"crlf": True}, {"bom": True}, {"chunk_bytes": 1}]
)
async def test_an_answer_may_be_packed_cut_and_typed_in_any_way(how: dict[str, Any], bench: Bench) -> None:
    bench.provider.play(say("The tide comes in.") + framing(**how))
    assert (await bench.engine().run("go")).text == "The tide comes in."


async def test_a_wrong_key_is_said_with_advice_and_without_the_key(bench: Bench) -> None:
    bench.provider.play(fail(401, message="Incorrect API key provided: sk-wrong-0123456789abcdef.", code="invalid_api_key"))
    model = Model("openai-chat", "gpt-x", base_url=bench.provider.base_url, keys=["sk-wrong-0123456789abcdef"])
    result = await bench.engine(models=[model]).run("go")
    assert "The key was refused" in result.notices[0].detail
    assert "Check the key" in result.notices[0].detail
    assert "0123456789" not in result.notices[0].detail + str(await bench.events(result))

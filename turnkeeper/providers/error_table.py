# The table of refusals, for all families: readable rows, and nothing that decides.
#
# Read from the top: the first row that fits counts. A row fits by a code in the body, or by words where the status is one
# at which those words mean that. The order is the meaning: what no patience, key or model mends (a refused prefill, a
# flagged text, a full window) stands before what the same servers say with the same status. Where no row fits, a vague
# code counts, then the status.
# A new wording is a few words in a row here and a row in test_classify.py.

"""What refusals look like, and what each means (S12.4, S3.3a, S3.3b)."""

from __future__ import annotations

import re

from msgspec import Struct

from turnkeeper.types.faults import Blame, ErrorKind, Rests


class Meaning(Struct, frozen=True):
    """What a refusal means. `blame` and `rests`: None for those that the kind usually has."""

    kind: ErrorKind
    blame: Blame | None = None
    rests: Rests | None = None
    picture: bool = False
    prefill: bool = False


class Row(Struct, frozen=True):
    """A row of the table.

    codes: it fits by any of them. words: it also fits by these, where the status is one of `at`.
    unplaced: the words also count where no status is known, as inside a stream.
    """

    meaning: Meaning
    codes: frozenset[str] = frozenset()
    words: re.Pattern[str] | None = None
    at: frozenset[int] = frozenset()
    unplaced: bool = True


def _row(meaning: Meaning, *, codes: str = "", words: str = "", at: str = "", unplaced: bool = True) -> Row:
    """A row as it is written below: codes and statuses with blanks between them, words one pattern a line."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    pattern = re.compile("|".join(lines), re.IGNORECASE) if lines else None
    return Row(meaning, frozenset(codes.split()), pattern, frozenset(int(status) for status in at.split()), unplaced)


TABLE: tuple[Row, ...] = (
    # Alibaba words its limit a minute as OpenAI words a spent account; Bedrock's throttling speaks of too many tokens.
    _row(
        Meaning("rate_limit"),
        codes="throttlingexception throttling throttling.ratequota throttling.allocationquota throttling.burstrate"
        " throttling_error",
        words=r"error-code#token-limit|allocated quota exceeded",
        at="429",
    ),
    _row(
        Meaning("bad_request", prefill=True),
        words=r"""
            assistant (?:message |response )?prefill
            prefill(?:ing)? .{0,30}(?:not supported|unsupported|incompatible)
            ends? with a user (?:message|role|turn)
            expected last role
            last (?:message|role|turn)\b.{0,60}\buser\b
            final assistant content .{0,40}whitespace
            assistant messages? at the end of the list
            continue_final_message
        """,
        at="400 403 404 422 500",
    ),
    _row(
        Meaning("content_blocked"),
        codes="content_policy_violation content_policy_violation_error content_filter responsibleaipolicyviolation"
        " image_content_policy_violation data_inspection_failed datainspectionfailed moderation_blocked"
        " prohibited_content sensitive_content",
        words=r"""
            content (?:policy|filter|management|exists risk)
            \b(?:was|were|been|is) flagged
            flagged (?:as|by|for)
            \bmoderation\b
            safety (?:system|filter|check|setting|polic)
            usage (?:polic|guideline)
            (?:inappropriate|sensitive|prohibited|unsafe) (?:or \w+ )?content
            敏感内容|不安全
        """,
        at="400 403 422 451 500",
    ),
    _row(  # a relay's model that a maker does not offer here: the relay's other models go on
        Meaning("permission", "model", "pair"),
        words=r"\bmodel\b.{0,80} (?:not (?:available|supported)|unavailable) in your (?:country|region|location)",
        at="400 403 404 451",
    ),
    _row(
        Meaning("permission", "network", "provider"),
        codes="unsupported_country_region_territory unsupported_region",
        words=r"""
            user location is not supported
            country, region,? or territory
            (?:not (?:available|supported)|unavailable) in your (?:country|region|location)
            unsupported (?:countr|region|location)
        """,
        at="400 403 451",
    ),
    _row(
        Meaning("bad_request", picture=True),
        codes="invalid_image invalid_image_format invalid_image_url invalid_base64_image image_parse_error image_too_large"
        " image_too_small image_file_too_large unsupported_image_media_type empty_image_file failed_to_download_image",
        words=r"""
            (?:invalid|corrupt(?:ed)?|unsupported|bad|malformed) (?:base64 |input )?image\b
            (?:process|decode|load|download|fetch|identify|parse|read|open) (?:the |this |your )?(?:input |base64 )?image
            \bimages?\b(?: \S+){0,8}? (?:exceeds?|too (?:large|small|big|many)|corrupt)
            \bimages?\b(?: \S+){0,8}? (?:is|are|was|were) not (?:a )?(?:valid|supported)
            \bimages?\b(?: \S+){0,4}? (?:could not|cannot|can't|unable|dimensions|not supported)
            (?:support|process|accept)s? (?:image|vision|picture)
            too many images|at most \d+ images?\b
            image_url.{0,3} (?:is )?(?:only|not) supported
            unknown variant .?image
            image (?:input )?modality
            mmproj
        """,
        at="400 404 413 415 422 500 501",
    ),
    _row(  # Groq and OpenAI: one request above the limit of a minute will never fit, however long one waits
        Meaning("context_length"),
        words=r"request too large for",
        at="400 413 429",
    ),
    _row(
        Meaning("context_length"),
        codes="context_length_exceeded exceed_context_size_error request_too_large string_above_max_length"
        " context_window_exceeded model_context_window_exceeded contextwindowexceedederror prompt_too_long"
        " model_max_prompt_tokens_exceeded tokens_limit_reached",
        words=r"""
            context[ _-]?(?:length|window|size|limit)
            maximum (?:context|prompt length|input length|number of (?:input )?tokens)
            (?:prompt|input|conversation|messages?|request)(?: is| are)? too (?:long|large)
            too many (?:input |total )?(?:tokens|text bytes)
            (?:exceeds?|exceeded) .{0,40}(?:token limit|max length|maximum length|context)
            (?:token limit|limit of tokens) (?:reached|exceeded)
            model token limit
            reduce (?:the length|your (?:prompt|message|input))
            no user query found
            token count .{0,40}exceed
            exceeds? .{0,30}\d tokens
            range of input length
            `?inputs`? tokens \+ `?max_new_tokens
        """,
        at="400 413 422 500",
    ),
    _row(  # the model wrote a call that the server would not pass on: another try, or model, may write a better one
        Meaning("server"),
        codes="tool_use_failed output_parse_failed",
        words=r"tool call validation failed|failed to call a function",
        at="400",
    ),
    _row(
        Meaning("permission", "model", "pair"),
        codes="key_model_access_denied team_model_access_denied model_access_denied model.accessdenied"
        " model_permission_blocked_project model_permission_blocked_org model_terms_required accessdenied.unpurchased",
        words=r"""
            \bmodel\b.{0,80}(?:not (?:available|open|enabled|allowed)|blocked) .{0,30}(?:project|key|team|account|plan|tier)
            \bmodel\b.{0,80}(?:not (?:available|open|enabled|allowed)|blocked) .{0,30}organi[sz]ation
            (?:not|n't) (?:\w+ ){0,3}access(?: to)?(?: \w+){0,3} model
            not allowed to access model
            access (?:to the model is )?denied .{0,40}model
            must be verified to use the model
            accept(?:ance of)? the (?:model's )?terms
            non-serverless model
        """,
        at="400 401 403",
    ),
    _row(
        Meaning("credit_ceiling"),
        codes="billing_hard_limit_reached billing_error billing_not_active insufficient_credits insufficient_balance arrearage"
        " payment_required insufficient_funds 1113",
        words=r"""
            credit balance
            insufficient (?:\w+ )?(?:credit|balance|fund)
            (?:out of|more|used all available|prepayment|add|purchase|no) credits?\b(?! to unlock)
            (?:balance|credits?) (?:is |are )?(?:too low|depleted|exhausted|not enough|used up)
            can only afford
            payment (?:is )?required
            prompt tokens limit exceeded
            billing (?:is |account )?(?:not active|inactive|disabled|hard limit)
            enable billing
            please recharge
            余额不足|欠费|充值
        """,
        at="400 401 402 403 412 429",
    ),
    # Gemini speaks of plan and billing at a limit a minute too, and of a quota for the day that is one model's.
    _row(Meaning("rate_limit"), codes="resource_exhausted", words=r"quota exceeded for (?:quota )?metric", at="429"),
    _row(
        Meaning("quota_exhausted"),
        codes="insufficient_quota usage_limit_reached usage_limit_exceeded usage_not_included quota_exceeded budget_exceeded"
        " exceeded_current_quota_error servicequotaexceededexception quotaexceeded",
        words=r"""
            exceeded (?:your )?current quota
            usage limits?\b
            your account's rate limit
            quota (?:is |has been |was )?(?:exceeded|exhausted|used up|reached)
            (?:out of|exceeded \w+|insufficient) quota
            (?:monthly|weekly|total|key|spending|spend) (?:\w+ )?(?:limit|cap)\b
            budget (?:has been |is )?(?:exceeded|reached)|over budget
            exceeded (?:its|your|the) (?:\w+ )?(?:budget|quota|allowance)
            额度
        """,
        at="400 401 402 403 412 429",
    ),
    _row(
        Meaning("permission", "key", "key"),
        codes="service_disabled permission_error api_key_service_blocked missing_scope iam_permission_denied",
        words=r"insufficient permissions|missing scopes?|credential is only authorized|key does not have permission",
        at="400 401 403",
    ),
    _row(
        Meaning("auth"),
        codes="invalid_api_key invalidapikey incorrect_api_key api_key_invalid expired_api_key authentication_error"
        " invalid_authentication_error authenticationerror auth_error unauthenticated token_expired access_token_expired"
        " account_deactivated unrecognizedclientexception invalidsignatureexception expiredtokenexception"
        " token_not_found_in_db",
        words=r"""
            (?:incorrect|invalid|no|missing|expired|malformed|wrong|unknown) (?:\S+ )?(?:x-)?api[ -]?key
            (?:incorrect|invalid|no|missing|expired|malformed|wrong|unknown) (?:auth\w*|access) (?:key|token|header|credential)
            api[ -]?key (?:\S+ )?(?:not|is|was|has (?:been|expired)|expired|required|missing|disabled)\b
            no auth credentials
            user not found
            invalid bearer
        """,
        at="400 401 403",
    ),
    _row(Meaning("credit_ceiling"), words=r"\bbilling\b|subscription", at="402 403", unplaced=False),
    _row(
        Meaning("overloaded"),
        codes="overloaded_error overloaded server_overloaded engine_overloaded engine_overloaded_error unavailable slow_down"
        " service_unavailable service_unavailable_error unavailable_error service_tier_capacity_exceeded model_overloaded"
        " serviceunavailableexception modelnotreadyexception queue_exceeded server_is_overloaded internal_server_overloaded"
        " provider_overloaded",
        words=r"""
            overloaded
            (?:at|over) capacity
            capacity exceeded
            (?:server|service|model|engine)(?: is)? (?:\w+ )?busy
            high (?:demand|traffic)
            loading model|model is (?:currently )?loading
        """,
        at="429 500 502 503 529",
    ),
    _row(
        Meaning("rate_limit"),
        codes="rate_limit_exceeded rate_limit_error rate_limit_reached_error rate_limited too_many_requests ratelimiterror"
        " too_many_requests_error toomanyrequestsexception ratelimitreached rate_limit",
        words=r"rate[- ]?limit|too many (?:concurrent )?requests|throttl|(?:tokens|requests) per (?:min|day|hour|second)",
        at="402 403 429 500 502 503",
    ),
    _row(  # nothing listens there, or the thing that is not found is no model
        Meaning("bad_request"),
        words=r"""
            invalid url
            ^(?:file |404 page )?not found$
            ^resource not found$
            unexpected endpoint
            unknown (?:request )?(?:url|path|endpoint)
            no (?:route|handler)\b
            ^cannot post
            (?:item|response|file|conversation|container|thread) (?:with )?id\b
        """,
        at="400 404 405",
    ),
    _row(
        Meaning("model_unavailable"),
        codes="model_not_found model_not_available model_decommissioned deploymentnotfound invalid_model model_not_supported"
        " model_not_exist unknown_model unknownmodelerror resourcenotfoundexception model_deprecated",
        words=r"""
            \bmodels?\b[ :/]{1,2}\S{1,120} (?:is |was |does |do )?not (?:found|exist|supported|available)
            \bmodels?\b[ :/]{1,2}\S{1,120} (?:is |was |has been )(?:decommissioned|deprecated|retired|no longer)
            \bmodel (?:is |was |does )?(?:not (?:found|exist|available)|unknown)
            requested model .{0,80}not exist
            (?:no such|unknown|invalid|not found the) model\b
            not a valid model
            model (?:identifier|name|id)\b.{0,80}(?:is )?invalid|invalid model (?:identifier|name|id)
            on-demand throughput isn't supported
            reached the end of its life
            no models? loaded
            no endpoints? found
        """,
        at="400 403 404 422",
    ),
    _row(
        Meaning("permission", "key", "key"),
        words=r"""
            \b(?:api[ -]?)?key\b
            \b(?:project|organi[sz]ation|account|token|credential|scopes?|api)\b
            permission|not authorized|insufficient
        """,
        at="403",
        unplaced=False,
    ),
)
"""The first row that fits counts."""

VAGUE: dict[str, ErrorKind] = {
    "permission_denied": "permission", "access_denied": "permission", "accessdeniedexception": "permission",
    "not_found_error": "model_unavailable", "not_found": "model_unavailable", "notfounderror": "model_unavailable",
    "timeout_error": "timeout", "deadline_exceeded": "timeout", "timeout": "timeout", "modeltimeoutexception": "timeout",
    "invalid_request_error": "bad_request", "invalid_argument": "bad_request", "badrequesterror": "bad_request",
    "validationexception": "bad_request", "invalid_prompt": "bad_request", "failed_precondition": "bad_request",
    "api_error": "server", "server_error": "server", "internal_server_error": "server", "internal": "server",
}  # fmt: skip
"""Codes that count only where no row fits: many servers use them for anything."""
STATUSES: dict[int, ErrorKind] = {
    401: "auth", 402: "credit_ceiling", 403: "permission", 404: "model_unavailable", 407: "auth", 408: "timeout",
    413: "context_length", 425: "overloaded", 429: "rate_limit", 498: "overloaded", 503: "overloaded", 504: "timeout",
    522: "timeout", 524: "timeout", 529: "overloaded",
}  # fmt: skip
"""What a status means by itself; any other is `server` from 500 on, else `bad_request`."""
USUALLY: dict[ErrorKind, tuple[Blame, Rests]] = {
    "auth": ("key", "key"),
    "permission": ("key", "pair"),
    "rate_limit": ("key", "pair"),  # S3.3a: most limits are a model's
    "quota_exhausted": ("key", "key"),
    "credit_ceiling": ("key", "key"),
    "context_length": ("request", "nothing"),
    "content_blocked": ("request", "nothing"),
    "bad_request": ("request", "nothing"),
    "model_unavailable": ("model", "pair"),
    "overloaded": ("model", "nothing"),
    "timeout": ("model", "nothing"),
    "server": ("model", "nothing"),
    "network": ("network", "nothing"),
    "protocol": ("network", "nothing"),
}
"""Who is to blame and what rests, unless a row says otherwise."""

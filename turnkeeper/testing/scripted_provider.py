# The scripted provider: requests in, scripted answers out.
#
# Rule 1: it runs in the loop that entered it, on that loop's clock, so that it works under virtual time too.
# Rule 2: nothing of it outlives the `async with`. Each request is served inside a timeout scope without a limit; leaving
# sets the limit to now, which ends waits and hangs wherever they are, and then waits for the last of them.
# Rule 3: those who wait are told by `_Pulse`, which never awaits. A Condition would have to be acquired in the `finally` of
# a handler that the client's leaving has cancelled, and a second cancel there would leave `idle` waiting for ever.

"""A model provider on loopback that answers by script."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar, Unpack

import msgspec
from aiohttp import web

from turnkeeper.testing.body import Body, give_up
from turnkeeper.testing.framing import Framer
from turnkeeper.testing.openai_chat import OPENAI_CHAT
from turnkeeper.testing.performance import Performance
from turnkeeper.testing.seen import SeenRequest
from turnkeeper.testing.steps import Answer, Cut, Fail
from turnkeeper.testing.strict import RuleOptions, Rules
from turnkeeper.testing.verbs import fail
from turnkeeper.testing.wire import Family, OwnKeys

_LARGEST_REQUEST = 2**30  # bytes
_ByRequest = TypeVar("_ByRequest", bound=Callable[[SeenRequest], Answer | None])


class ScriptedProvider:
    """A real HTTP server on 127.0.0.1, on a free port, for as long as it is entered.

    models: those it has; others are answered 404. strict: requests that a strict server would refuse are answered 400,
    with the problem; else the problems are only noted. keys: those it takes, none for any. rules: see `Rules`.
    """

    def __init__(
        self,
        models: Sequence[str] = ("gpt-x",),
        *,
        strict: bool = True,
        keys: Collection[str] = (),
        family: Family = OPENAI_CHAT,
        **rules: Unpack[RuleOptions],
    ) -> None:
        self.rules = Rules(models=tuple(models), **rules)
        self.strict = strict
        self.keys = frozenset(keys)
        self.requests: list[SeenRequest] = []
        """The requests for answers, in the order in which they had arrived."""
        self.others: list[str] = []
        """The other requests: "GET /v1/models"."""
        self.default: Answer | None = None
        """What requests get for which nothing is scripted; None: a 500 that says so, counted in `unscripted`."""
        self.unscripted = 0
        self._family = family
        self._script: deque[Answer] = deque()
        self._choose: Callable[[SeenRequest], Answer | None] | None = None
        self._failures: list[Exception] = []
        self._ids = 0
        self._scopes: set[asyncio.Timeout] = set()
        self._changed = _Pulse()
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def base_url(self) -> str:
        """The base URL for clients. RuntimeError when it does not run."""
        if self._runner is None:
            raise RuntimeError("the scripted provider does not run: use `async with ScriptedProvider() as provider`")
        return f"http://127.0.0.1:{self._port}{self._family.root}"

    def play(self, *answers: Answer) -> None:
        """Adds answers to the script: one a request, in order. Requests that are refused take none."""
        self._script.extend(answers)

    def by_request(self, choose: _ByRequest) -> _ByRequest:
        """Asks `choose` for an answer when the script is empty; where it gives None, `default` follows.

        Returns it, so that it may decorate. What it raises is answered 500, and raised when the provider is left.
        """
        self._choose = choose
        return choose

    @property
    def unplayed(self) -> int:
        """How many scripted answers no request has taken."""
        return len(self._script)

    async def waiting(self, n: int) -> None:
        """Returns when `n` requests have arrived, counted from the start."""
        await self._changed.until(lambda: len(self.requests) >= n)

    async def idle(self) -> None:
        """Returns when no request is being served."""
        await self._changed.until(lambda: not self._scopes)

    async def __aenter__(self) -> ScriptedProvider:
        app = web.Application(client_max_size=_LARGEST_REQUEST)
        app.router.add_route("*", "/{path:.*}", self._handle)
        app.on_response_prepare.append(_without_empty_type)
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self._runner, self._port = runner, site.port
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        runner, self._runner = self._runner, None
        assert runner is not None
        for scope in self._scopes:
            scope.reschedule(asyncio.get_running_loop().time())
        await self.idle()
        await runner.cleanup()
        if self._failures and kind is None:
            raise self._failures[0]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        """Serves a request until its answer is out, the client leaves, or the provider is left."""
        scope = asyncio.timeout(None)
        self._scopes.add(scope)
        try:
            async with scope:
                if self._runner is not None:
                    return await self._serve(request)
        except TimeoutError:
            pass  # the provider is being left
        except ConnectionError:
            return web.Response()  # the client has left; aiohttp sees that too, and drops this
        finally:
            self._scopes.discard(scope)
            self._changed.beat()
        give_up(request)
        return web.Response()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        match self._family.asked(request.method, request.path):
            case "answer":
                return await self._serve_answer(request)
            case "models":
                self.others.append(f"{request.method} {request.path}")
                key = self._key(request)
                if not self._knows(key):
                    wrong = self._wrong_key(key)
                    return web.json_response(self._family.error(wrong.status, wrong.message, wrong.code), status=wrong.status)
                return web.json_response(self._family.models(self.rules.models))
            case status:
                self.others.append(f"{request.method} {request.path}")
                return web.json_response(self._family.error(status), status=status)

    async def _serve_answer(self, request: web.Request) -> web.StreamResponse:
        seen = self._see(request, await request.read())
        self.requests.append(seen)
        self._changed.beat()
        answer = self._refusal(seen) or self._next(seen)
        framer = Framer(answer.framing)
        limit = answer.end.after_bytes if isinstance(answer.end, Cut) else None
        body = Body(request, seen, framer, limit=limit)
        voice = self._family.voice(answer, seen, self._new_id)
        whole = answer.whole or not self._family.wants_stream(seen)
        try:
            await Performance(answer=answer, family=self._family, voice=voice, framer=framer, body=body, whole=whole).play()
        except (asyncio.CancelledError, ConnectionError):
            seen.closed_early = not seen.finished and self._runner is not None
            raise
        return body.response

    def _see(self, request: web.Request, raw: bytes) -> SeenRequest:
        headers = _headers(request)
        at = asyncio.get_running_loop().time()
        key = self._key(request)
        seen = SeenRequest(at=at, path=request.path_qs, headers=headers, body=None, raw=raw, key=key)
        try:
            seen.body = msgspec.json.decode(raw)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            seen.problems = [f"the body is not valid JSON: {error}"]
            return seen
        seen.problems = self._family.problems(seen, self.rules)
        return seen

    def _refusal(self, seen: SeenRequest) -> Answer | None:
        """What a server says before it asks a model."""
        if not self._knows(seen.key):
            return Answer((self._wrong_key(seen.key),))
        if not self.strict or not seen.problems:
            return None
        return Answer((self._family.refusal(seen, self.rules),))

    def _next(self, seen: SeenRequest) -> Answer:
        if self._script:
            return self._script.popleft()
        answer = None
        if self._choose is not None:
            try:
                answer = self._choose(seen)
            except Exception as error:  # the script is the test's own code: its failure must reach the test
                self._failures.append(error)
                return fail(500, message=f"ScriptedProvider: the function given to by_request raised {error!r}")
        answer = answer or self.default
        if answer is not None:
            return answer
        self.unscripted += 1
        said = f"ScriptedProvider: nothing is scripted for request {len(self.requests)}; play() more answers or set default"
        return fail(500, message=said)

    def _key(self, request: web.Request) -> str:
        key = self._family.key(_headers(request))
        return self._family.key_in(request.path_qs) if not key and isinstance(self._family, OwnKeys) else key

    def _knows(self, key: str) -> bool:
        return not self.keys or key in self.keys

    def _wrong_key(self, key: str) -> Fail:
        return self._family.wrong_key(key) if isinstance(self._family, OwnKeys) else Fail(status=401)

    def _new_id(self) -> str:
        """A call id that was not used before, in the server's own alphabet."""
        self._ids += 1
        usual = f"call_{self._ids:04}"
        alphabet = self.rules.id_alphabet
        if alphabet and not re.fullmatch(alphabet, usual):
            return f"{self._ids:09}"  # Mistral's
        return usual


class _Pulse:
    """Tells those who wait that something changed."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def beat(self) -> None:
        """Has all who wait look again."""
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def until(self, reached: Callable[[], bool]) -> None:
        """Returns when `reached` is true."""
        while not reached():
            await self._event.wait()


def _headers(request: web.Request) -> dict[str, str]:
    return {name.lower(): value for name, value in request.headers.items()}


async def _without_empty_type(request: web.Request, response: web.StreamResponse) -> None:
    """aiohttp gives each answer a content type; an empty one stands for none."""
    if not response.headers.get("Content-Type"):
        del response.headers["Content-Type"]

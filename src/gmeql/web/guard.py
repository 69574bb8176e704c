"""Who may talk to the page: this computer's browser with the token, and nobody else.

Against other sites in the same browser: Host must be a loopback name (DNS rebinding), Origin must be ours, the cookie
is SameSite=Strict. Against other users of the computer: a token that only the one who started the server sees.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 50 * 2**20
SAFE_METHODS = ("GET", "HEAD")
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "SAMEORIGIN",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; "
    "frame-src 'self'; frame-ancestors 'self'; base-uri 'none'; form-action 'self'"
)


class BodyTooLarge(Exception):
    """The request's body passed the limit while it was read."""


class Guard:
    """ASGI middleware: 403 for a foreign Host or Origin, 401 without the token, 413 for too large a body."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self.token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        refusal = self.judge(scope)
        if refusal is not None:
            for name, value in SECURITY_HEADERS.items():
                refusal.headers.setdefault(name, value)
            await refusal(scope, receive, send)
            return
        started = False

        async def guarded_send(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                present = {name for name, _ in message["headers"]}
                extra = [(k.encode(), v.encode()) for k, v in SECURITY_HEADERS.items() if k.encode() not in present]
                if b"content-security-policy" not in present:
                    extra.append((b"content-security-policy", PAGE_POLICY.encode()))
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        try:
            await self.app(scope, self._limited(receive), guarded_send)
        except BodyTooLarge:
            if not started:
                await too_large()(scope, receive, send)

    def judge(self, scope: Scope) -> Response | None:
        """The refusal that a request deserves, or None."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not is_ours(host, scope):
            return PlainTextResponse("Host is not this page; open the address that gmeql ui printed.\n", 403)
        origin = headers.get("origin")
        if origin is not None and not (origin.startswith("http://") and is_ours(urlsplit(origin).netloc, scope)):
            return PlainTextResponse("Origin is not this page.\n", 403)
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return PlainTextResponse("The request comes from another site.\n", 403)
        entry = self._entry(scope, headers)
        if entry is not None:
            return entry
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        by_header, by_cookie = self._is_token(bearer), self._is_token(self._cookie(scope, headers))
        if not (by_header or by_cookie):
            return PlainTextResponse("The token is missing; open the address that gmeql ui printed.\n", 401)
        if scope["method"] not in SAFE_METHODS and not by_header and origin is None:
            return PlainTextResponse("A change needs an Origin header.\n", 403)
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > MAX_BODY_BYTES:
            return too_large()
        return None

    def _entry(self, scope: Scope, headers: Headers) -> Response | None:
        """A GET with the right ?token= gets the cookie and the same address without the token."""
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if scope["method"] != "GET" or not self._is_token(query.pop("token", [""])[0]):
            return None
        rest = urlencode(query, doseq=True)
        path = "/" + scope["path"].lstrip("/\\")
        response = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
        response.set_cookie(cookie_name(scope), self.token, httponly=True, samesite="strict", path="/")
        return response

    def _cookie(self, scope: Scope, headers: Headers) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(cookie_name(scope))
        except CookieError:
            return ""
        return found.value if found is not None else ""

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())

    def _limited(self, receive: Receive) -> Receive:
        read = 0

        async def limited() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > MAX_BODY_BYTES:
                raise BodyTooLarge
            return message

        return limited


def too_large() -> Response:
    return PlainTextResponse(
        f"The table is larger than {MAX_BODY_BYTES >> 20} MB; give a sample of its rows, or use: gmeql fit FILE\n", 413
    )


def cookie_name(scope: Scope) -> str:
    """Cookies of all ports of a host are one jar; the port in the name keeps two servers apart."""
    server = scope.get("server")
    return f"gmeql-token-{server[1] if server else 0}"


def is_ours(host: str, scope: Scope) -> bool:
    """Whether a Host header names this server by a loopback name and the right port."""
    server = scope.get("server")
    name, _, port = host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "80")
    return name.lower() in LOOPBACK_NAMES and server is not None and port == str(server[1])

"""Who may talk to the page: this computer with the token, and how much."""

from __future__ import annotations

import pytest

from gmeql.web import guard
from web_client import BASE, HEADERS, TOKEN


@pytest.mark.parametrize("path", ["/", "/runs", "/static/style.css", "/runs/x/report", "/tables/0", "/nowhere"])
def test_no_token_is_401(client, path):
    assert client.get(path).status_code == 401
    assert client.get(path, headers={"authorization": "Bearer wrong"}).status_code == 401
    assert client.get(path, params={"token": "wrong"}).status_code == 401


def test_the_address_with_the_token_gives_a_strict_cookie(client):
    response = client.get("/", params={"token": TOKEN, "table": "1"})
    assert response.status_code == 303 and response.headers["location"] == "/?table=1"
    cookie = response.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8123", "127.0.0.1:9", "127.0.0.1", "localhost.evil.example:8123", ""]
)
def test_a_foreign_host_is_403(client, host):
    assert client.get("/", headers=HEADERS | {"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8123", "localhost:8123", "LOCALHOST:8123", "[::1]:8123"])
def test_loopback_hosts_are_served(client, host):
    assert client.get("/", headers=HEADERS | {"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:8123", "http://127.0.0.1:9", "http://localhost"]
)
def test_a_foreign_origin_is_403(client, origin):
    assert client.post("/runs", json={}, headers=HEADERS | {"origin": origin}).status_code == 403
    assert client.get("/", headers=HEADERS | {"origin": origin}).status_code == 403


def test_a_request_from_another_site_is_403(client):
    assert client.get("/", headers=HEADERS | {"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.get("/", headers=HEADERS | {"sec-fetch-site": "same-site"}).status_code == 403


def test_a_change_by_cookie_needs_our_origin(client):
    client.get("/", params={"token": TOKEN})
    assert client.post("/runs/x/stop").status_code == 403
    assert client.post("/runs/x/stop", headers={"origin": BASE}).status_code == 404


def test_too_large_is_413(client, monkeypatch):
    monkeypatch.setattr(guard, "MAX_BODY_BYTES", 1000)
    assert client.post("/tables", content=b"x" * 1001, headers=HEADERS).status_code == 413

    def chunks():
        for _ in range(20):
            yield b"y" * 100

    assert client.post("/tables", content=chunks(), headers=HEADERS).status_code == 413
    assert client.post("/tables", content=b"a,y\n1,2\n2,3\n", headers=HEADERS).status_code == 200


def test_a_lying_length_is_413(client):
    for length in ("-1", "1e9", str(10**12)):
        request = client.build_request("POST", "/tables", content=b"x", headers=HEADERS)
        request.headers["content-length"] = length
        assert client.send(request).status_code == 413


def test_every_answer_carries_the_security_headers(client):
    for path, headers in (("/", HEADERS), ("/", {}), ("/nowhere", HEADERS)):
        response = client.get(path, headers=headers)
        assert (
            response.headers["x-content-type-options"] == "nosniff" and response.headers["cache-control"] == "no-store"
        )
    assert "script-src 'self'" in client.get("/", headers=HEADERS).headers["content-security-policy"]

"""`gmeql ui`: the search as a local web page, on loopback, behind a token. Runs live in folders and survive it."""

from gmeql.web.app import create_app
from gmeql.web.server import serve

__all__ = ["create_app", "serve"]

"""The page: a few files that are read once, each at its own fixed address. No path ever comes from a request."""

from collections.abc import Awaitable, Callable
from importlib.resources import files as package_files

from fastapi import APIRouter, Response

FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/api": ("interface.html", "text/html; charset=utf-8"),
    "/static/page.css": ("page.css", "text/css; charset=utf-8"),
    "/static/asking.js": ("asking.js", "text/javascript; charset=utf-8"),
    "/static/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/static/documents.js": ("documents.js", "text/javascript; charset=utf-8"),
    "/static/topics.js": ("topics.js", "text/javascript; charset=utf-8"),
    "/static/map.js": ("map.js", "text/javascript; charset=utf-8"),
    "/static/answers.js": ("answers.js", "text/javascript; charset=utf-8"),
    "/static/interface.js": ("interface.js", "text/javascript; charset=utf-8"),
    "/static/icon.svg": ("icon.svg", "image/svg+xml"),
}
OPEN_PATHS = frozenset(FILES)


def page_routes() -> APIRouter:
    routes = APIRouter(include_in_schema=False)
    folder = package_files("varitext.serve") / "static"
    for address, (name, kind) in FILES.items():
        routes.add_api_route(address, _answering(folder.joinpath(name).read_bytes(), kind))
    return routes


def _answering(content: bytes, kind: str) -> Callable[[], Awaitable[Response]]:
    async def file() -> Response:
        return Response(content, media_type=kind)

    return file

"""The generator of types, with kinds of options that the service may add."""

from __future__ import annotations

import importlib.util
import sys
import unittest
from pathlib import Path
from typing import Any

PATH = Path(__file__).resolve().parents[2] / "generate.py"


def load() -> Any:
    spec = importlib.util.spec_from_file_location("generate", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # The module beside it is found as if it was run as a program.
    if str(PATH.parent) not in sys.path:
        sys.path.append(str(PATH.parent))
    spec.loader.exec_module(module)
    return module


COOKIE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "secure": {"type": "boolean"}},
}
SIDE = {"type": "integer", "minimum": 0, "maximum": 9}
OPTIONS = {
    "url": {"type": "string"},
    "cookies": {"type": "array", "items": COOKIE, "maxItems": 5, "description": "Cookies."},
    "clip": {"type": "object", "required": ["x"], "properties": {"x": SIDE}},
    "headers": {"type": "object", "additionalProperties": {"type": "string"}},
    "statuses": {"type": "array", "items": {"oneOf": [{"type": "string", "enum": ["4xx"]}, {"type": "integer"}]}},
    # The node for n8n shows these at once.
    "full_page": {"type": "boolean"},
    "format": {"type": "string", "enum": ["png"]},
    "device": {
        "type": "string",
        "enum": ["desktop", "iphone-se"],
        "description": "A device, which docs/guide/PICTURE.md lists.",
    },
    "block": {"type": "array", "items": {"type": "string", "enum": ["ads"]}},
    "also": {"type": "array", "items": {"type": "string", "enum": ["pdf"]}},
}


def document(options: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"type": "object", "properties": {}}
    code = {"type": "string", "enum": ["not_found"]}
    error = {"properties": {"error": {"properties": {"code": code}}}}
    names = ["Grab", "GrabList", "Batch", "Usage", "Pricing", "Webhook", "WebhookList", "Delivery", "DeliveryList"]
    names += ["Monitor", "MonitorList", "MonitorRun", "MonitorRunList", "CreateMonitorRequest", "UpdateMonitorRequest"]
    names += ["MonitorFeed", "Proxy", "ProxyList", "CreateProxyRequest", "UpdateProxyRequest"]
    names += ["Site", "SiteList", "SitePage", "SitePageList", "CreateSiteRequest"]
    schemas = {name: empty for name in [*names, "CreateWebhookRequest", "UpdateWebhookRequest"]}
    schemas |= {"CreateGrabRequest": {"type": "object", "properties": options}, "Error": error}
    schemas["GrabText"] = {"type": "object", "required": ["from"], "properties": {"from": SIDE}}
    responses = {"404": {"description": "- `not_found`: Nothing has that id."}}
    return {"components": {"schemas": schemas}, "paths": {"/grabs": {"get": {"responses": responses}}}}


class GenerateTest(unittest.TestCase):
    def test_objects_lists_maps_and_unions_are_typed(self) -> None:
        typescript, python, _ = load().generate(document(OPTIONS)).values()
        for line in [
            "export interface Cookie {",
            "  name: string;",
            "  secure?: boolean | undefined;",
            "  cookies?: readonly Cookie[] | undefined;",
            "  clip?: Clip | undefined;",
            "  headers?: Record<string, string> | undefined;",
            '  statuses?: readonly ("4xx" | number)[] | undefined;',
            '  "cookies",',
        ]:
            self.assertIn(f"\n{line}\n", typescript)
        for line in [
            "class _CookieRequired(TypedDict):",
            "class Cookie(_CookieRequired, total=False):",
            "class Clip(TypedDict):",
            "    cookies: Sequence[Cookie]",
            "    headers: Mapping[str, str]",
            '    statuses: Sequence[Literal["4xx"] | int]',
            "    from_: int",
        ]:
            self.assertIn(f"\n{line}\n", python)
        compile(python, "generated", "exec")

    def test_parameters_of_the_node_for_n8n_have_names_for_people(self) -> None:
        *_, n8n = load().generate(document(OPTIONS)).values()
        for text in ['"name": "iPhone SE"', '"name": "Desktop"', '"displayName": "Full Page"', '"description": "A device"']:
            self.assertIn(text, n8n)
        self.assertNotIn("docs/", n8n)

    def test_option_with_the_name_of_an_argument_is_refused(self) -> None:
        for name in ("timeout", "signal"):
            with self.assertRaisesRegex(SystemExit, name):
                load().generate(document({**OPTIONS, name: {"type": "integer"}}))

    def test_kind_that_is_not_understood_is_refused(self) -> None:
        with self.assertRaisesRegex(SystemExit, "Odd"):
            load().generate(document({"odd": {"type": ["string", "integer"]}}))


if __name__ == "__main__":
    unittest.main()

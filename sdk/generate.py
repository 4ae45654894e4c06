#!/usr/bin/env python3
"""Generates the types of both client libraries, and the parameters of the n8n node, from the OpenAPI document of a service.

    sdk/generate.py SOURCE            writes the files; SOURCE is a file, or the URL of a service's /v1/openapi.json
    sdk/generate.py SOURCE --check    changes nothing, and fails if a file is not current

It needs only the standard library, so that it runs wherever Python does.
"""

from __future__ import annotations

import json
import keyword
import sys
import textwrap
import urllib.request
from pathlib import Path
from typing import Any

from generate_n8n import n8n

HERE = Path(__file__).resolve().parent
TYPESCRIPT = HERE / "typescript/src/generated.ts"
PYTHON = HERE / "python/src/grabd/_generated.py"
N8N = HERE / "n8n/nodes/Grabd/options.ts"
WIDTH = 120

# What callers send: the schema, its name in the libraries, and the members that are arguments of their own.
REQUESTS = [
    ("CreateGrabRequest", "CaptureOptions", ["url"]),
    ("CreateWebhookRequest", "CreateWebhookOptions", ["url"]),
    ("UpdateWebhookRequest", "UpdateWebhookOptions", []),
    ("CreateMonitorRequest", "CreateMonitorOptions", ["capture"]),
    ("UpdateMonitorRequest", "UpdateMonitorOptions", ["capture"]),
    ("CreateProxyRequest", "CreateProxyOptions", []),
    ("UpdateProxyRequest", "UpdateProxyOptions", []),
    ("CreateSiteRequest", "CreateSiteOptions", ["url", "sitemap", "capture"]),
]
# What the service responds with.
RESPONSES = [
    "Grab", "GrabList", "GrabText", "Batch", "Usage", "Pricing", "Webhook", "WebhookList", "Delivery", "DeliveryList", "MonitorRun",
    "Monitor", "MonitorList", "MonitorBatch", "MonitorRunList", "MonitorFeed", "Proxy", "ProxyList", "SitePage", "Site", "SiteList",
    "SitePageList",
]
# Better names of nested objects than their path gives.
NAMES = {
    "BatchResultError": "BatchError",
    "UsageCredits": "Credits",
    "UsagePlan": "Plan",
    "UsageUsage": "GrabCounts",
    "PricingPricing": "Prices",
    "PricesAnnual": "AnnualPrice",
    "PricesPrepaidPackage": "PrepaidPackage",
    "PricingComparison": "Comparison",
    "ComparisonProviderPricingEvidence": "Evidence",
    "ComparisonProviderCaptureEvidence": "Evidence",
    "ComparisonProviderAgentEvidence": "Evidence",
    "ComparisonProviderQuotaEvidence": "Evidence",
    "ComparisonDecisionPage": "DecisionPage",
    "DecisionPagePricingTier": "PricingTier",
    "ComparisonAgentSurface": "ComparedSurfaces",
    "ComparedSurfacesSurface": "AgentSurface",
    "CreateMonitorOptionsCompare": "MonitorCompareOptions",
    "UpdateMonitorOptionsCompare": "MonitorCompareOptions",
    "MonitorCompareOptionsImageIgnore": "MonitorArea",
    "CreateMonitorOptionsQuiet": "MonitorQuietOptions",
    "UpdateMonitorOptionsQuiet": "MonitorQuietOptions",
    "CreateMonitorOptionsNotify": "MonitorNotifyOptions",
    "UpdateMonitorOptionsNotify": "MonitorNotifyOptions",
    "SitePages": "SitePageCounts",
}
DESCRIPTIONS = {
    "BatchResult": "The result of one capture of a batch: its grab, or why none was created.",
    "BatchError": "Why a capture of a batch was refused.",
    "Evidence": "Where a statement about a provider was found.",
    "Credits": "Remaining credits.",
    "Plan": "Plan of a team.",
    "GrabCounts": "Grabs of the last 30 days.",
    "CaptureOptions": "The capture options. Every option that is left out has its default.",
    "Pricing": "The prices, and a comparison with other services.",
}
# Arguments of the Python methods that take capture options. An option must not have one of these names.
ARGUMENTS = {"self", "url", "idempotency_key", "timeout", "wait_timeout", "extra_options"}
# The same in TypeScript, where they are in one object with the options.
ARGUMENTS |= {"signal", "idempotencyKey", "timeoutMs", "waitTimeoutMs", "extraOptions"}


def load(source: str) -> dict[str, Any]:
    if source.startswith(("http://", "https://")):
        with urllib.request.urlopen(source, timeout=30) as response:
            return json.load(response)
    return json.loads(Path(source).read_text(encoding="utf-8"))


def merged(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with the parts of an `allOf` in one object."""
    result: dict[str, Any] = {}
    for part in [*schema.get("allOf", []), schema]:
        result.update({key: value for key, value in part.items() if key != "allOf"})
    return result


def pascal(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


class Member:
    """A member of an object type."""

    def __init__(self, name: str, kind: tuple[Any, ...], required: bool, nullable: bool, schema: dict[str, Any]):
        self.name, self.kind, self.required, self.nullable, self.schema = name, kind, required, nullable, schema


class Types:
    """Object types in the order of their definition: nested objects come first."""

    def __init__(self, schemas: dict[str, Any]):
        self.schemas = schemas
        self.objects: list[tuple[str, str, list[Member]]] = []

    def members(self, name: str) -> list[Member]:
        return next(members for other, _, members in self.objects if other == name)

    def add(self, name: str, schema: dict[str, Any], left_out: list[str] = []) -> None:
        schema = merged(schema)
        members = []
        for member, part in schema["properties"].items():
            if member in left_out:
                continue
            kind, nullable = self.kind(name + pascal(member), part)
            required = member in schema.get("required", [])
            members.append(Member(member, kind, required, nullable, merged(part)))
        shape = [(member.name, member.kind, member.required, member.nullable) for member in members]
        for other, _, known in self.objects:
            if other == name:
                if shape != [(member.name, member.kind, member.required, member.nullable) for member in known]:
                    raise SystemExit(f"two different objects have the name {name}")
                return
        about = DESCRIPTIONS.get(name) or schema.get("description") or f"`{name}` of the REST API."
        self.objects.append((name, about, members))

    def kind(self, path: str, schema: dict[str, Any]) -> tuple[tuple[Any, ...], bool]:
        """The type of a member, and whether it may be null."""
        if "$ref" in schema:
            return ("object", schema["$ref"].rsplit("/", 1)[1]), False
        if "oneOf" in schema:
            parts = [part for part in schema["oneOf"] if part.get("type") != "null"]
            kinds = [self.kind(path, part)[0] for part in parts]
            nullable = len(parts) < len(schema["oneOf"])
            return (kinds[0] if len(kinds) == 1 else ("union", *kinds)), nullable
        schema = merged(schema)
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        nullable = "null" in kinds
        kinds = [kind for kind in kinds if kind != "null"]
        if len(kinds) != 1:
            raise SystemExit(f"{path}: {kinds} is not understood")
        if words := [word for word in schema.get("enum", []) if word is not None]:
            return ("enum", *words), nullable
        if kinds[0] == "array":
            item, _ = self.kind(path.removesuffix("s"), schema["items"])
            return ("array", item), nullable
        if kinds[0] == "object":
            if "properties" not in schema:
                value = schema.get("additionalProperties")
                item = self.kind(path, value)[0] if isinstance(value, dict) else ("unknown",)
                return ("map", item), nullable
            # The objects in capture options are named after their option.
            name = NAMES.get(path, path.removeprefix("CaptureOptions"))
            self.add(name, schema)
            return ("object", name), nullable
        return (kinds[0],), nullable


def limits(schema: dict[str, Any]) -> str:
    """Bounds, default and example in words."""
    words = []
    if "minimum" in schema and "maximum" in schema:
        words.append(f"From {schema['minimum']:g} to {schema['maximum']:g}.")
    if "maxItems" in schema:
        words.append(f"At most {schema['maxItems']}.")
    if "default" in schema:
        words.append(f"Default: `{json.dumps(schema['default'])}`.")
    if examples := schema.get("examples"):
        words.append(f"Example: `{json.dumps(examples[0])}`.")
    return " ".join(words)


def describe(schema: dict[str, Any], with_limits: bool) -> str:
    about = " ".join(schema.get("description", "").split())
    if schema.get("format") == "date-time":
        about = f"{about} RFC 3339."
    return f"{about} {limits(schema)}".strip() if with_limits else about.strip()


def errors(document: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Code, class name and meaning of every error."""
    codes = document["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["code"]["enum"]
    meanings: dict[str, str] = {}
    for item in document["paths"].values():
        for operation in item.values():
            for response in operation["responses"].values():
                for line in response.get("description", "").splitlines():
                    if line.startswith("- `") and "`: " in line:
                        code, about = line[3:].split("`: ", 1)
                        meanings.setdefault(code, about)
    return [(code, pascal(code).removesuffix("Error") + "Error", meanings[code]) for code in codes]


# TypeScript

def doc_comment(text: str, indent: str) -> list[str]:
    if not text:
        return []
    text = text.replace("*/", "*\\/")
    if len(indent) + len(text) + 7 <= WIDTH:
        return [f"{indent}/** {text} */"]
    lines = textwrap.wrap(text, WIDTH - len(indent) - 3, break_long_words=False, break_on_hyphens=False)
    return [f"{indent}/**", *(f"{indent} * {line}" for line in lines), f"{indent} */"]


def typescript_kind(kind: tuple[Any, ...], is_request: bool) -> str:
    match kind:
        case ("enum", *words):
            return " | ".join(json.dumps(word) for word in words)
        case ("union", *kinds):
            return " | ".join(typescript_kind(kind, is_request) for kind in kinds)
        case ("array", item):
            inner = typescript_kind(item, is_request)
            return f"{'readonly ' if is_request else ''}{f'({inner})' if ' ' in inner else inner}[]"
        case ("map", item):
            return f"Record<string, {typescript_kind(item, is_request)}>"
        case ("object", name):
            return name
    return {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}.get(kind[0], "unknown")


def typescript(requests: Types, responses: Types, codes: list[tuple[str, str, str]]) -> str:
    lines = ["// Generated by sdk/generate.py from the OpenAPI document of grabd. Do not edit.", ""]
    lines.append('import { ApiError } from "./errors.js";')
    for types, is_request in [(requests, True), (responses, False)]:
        for name, about, members in types.objects:
            lines += ["", *doc_comment(" ".join(about.split()), ""), f"export interface {name} {{"]
            for member in members:
                lines += doc_comment(describe(member.schema, is_request), "  ")
                mark = "" if member.required else "?"
                null = " | null" if member.nullable else ""
                undefined = " | undefined" if not member.required else ""
                lines.append(f"  {member.name}{mark}: {typescript_kind(member.kind, is_request)}{null}{undefined};")
            lines.append("}")
    options = requests.members("CaptureOptions")
    lines += ["", "/** The names of all capture options. */", "export const CAPTURE_OPTIONS: readonly string[] = ["]
    lines += [f"  {json.dumps(member.name)}," for member in options]
    lines += ["];", "", "/** Every error code of the REST API. */", "export type ErrorCode ="]
    lines += [f"  | {json.dumps(code)}" for code, _, _ in codes]
    lines[-1] += ";"
    for code, name, about in codes:
        lines += ["", *doc_comment(f"`{code}`: {about}", ""), f"export class {name} extends ApiError {{"]
        lines += [f'  override name = "{name}";', "}"]
    lines += ["", "/** The class of each error code. */"]
    lines.append("export const ERROR_CLASSES: Readonly<Record<ErrorCode, typeof ApiError>> = {")
    lines += [f"  {code}: {name}," for code, name, _ in codes]
    lines += ["};", ""]
    return "\n".join(lines)


# Python

def python_kind(kind: tuple[Any, ...], is_request: bool) -> str:
    match kind:
        case ("enum", *words):
            return f"Literal[{', '.join(json.dumps(word) for word in words)}]"
        case ("union", *kinds):
            return " | ".join(python_kind(kind, is_request) for kind in kinds)
        case ("array", item):
            inner = python_kind(item, is_request)
            return f"Sequence[{inner}]" if is_request else f"tuple[{inner}, ...]"
        case ("map", item):
            return f"Mapping[str, {python_kind(item, is_request)}]"
        case ("object", name):
            return name
    return {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}.get(kind[0], "object")


def docstring(text: str, indent: str) -> list[str]:
    if not text:
        return []
    text = text.replace("\\", "\\\\")
    if len(indent) + len(text) + 6 <= WIDTH:
        return [f'{indent}"""{text}"""']
    lines = textwrap.wrap(text, WIDTH - len(indent) - 3, break_long_words=False, break_on_hyphens=False)
    return [f'{indent}"""{lines[0]}', *(indent + line for line in lines[1:]), f'{indent}"""']


def python_keywords(name: str, about: str, members: list[Member]) -> list[str]:
    """An object with members that are keywords of Python, which a class cannot have. All are required, or none is."""
    total = "" if members[0].required else ", total=False"
    lines = ["", "", f"{name} = TypedDict(", f'    "{name}",', "    {"]
    for member in members:
        null = " | None" if member.nullable else ""
        text = describe(member.schema, True)
        lines += [f"        # {line}" for line in textwrap.wrap(text, WIDTH - 10, break_long_words=False)]
        lines.append(f'        "{member.name}": {python_kind(member.kind, True)}{null},')
    return [*lines, f"    }}{total},", ")", *docstring(" ".join(about.split()), "")]


def python(requests: Types, responses: Types, codes: list[tuple[str, str, str]]) -> str:
    lines = ['"""Generated by sdk/generate.py from the OpenAPI document of grabd. Do not edit."""', ""]
    lines += ["from __future__ import annotations", "", "from collections.abc import Mapping, Sequence"]
    lines += ["from dataclasses import dataclass", "from typing import ClassVar, Literal, TypedDict", ""]
    lines += ["from ._errors import ApiError", "from ._model import Model"]
    objects = [name for name, _, _ in [*requests.objects, *responses.objects]]
    public = sorted(["CAPTURE_OPTIONS", "ERROR_CLASSES", "ErrorCode", *objects, *(name for _, name, _ in codes)])
    lines += ["", "__all__ = [", *(f'    "{name}",' for name in public), "]"]
    for name, about, members in requests.objects:
        # Python 3.10 has no mark for required members among optional ones.
        parts = {True: [one for one in members if one.required], False: [one for one in members if not one.required]}
        base = f"_{name}Required" if parts[True] and parts[False] else "TypedDict"
        for required, part in parts.items():
            if not part:
                continue
            is_base = required and parts[False]
            if any(keyword.iskeyword(member.name) for member in part):
                if parts[True] and not required:
                    raise SystemExit(f"{name} has an optional member that is a keyword of Python, beside required ones")
                lines += python_keywords(base if is_base else name, about, part)
                continue
            head = f"{base}(TypedDict)" if is_base else f"{name}({base}{'' if required else ', total=False'})"
            lines += ["", "", f"class {head}:", *docstring(" ".join(about.split()), "    "), ""]
            for member in part:
                null = " | None" if member.nullable else ""
                lines.append(f"    {member.name}: {python_kind(member.kind, True)}{null}")
                lines += docstring(describe(member.schema, True), "    ")
    for name, about, members in responses.objects:
        lines += ["", "", "@dataclass(frozen=True, kw_only=True, repr=False)", f"class {name}(Model):"]
        lines += [*docstring(" ".join(about.split()), "    "), ""]
        nested = {}
        for member in members:
            null = " | None" if member.nullable or not member.required else ""
            default = "" if member.required else " = None"
            # A member with the name of a keyword, such as `from`, is `from_`.
            name_here = f"{member.name}_" if keyword.iskeyword(member.name) else member.name
            lines.append(f"    {name_here}: {python_kind(member.kind, False)}{null}{default}")
            lines += docstring(describe(member.schema, False), "    ")
            kind = member.kind[1] if member.kind[0] == "array" else member.kind
            if kind[0] == "object":
                nested[member.name] = kind[1]
        if nested:
            lines += ["", "    _nested: ClassVar[Mapping[str, type[Model]]] = {"]
            lines += [f'        "{member}": {model},' for member, model in nested.items()]
            lines.append("    }")
    names = [member.name for member in requests.members("CaptureOptions")]
    lines += ["", "", "CAPTURE_OPTIONS: frozenset[str] = frozenset(", "    {"]
    lines += [f'        "{name}",' for name in names]
    lines += ["    }", ")", '"""The names of all capture options."""', "", "ErrorCode = Literal["]
    lines += [f'    "{code}",' for code, _, _ in codes]
    lines += ["]", '"""Every error code of the REST API."""']
    for code, name, about in codes:
        lines += ["", "", f"class {name}(ApiError):", *docstring(f"`{code}`: {about}", "    ")]
    lines += ["", "", "ERROR_CLASSES: Mapping[str, type[ApiError]] = {"]
    lines += [f'    "{code}": {name},' for code, name, _ in codes]
    lines += ["}", '"""The class of each error code."""', ""]
    return "\n".join(lines)


def generate(document: dict[str, Any]) -> dict[Path, str]:
    """The text of each generated file."""
    schemas = document["components"]["schemas"]
    requests, responses = Types(schemas), Types(schemas)
    for schema, name, left_out in REQUESTS:
        requests.add(name, schemas[schema], left_out)
    for name in RESPONSES:
        responses.add(name, schemas[name])
    if clash := {name for name, _, _ in requests.objects} & {name for name, _, _ in responses.objects}:
        raise SystemExit(f"{clash} are objects of requests and of responses; name one of them in NAMES")
    if clash := ARGUMENTS & {member.name for member in requests.members("CaptureOptions")}:
        raise SystemExit(f"{clash} are arguments of the methods, and cannot be options")
    codes = errors(document)
    return {
        TYPESCRIPT: typescript(requests, responses, codes),
        PYTHON: python(requests, responses, codes),
        N8N: n8n(schemas["CreateGrabRequest"]),
    }


def main() -> None:
    arguments = sys.argv[1:]
    check = "--check" in arguments
    sources = [argument for argument in arguments if argument != "--check"]
    if len(sources) != 1:
        raise SystemExit(__doc__)
    stale = []
    for path, text in generate(load(sources[0])).items():
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(str(path.relative_to(HERE.parent)))
        if not check:
            path.write_text(text, encoding="utf-8")
    if stale:
        raise SystemExit(f"not current: {', '.join(stale)}; run sdk/generate.py with this OpenAPI document")
    print("current" if check else "written")


if __name__ == "__main__":
    main()

"""Generates the parameters of the n8n node from the capture options of the OpenAPI document. sdk/generate.py calls it."""

from __future__ import annotations

import json
import re
from typing import Any

# The options that the node shows at once. All others are added by the user.
COMMON = ["full_page", "format", "device", "block", "also"]
# How words are written in names that users see.
WORDS = {
    "css": "CSS", "har": "HAR", "html": "HTML", "http": "HTTP", "javascript": "JavaScript", "jpeg": "JPEG", "mhtml": "MHTML",
    "mm": "(mm)", "ms": "(ms)", "pdf": "PDF", "phash": "Perceptual Hash", "png": "PNG", "url": "URL", "urls": "URLs",
    "webp": "WebP", "xhr": "XHR", "if": "if", "on": "on", "to": "to", "for": "for",
}
# From this length on, a text has a field of several lines.
LONG_TEXT = 4096
# Members of objects that nobody should read from the screen.
SECRETS = {"password", "value"}


def title(name: str) -> str:
    words = [WORDS.get(word, word[:1].upper() + word[1:]) for word in name.split("_")]
    # The first and the last word begin with a capital letter in any case.
    for at in (0, -1):
        words[at] = words[at][:1].upper() + words[at][1:]
    return " ".join(words)


def singular(name: str) -> str:
    return title(name.removesuffix("s"))


def kind_of(schema: dict[str, Any]) -> str:
    """The only type of a schema that is not null."""
    kinds = [kind for kind in ([schema["type"]] if isinstance(schema["type"], str) else schema["type"]) if kind != "null"]
    if len(kinds) != 1:
        raise SystemExit(f"{kinds} is not understood")
    return kinds[0]


def about(schema: dict[str, Any]) -> str:
    """The description, as n8n shows it: HTML, and without names of files of the project."""
    text = " ".join(schema.get("description", "").split())
    text = re.sub(r" docs/\S+\.md describes (it|them|the members)\.", "", text)
    text = re.sub(r",? see docs/\S+\.md\b", "", text)
    # Most descriptions say what the service is to do, as in "Capture the whole page".
    if kind_of(schema) == "boolean" and text and not text.startswith(("A ", "One ", "The ")):
        text = f"Whether to {text[:1].lower()}{text[1:]}"
    if "maxItems" in schema and "enum" not in schema["items"]:
        text = f"{text} At most {schema['maxItems']}."
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # The description of a field of n8n ends without a full stop if it is one sentence.
    return text[:-1] if text.endswith(".") and ". " not in text else text


def choices(words: list[Any]) -> list[dict[str, Any]]:
    return [{"name": title(word), "value": word} for word in words if word is not None]


def parameter(name: str, schema: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The parameter of an option or of a member, and its kind of `body.ts` unless its value is sent as it is."""
    field: dict[str, Any] = {"displayName": title(name), "name": name}
    example = (schema.get("examples") or [None])[0]
    shape, kind = scalar(name, schema, example) if kind_of(schema) not in ("array", "object") else nested(schema, name)
    field |= shape
    if text := about(schema):
        field["description"] = text
    if field["type"] == "string" and example is not None:
        field["placeholder"] = f"e.g. {example[0] if isinstance(example, list) else example}"
    return field, kind


def scalar(name: str, schema: dict[str, Any], example: Any) -> tuple[dict[str, Any], str | None]:
    kind, default = kind_of(schema), schema.get("default", example)
    if words := schema.get("enum"):
        return {"type": "options", "options": choices(words), "default": default or words[0]}, None
    if kind == "boolean":
        return {"type": "boolean", "default": schema.get("default", False)}, None
    if kind in ("integer", "number"):
        bounds: dict[str, Any] = {"minValue": schema["minimum"], "maxValue": schema["maximum"]}
        if kind == "integer":
            bounds["numberPrecision"] = 0
        return {"type": "number", "typeOptions": bounds, "default": schema["minimum"] if default is None else default}, None
    if kind != "string":
        raise SystemExit(f"`{name}`: {kind} is not understood")
    settings: dict[str, Any] = {}
    if schema.get("maxLength", 0) >= LONG_TEXT and "format" not in schema and name not in SECRETS:
        settings["rows"] = 4
    return {"type": "string", **({"typeOptions": settings} if settings else {}), "default": ""}, None


def nested(schema: dict[str, Any], name: str) -> tuple[dict[str, Any], str | None]:
    several = {"typeOptions": {"multipleValues": True}}
    if kind_of(schema) == "array":
        items = schema["items"]
        if "oneOf" in items:
            if {kind_of(part) for part in items["oneOf"]} != {"string", "integer"}:
                raise SystemExit(f"`{name}`: {items} is not understood")
            return {"type": "string", **several, "default": []}, "words"
        if words := items.get("enum"):
            return {"type": "multiOptions", "options": choices(words), "default": []}, None
        if kind_of(items) == "string":
            return {"type": "string", **several, "default": []}, None
        if any(kind_of(part) in ("array", "object") for part in items["properties"].values()):
            # A collection of several kinds of objects would lose their order.
            return {"type": "json", "typeOptions": {"rows": 4}, "default": json.dumps(schema["examples"][0])}, "json"
        return group(singular(name), items) | {"placeholder": f"Add {singular(name)}"} | several, "objects"
    if "properties" in schema:
        if "required" not in schema:
            return {"type": "collection", "placeholder": "Add Member", "options": members(schema), "default": {}}, "object"
        return group(title(name), schema) | {"placeholder": f"Add {title(name)}"}, "object"
    limit = schema["additionalProperties"]
    if kind_of(limit) != "string":
        raise SystemExit(f"`{name}`: {limit} is not understood")
    value = {"displayName": "Value", "name": "value", "type": "string", "default": ""}
    values = [{"displayName": "Name", "name": "name", "type": "string", "default": ""}, value]
    options = [{"displayName": singular(name), "name": "entry", "values": values}]
    shape = {"type": "fixedCollection", "placeholder": f"Add {singular(name)}", **several, "options": options, "default": {}}
    return shape, "map"


def members(schema: dict[str, Any], names: list[str] | None = None) -> list[dict[str, Any]]:
    """The fields of members that are no objects, all or those of these names."""
    fields = []
    for name, part in schema["properties"].items():
        if names is not None and name not in names:
            continue
        field, kind = parameter(name, part)
        if kind is not None:
            raise SystemExit(f"the member `{name}` is not understood")
        if name in SECRETS:
            field["typeOptions"] = {**field.get("typeOptions", {}), "password": True}
        fields.append(field)
    return fields


def group(label: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A group of the required members, and a collection of the others."""
    required = schema["required"]
    values = members(schema, required)
    if others := members(schema, [name for name in schema["properties"] if name not in required]):
        more = {"displayName": "More", "name": "more", "type": "collection", "placeholder": "Add Member"}
        values.append({**more, "options": others, "default": {}})
    options = [{"displayName": label, "name": "value", "values": values}]
    return {"type": "fixedCollection", "options": options, "default": {}}


def constant(about: str, name: str, kind: str, value: Any) -> list[str]:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return ["", f"/** {about} */", f"export const {name}: {kind} = {text};"]


def n8n(schema: dict[str, Any]) -> str:
    """The text of the file with the parameters of a schema of capture options."""
    fields, kinds = {}, {}
    for name, part in schema["properties"].items():
        if name == "url":
            continue
        field, kind = parameter(name, part)
        fields[name] = {**field, "routing": {"send": {"type": "body", "property": name}}}
        if kind is not None:
            kinds[name] = kind
    lines = ["// Generated by sdk/generate.py from the OpenAPI document of grabd. Do not edit.", ""]
    lines += ['import type { INodeProperties } from "n8n-workflow";', "", 'import type { Kind } from "./body";']
    common = [fields[name] for name in COMMON]
    # n8n lists what can be added in this order.
    others = sorted((field for name, field in fields.items() if name not in COMMON), key=lambda field: field["displayName"])
    lines += constant("The options that are always shown.", "COMMON_OPTIONS", "INodeProperties[]", common)
    lines += constant("All other options.", "OTHER_OPTIONS", "INodeProperties[]", others)
    about_kinds = "The kinds of options whose values are not sent as they are."
    lines += constant(about_kinds, "OPTION_KINDS", "Readonly<Record<string, Kind>>", kinds)
    return "\n".join([*lines, ""])

"""Generates the parameters of the n8n node from the capture options of the OpenAPI document, for sdk/generate.py."""

from __future__ import annotations

import json
import re
from typing import Any

Schema = dict[str, Any]
Field = dict[str, Any]
# The kind of each value that `body.ts` does not send as it is, by the option's name, or `option.member`.
Kinds = dict[str, str]

# The options that the node shows at once. All others are added by the user.
COMMON = ["full_page", "format", "device", "block", "also"]
# How words are written in names that users see.
WORDS = {
    "css": "CSS", "har": "HAR", "html": "HTML", "http": "HTTP", "ipad": "iPad", "iphone": "iPhone", "javascript": "JavaScript",
    "jpeg": "JPEG", "mhtml": "MHTML", "mm": "(mm)", "ms": "(ms)", "pdf": "PDF", "phash": "Perceptual Hash", "png": "PNG",
    "se": "SE", "url": "URL", "urls": "URLs", "webp": "WebP", "xhr": "XHR", "if": "if", "on": "on", "to": "to", "for": "for",
}
# From this length on, a text has a field of several lines.
LONG_TEXT = 4096
# Members of objects that nobody should read from the screen.
SECRETS = {"password", "value"}
SEVERAL = {"typeOptions": {"multipleValues": True}}


def title(name: str) -> str:
    words = [WORDS.get(word, word[:1].upper() + word[1:]) for word in re.split("[_-]", name)]
    # The first and the last word begin with a capital letter, unless they have one elsewhere.
    for at in (0, -1):
        if words[at].islower():
            words[at] = words[at][:1].upper() + words[at][1:]
    return " ".join(words)


def singular(name: str) -> str:
    return title(name.removesuffix("s"))


def kind_of(schema: Schema) -> str | None:
    """The only type of a schema that is not null. None if it has none, or several."""
    kinds = schema.get("type", [])
    kinds = [kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "null"]
    return kinds[0] if len(kinds) == 1 else None


def is_word(schema: Schema) -> bool:
    """Whether a value is one of some words, or a number."""
    return {kind_of(part) for part in schema.get("oneOf", [{}])} == {"string", "integer"}


def is_flat(schema: Schema) -> bool:
    """Whether all members of an object are single values, or lists of texts."""
    scalars = ("boolean", "integer", "number", "string")
    return all(
        is_word(part) or kind_of(part) in scalars or (kind_of(part) == "array" and kind_of(part["items"]) == "string")
        for part in schema["properties"].values()
    )


def about(schema: Schema) -> str:
    """The description, as n8n shows it: HTML, and without names of files of the project."""
    text = " ".join(schema.get("description", "").split())
    text = re.sub(r" docs/\S+\.md describes [a-z ]+\.", "", text)
    text = re.sub(r",? (see docs/\S+\.md\b|which docs/\S+\.md lists\b)", "", text)
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


def parameter(path: str, schema: Schema, kinds: Kinds) -> Field:
    """The parameter of an option, or of a member of one."""
    name = path.rsplit(".", 1)[-1]
    example = (schema.get("examples") or [None])[0]
    shape, kind = shape_of(path, schema, example, kinds)
    if kind is not None:
        kinds[path] = kind
    field = {"displayName": title(name), "name": name, **shape}
    if text := about(schema):
        field["description"] = text
    if field["type"] == "string" and example is not None:
        field["placeholder"] = f"e.g. {example[0] if isinstance(example, list) else example}"
    return field


def shape_of(path: str, schema: Schema, example: Any, kinds: Kinds) -> tuple[Field, str | None]:
    """The type of a field with what belongs to it, and the kind of its value unless it is sent as it is."""
    name, kind = path.rsplit(".", 1)[-1], kind_of(schema)
    if kind == "array":
        shape = list_shape(path, schema["items"], kinds)
    elif kind == "object":
        shape = object_shape(path, schema, kinds)
    elif is_word(schema):
        shape = ({"type": "string", "default": ""}, "word")
    elif kind is None:
        shape = None
    else:
        shape = scalar_shape(name, kind, schema, example)
    if shape is not None:
        return shape
    # Whatever has no field of its own in n8n.
    default = json.dumps(example if example is not None else [] if kind == "array" else {}, ensure_ascii=False)
    return {"type": "json", "typeOptions": {"rows": 4}, "default": default}, "json"


def scalar_shape(name: str, kind: str, schema: Schema, example: Any) -> tuple[Field, str | None]:
    default = schema.get("default", example)
    if words := schema.get("enum"):
        return {"type": "options", "options": choices(words), "default": default or words[0]}, None
    if kind == "boolean":
        return {"type": "boolean", "default": schema.get("default", False)}, None
    if kind in ("integer", "number"):
        names = {"minimum": "minValue", "maximum": "maxValue"}
        bounds = {names[key]: schema[key] for key in names if key in schema}
        if kind == "integer":
            bounds["numberPrecision"] = 0
        return {"type": "number", "typeOptions": bounds, "default": schema.get("minimum", 0) if default is None else default}, None
    settings: dict[str, Any] = {}
    if name in SECRETS:
        settings["password"] = True
    elif schema.get("maxLength", 0) >= LONG_TEXT and "format" not in schema:
        settings["rows"] = 4
    # An empty text is a value if the service accepts it.
    kind_of_text = "text" if schema.get("minLength") == 0 else None
    return {"type": "string", **({"typeOptions": settings} if settings else {}), "default": ""}, kind_of_text


def list_shape(path: str, items: Schema, kinds: Kinds) -> tuple[Field, str | None] | None:
    if is_word(items):
        return {"type": "string", **SEVERAL, "default": []}, "words"
    if words := items.get("enum"):
        return {"type": "multiOptions", "options": choices(words), "default": []}, None
    if kind_of(items) == "string":
        return {"type": "string", **SEVERAL, "default": []}, None
    # A group for each kind of objects would lose their order.
    if kind_of(items) == "object" and "properties" in items and is_flat(items):
        label = singular(path)
        return {**group(path, label, items, kinds), "placeholder": f"Add {label}", **SEVERAL}, "objects"
    return None


def object_shape(path: str, schema: Schema, kinds: Kinds) -> tuple[Field, str | None] | None:
    label = title(path.rsplit(".", 1)[-1])
    if "properties" in schema:
        if not is_flat(schema):
            return None
        if "required" in schema:
            return {**group(path, label, schema, kinds), "placeholder": f"Add {label}"}, "object"
        fields = members(path, schema, list(schema["properties"]), kinds)
        return {"type": "collection", "placeholder": "Add Member", "options": fields, "default": {}}, "object"
    value = schema.get("additionalProperties")
    if not isinstance(value, dict) or kind_of(value) != "string":
        return None
    values = [{"displayName": title(name), "name": name, "type": "string", "default": ""} for name in ("name", "value")]
    label = singular(path)
    options = [{"displayName": label, "name": "entry", "values": values}]
    shape = {"type": "fixedCollection", "placeholder": f"Add {label}", **SEVERAL, "options": options, "default": {}}
    return shape, "map"


def members(path: str, schema: Schema, names: list[str], kinds: Kinds) -> list[Field]:
    return [parameter(f"{path}.{name}", part, kinds) for name, part in schema["properties"].items() if name in names]


def group(path: str, label: str, schema: Schema, kinds: Kinds) -> Field:
    """A group of the required members, and a collection of the others."""
    required = schema["required"]
    values = members(path, schema, required, kinds)
    if others := members(path, schema, [name for name in schema["properties"] if name not in required], kinds):
        more = {"displayName": "More", "name": "more", "type": "collection", "placeholder": "Add Member"}
        values.append({**more, "options": others, "default": {}})
    options = [{"displayName": label, "name": "value", "values": values}]
    return {"type": "fixedCollection", "options": options, "default": {}}


def constant(about: str, name: str, kind: str, value: Any) -> list[str]:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return ["", f"/** {about} */", f"export const {name}: {kind} = {text};"]


def n8n(schema: Schema) -> str:
    """The text of the file with the parameters of a schema of capture options."""
    fields: dict[str, Field] = {}
    kinds: Kinds = {}
    for name, part in schema["properties"].items():
        # The node has a field of its own for the URL.
        if name != "url":
            fields[name] = {**parameter(name, part, kinds), "routing": {"send": {"type": "body", "property": name}}}
    lines = ["// Generated by sdk/generate.py from the OpenAPI document of grabd. Do not edit.", ""]
    lines += ['import type { INodeProperties } from "n8n-workflow";', "", 'import type { Kind } from "./body";']
    common = [fields[name] for name in COMMON]
    # n8n lists what can be added in this order.
    others = sorted((field for name, field in fields.items() if name not in COMMON), key=lambda field: field["displayName"])
    lines += constant("The options that are always shown.", "COMMON_OPTIONS", "INodeProperties[]", common)
    lines += constant("All other options.", "OTHER_OPTIONS", "INodeProperties[]", others)
    about_kinds = "The kinds of values that are not sent as they are, by the name of their option, or `option.member`."
    lines += constant(about_kinds, "OPTION_KINDS", "Readonly<Record<string, Kind>>", kinds)
    return "\n".join([*lines, ""])

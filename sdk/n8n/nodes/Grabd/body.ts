import type { IDataObject } from "n8n-workflow";

/** The shapes of parameters that differ from those of the capture options. */
export type Kind =
  /** Texts, some of which are numbers for the service. */
  | "words"
  /** `{ entry: [{ name, value }] }` for an object with any members. */
  | "map"
  /** `{ value: { …, more: { … } } }`, or the object itself, for an object. */
  | "object"
  /** `{ value: [{ …, more: { … } }] }` for a list of objects. */
  | "objects"
  /** JSON as text. */
  | "json";

/** A parameter whose value is not of its kind. */
export class InvalidParameter extends Error {}

function isObject(value: unknown): value is IDataObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether a parameter is not filled in. False and 0 are values. */
function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return value === undefined || value === null || value === "" || (isObject(value) && Object.keys(value).length === 0);
}

function withoutEmpty(value: IDataObject): IDataObject {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => !isEmpty(member)));
}

function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : isEmpty(value) ? [] : [value];
}

/** An object whose optional members are in `more`. */
function flat(value: unknown): IDataObject {
  if (!isObject(value)) return {};
  const { more, ...members } = value;
  return withoutEmpty({ ...members, ...(isObject(more) ? more : {}) });
}

function parsed(name: string, value: unknown): unknown {
  if (typeof value !== "string" || value.trim() === "") return value === "" ? undefined : value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    throw new InvalidParameter(`\`${name}\` must be JSON; got ${JSON.stringify(value.slice(0, 100))}.`);
  }
}

/** A value of this kind as the service expects it. */
function read(name: string, kind: Kind | undefined, value: unknown): unknown {
  switch (kind) {
    case undefined:
      return Array.isArray(value) ? value.filter((item) => !isEmpty(item)) : value;
    case "words":
      return asList(value).filter((item) => !isEmpty(item)).map((word) => /^\d+$/.test(String(word)) ? Number(word) : word);
    case "map": {
      const entries = asList(isObject(value) ? value["entry"] : undefined).filter(isObject);
      const named = entries.filter((entry) => !isEmpty(entry["name"]));
      return Object.fromEntries(named.map((entry) => [String(entry["name"]), String(entry["value"] ?? "")]));
    }
    case "object":
      return flat(isObject(value) && isObject(value["value"]) ? value["value"] : value);
    case "objects":
      return asList(isObject(value) ? value["value"] : undefined).map(flat).filter((item) => !isEmpty(item));
    case "json":
      return parsed(name, value);
  }
}

/** The body of a create: the parameters without those that are not filled in. */
export function requestBody(parameters: IDataObject, kinds: Readonly<Record<string, Kind>>): IDataObject {
  const entries = Object.entries(parameters).map(([name, value]) => [name, read(name, kinds[name], value)]);
  return withoutEmpty(Object.fromEntries(entries) as IDataObject);
}

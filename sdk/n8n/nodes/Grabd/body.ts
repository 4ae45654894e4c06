import type { IDataObject } from "n8n-workflow";

/** The shapes of parameters that differ from those of the capture options. */
export type Kind =
  /** A text that may be empty. */
  | "text"
  /** A text that is a number for the service if it consists of digits. */
  | "word"
  /** Several of them. */
  | "words"
  /** `{ entry: [{ name, value }] }` for an object with any members. */
  | "map"
  /** `{ value: { …, more: { … } } }`, or the object itself, for an object. */
  | "object"
  /** `{ value: [{ …, more: { … } }] }` for a list of objects. */
  | "objects"
  /** JSON as text. */
  | "json";

/** The kinds of values that are not sent as they are, by the name of their option, or `option.member`. */
export type Kinds = Readonly<Record<string, Kind>>;

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

function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : isEmpty(value) ? [] : [value];
}

function filledIn(value: unknown): unknown[] {
  return asList(value).filter((item) => !isEmpty(item));
}

/** The members of an object that are filled in. `path` leads to their kinds. */
function readMembers(path: string, values: IDataObject, kinds: Kinds): IDataObject {
  const result: IDataObject = {};
  for (const [name, given] of Object.entries(values)) {
    const kind = kinds[path + name];
    const value = read(path + name, kind, given, kinds);
    if (!isEmpty(value) || (kind === "text" && value === "")) result[name] = value as IDataObject[string];
  }
  return result;
}

/** An object whose optional members are in `more`. */
function readObject(name: string, value: unknown, kinds: Kinds): IDataObject {
  if (!isObject(value)) return {};
  const { more, ...members } = value;
  return readMembers(`${name}.`, { ...members, ...(isObject(more) ? more : {}) }, kinds);
}

function asNumber(word: unknown): unknown {
  return /^\d+$/.test(String(word)) ? Number(word) : word;
}

function readMap(value: unknown): IDataObject {
  const entries = asList(isObject(value) ? value["entry"] : undefined).filter(isObject);
  const named = entries.filter((entry) => !isEmpty(entry["name"]));
  return Object.fromEntries(named.map((entry) => [String(entry["name"]), String(entry["value"] ?? "")]));
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
function read(name: string, kind: Kind | undefined, value: unknown, kinds: Kinds): unknown {
  switch (kind) {
    case undefined:
      return Array.isArray(value) ? filledIn(value) : value;
    case "text":
      return value;
    case "word":
      return asNumber(value);
    case "words":
      return filledIn(value).map(asNumber);
    case "map":
      return readMap(value);
    case "object":
      return readObject(name, isObject(value) && isObject(value["value"]) ? value["value"] : value, kinds);
    case "objects":
      return filledIn(asList(isObject(value) ? value["value"] : []).map((item) => readObject(name, item, kinds)));
    case "json":
      return parsed(name, value);
  }
}

/** The body of a create: the parameters without those that are not filled in. */
export function requestBody(parameters: IDataObject, kinds: Kinds): IDataObject {
  return readMembers("", parameters, kinds);
}

import { createHash, randomUUID } from "node:crypto";

import {
  type DeclarativeRestApiSettings, type IDataObject, type IExecutePaginationFunctions, type IExecuteSingleFunctions,
  type IHttpRequestOptions, type INodeExecutionData, NodeOperationError,
} from "n8n-workflow";

import { InvalidParameter, requestBody } from "./body";
import { OPTION_KINDS } from "./options";
import { REPLAYED, Transport, failure, isReplayed, members } from "./transport";

type Result = DeclarativeRestApiSettings.ResultOptions;

/** The seconds that an item may take, unless the node sets another number. */
export const DEFAULT_LIMIT_S = 300;
/** The longest time that the node can set. */
export const MAX_LIMIT_S = 3600;
/** The longest wait that the service offers, in seconds. */
const MAX_WAIT_S = 25;
/** Captures with a longer `timeout_ms` must be asynchronous. */
const MAX_SYNCHRONOUS_MS = 25_000;
const MAX_PAGE = 100;
/** How often an item can be captured in a run of the node: once, and once more for each repetition of n8n after a failure. */
const MAX_CAPTURES = 6;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** What n8n names an execution that has no id. */
const UNKNOWN_EXECUTION = "__UNKNOWN__";

function invalid(context: IExecuteSingleFunctions, message: string): NodeOperationError {
  return new NodeOperationError(context.getNode(), message, { itemIndex: context.getItemIndex() });
}

function settings(context: IExecuteSingleFunctions): IDataObject {
  return members(context.getNodeParameter("settings", {})) as IDataObject;
}

/** The request of an operation, all of which have a URL. */
function asHttp(request: Result): IHttpRequestOptions {
  return { ...request.options, url: request.options.url ?? "" } as IHttpRequestOptions;
}

function transport(context: IExecuteSingleFunctions, request: Result): Transport {
  const seconds = Number(settings(context)["timeLimit"] ?? DEFAULT_LIMIT_S);
  if (!(seconds >= 1 && seconds <= MAX_LIMIT_S)) {
    throw invalid(context, `\`Time Limit\` must be from 1 to ${MAX_LIMIT_S} seconds; got ${seconds}.`);
  }
  return new Transport(context, asHttp(request), seconds);
}

/**
 * A key that is the same whenever this item is processed again in the same run of this node, as "Retry On Fail" does, and for no
 * other capture.
 */
function idempotencyKey(context: IExecuteSingleFunctions, body: IDataObject): string {
  const execution = context.getExecutionId();
  if (!execution || execution === UNKNOWN_EXECUTION) return `n8n-${randomUUID()}`;
  const item = context.getItemIndex();
  const { $runIndex } = context.getWorkflowDataProxy(item);
  const parts = [context.getInstanceId(), context.getWorkflow().id ?? "", execution, context.getNode().id, $runIndex, item];
  return `n8n-${createHash("sha256").update(JSON.stringify([parts, body])).digest("hex")}`;
}

/** Completes the request of a create from its parameters. */
export async function prepareCapture(
  this: IExecuteSingleFunctions, options: IHttpRequestOptions,
): Promise<IHttpRequestOptions> {
  const { idempotencyKey: ownKey, waitForResult = true } = settings(this);
  let body: IDataObject;
  try {
    body = requestBody(members(options.body) as IDataObject, OPTION_KINDS);
  } catch (error) {
    throw error instanceof InvalidParameter ? invalid(this, error.message) : error;
  }
  const headers: IDataObject = { ...options.headers };
  headers["Idempotency-Key"] = ownKey ? String(ownKey) : idempotencyKey(this, body);
  if (!waitForResult || Number(body["timeout_ms"]) > MAX_SYNCHRONOUS_MS) headers["Prefer"] = "respond-async";
  return { ...options, body, headers };
}

/** Refuses ids that would make another path. */
export async function checkId(this: IExecuteSingleFunctions, options: IHttpRequestOptions): Promise<IHttpRequestOptions> {
  const id = this.getNodeParameter("grabId", "");
  if (typeof id === "string" && ID.test(id)) return options;
  throw invalid(this, `\`Grab ID\` must be the id of a grab; got ${JSON.stringify(id)?.slice(0, 100)}.`);
}

function isOpen(grab: IDataObject): boolean {
  return grab["status"] === "pending" || grab["status"] === "processing";
}

/** The grab as soon as it has ended. */
async function ended(http: Transport, grab: IDataObject): Promise<IDataObject> {
  while (isOpen(grab)) {
    const seconds = Math.min(MAX_WAIT_S, Math.floor(http.secondsLeft));
    if (seconds < 1) {
      const text = `The grab ${String(grab["id"])} has not ended within the time limit of this node. It goes on.`;
      const description = "Read it later with the operation Wait, or set a longer time limit.";
      const node = http.context.getNode();
      throw new NodeOperationError(node, text, { description, itemIndex: http.context.getItemIndex() });
    }
    const sentMs = Date.now();
    const url = `/grabs/${String(grab["id"])}`;
    const headers = { Accept: "application/json", Prefer: `wait=${seconds}` };
    grab = members((await http.send({ method: "GET", url, headers, qs: {}, body: undefined })).body) as IDataObject;
    // A response that did not wait is not repeated at once.
    if (isOpen(grab) && Date.now() - sentMs < 1000) await http.pause(1000);
  }
  return grab;
}

/** Fails as the service does if a synchronous capture fails. */
function checkDone(context: IExecuteSingleFunctions, grab: IDataObject): void {
  if (grab["status"] !== "failed") return;
  const code = String(grab["error_code"] ?? "render_failed");
  const message = String(grab["error_message"] ?? "The capture failed.");
  throw failure(context, code, message, { cause: grab["error_cause"], grab: grab["id"] });
}

function extension(mediaType: string): string {
  const type = mediaType.split(";")[0] ?? "";
  const known: Record<string, string> = { "text/plain": "txt", "text/markdown": "md", "multipart/related": "mhtml" };
  return known[type] ?? (type.split("/")[1] ?? "bin").replace(/^.*[+]/, "").replace(/[^a-z0-9]/g, "");
}

/** The item of a grab, with its image and its files as binary data if the node asks for them. */
async function grabItem(http: Transport, grab: IDataObject): Promise<INodeExecutionData> {
  const { context } = http;
  const item: INodeExecutionData = { json: grab, pairedItem: { item: context.getItemIndex() } };
  const binary: NonNullable<INodeExecutionData["binary"]> = {};
  const add = async (name: string, url: string, fileName: string, mediaType: string): Promise<void> => {
    let field = name;
    for (let number = 2; field in binary; number += 1) field = `${name}_${number}`;
    binary[field] = await context.helpers.prepareBinaryData(await http.download(url), fileName, mediaType);
  };
  const imageUrl = grab["image_url"];
  if (context.getNodeParameter("downloadImage", false) === true && typeof imageUrl === "string") {
    const field = String(context.getNodeParameter("imageField", "data") || "data");
    const format = String(grab["format"] ?? "png");
    await add(field, imageUrl, `${String(grab["id"])}.${format}`, `image/${format}`);
  }
  const files = grab["files"];
  if (settings(context)["downloadFiles"] === true && Array.isArray(files)) {
    for (const { kind, url, media_type } of files.map(members)) {
      const type = String(media_type);
      await add(String(kind), String(url), `${String(grab["id"])}-${String(kind)}.${extension(type)}`, type);
    }
  }
  if (Object.keys(binary).length > 0) item.binary = binary;
  return item;
}

async function sendFirst(http: Transport, request: Result): Promise<IDataObject> {
  return members((await http.send(asHttp(request))).body) as IDataObject;
}

/** Sends a create, and waits for its end unless the node does not want that. */
async function captured(http: Transport, options: IHttpRequestOptions): Promise<IDataObject> {
  const response = await http.send(options);
  let grab = members(response.body) as IDataObject;
  if (settings(http.context)["waitForResult"] !== false) grab = await ended(http, grab);
  try {
    checkDone(http.context, grab);
  } catch (error) {
    if (isReplayed(response)) REPLAYED.add(error as object);
    throw error;
  }
  return grab;
}

/**
 * Captures a page. If n8n repeats the node, the result of an earlier try is used if the capture was done. If it failed, which costs
 * nothing, the page is captured again, with another key.
 */
export async function capture(this: IExecutePaginationFunctions, request: Result): Promise<INodeExecutionData[]> {
  const http = transport(this, request);
  const options = asHttp(request);
  const key = String(options.headers?.["Idempotency-Key"]);
  const captures = settings(this)["idempotencyKey"] ? 1 : MAX_CAPTURES;
  for (let number = 1; ; number += 1) {
    const headers = { ...options.headers, "Idempotency-Key": number === 1 ? key : `${key}-${number}` };
    try {
      return [await grabItem(http, await captured(http, { ...options, headers }))];
    } catch (error) {
      if (number >= captures || !REPLAYED.has(error as object)) throw error;
    }
  }
}

/** Reads a grab, whatever its state. */
export async function get(this: IExecutePaginationFunctions, request: Result): Promise<INodeExecutionData[]> {
  const http = transport(this, request);
  return [await grabItem(http, await sendFirst(http, request))];
}

/** Waits for the end of a grab. */
export async function wait(this: IExecutePaginationFunctions, request: Result): Promise<INodeExecutionData[]> {
  const http = transport(this, request);
  const grab = await ended(http, await sendFirst(http, request));
  checkDone(this, grab);
  return [await grabItem(http, grab)];
}

/** Deletes an image, or reads a text: the response is the item. */
export async function exchange(this: IExecutePaginationFunctions, request: Result): Promise<INodeExecutionData[]> {
  const body = await sendFirst(transport(this, request), request);
  const isDeleted = request.options.method === "DELETE";
  const json = isDeleted ? { id: String(this.getNodeParameter("grabId")), deleted: true } : body;
  return [{ json, pairedItem: { item: this.getItemIndex() } }];
}

/** Lists grabs, page by page: an item for each. */
export async function list(this: IExecutePaginationFunctions, request: Result): Promise<INodeExecutionData[]> {
  const http = transport(this, request);
  const isAll = this.getNodeParameter("returnAll", false) === true;
  const max = isAll ? Infinity : Number(this.getNodeParameter("limit", 50));
  if (!(max >= 1)) throw invalid(this, `\`Limit\` must be an integer from 1 on; got ${max}.`);
  const grabs: IDataObject[] = [];
  const qs: IDataObject = { ...request.options.qs };
  for (let hasMore = true; hasMore && grabs.length < max; ) {
    if (http.secondsLeft === 0) throw invalid(this, "The list has more pages than could be read within the time limit of this node.");
    qs["limit"] = Math.min(MAX_PAGE, Math.ceil(max - grabs.length));
    const page = await sendFirst(http, { ...request, options: { ...request.options, qs } });
    const data = Array.isArray(page["data"]) ? (page["data"] as IDataObject[]) : [];
    grabs.push(...data);
    const next = page["next"] ?? data.at(-1)?.["id"];
    hasMore = page["has_more"] === true && next !== undefined;
    qs["starting_after"] = next;
  }
  const item = this.getItemIndex();
  return grabs.map((json) => ({ json, pairedItem: { item } }));
}

// Runs nodes in n8n's declarative style: the part of its rules that this package uses. It evaluates the description, so that a
// test sends what the description states.
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(import.meta.url);

/** Evaluates a text that begins with `=`, and all texts in objects. */
function resolve(value, scope) {
  if (Array.isArray(value)) return value.map((item) => resolve(item, scope));
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, resolve(member, scope)]));
  }
  if (typeof value !== "string" || !value.startsWith("=")) return value;
  const evaluate = (code) => new Function(...Object.keys(scope), `return (${code});`)(...Object.values(scope));
  const text = value.slice(1);
  const whole = /^\{\{((?:(?!\}\})[^])*)\}\}$/.exec(text);
  return whole ? evaluate(whole[1]) : text.replace(/\{\{([^]*?)\}\}/g, (_, code) => String(evaluate(code)));
}

function isShown(property, parameters) {
  const conditions = Object.entries(property.displayOptions?.show ?? {});
  return conditions.every(([name, values]) => values.includes(parameters[name]));
}

/** The parameters of a node with the defaults of those that are not given. Unknown ones are an error of the test. */
function complete(properties, given) {
  const parameters = {};
  // What a condition names comes before it or after it, as in n8n.
  for (const { name, default: value } of properties) parameters[name] ??= given[name] ?? value;
  const shown = properties.filter((property) => isShown(property, parameters));
  for (const name of Object.keys(given)) {
    if (!shown.some((property) => property.name === name)) throw new Error(`the node has no parameter ${name}`);
  }
  return [shown, parameters];
}

/** Adds what a property states to a request. */
function apply(property, value, request, scope) {
  const { request: stated = {}, send = {}, operations } = property.routing ?? {};
  for (const [name, part] of Object.entries(resolve(stated, { ...scope, $value: value }))) {
    request.options[name] = typeof part === "object" ? { ...request.options[name], ...part } : part;
  }
  if (send.property !== undefined) {
    const sent = send.value === undefined ? value : resolve(send.value, { ...scope, $value: value });
    (send.type === "body" ? request.options.body : request.options.qs)[send.property] = sent;
  }
  request.preSend.push(...(send.preSend ?? []));
  request.paginate ||= send.paginate ?? false;
  request.pagination = operations?.pagination ?? request.pagination;
  if (property.type === "options") {
    const chosen = property.options.find((option) => option.value === value);
    if (!chosen) throw new Error(`${property.name} has no option ${value}`);
    apply(chosen, undefined, request, scope);
  } else if (property.type === "collection") {
    for (const name of Object.keys(value)) {
      const member = property.options.find((option) => option.name === name);
      if (!member) throw new Error(`${property.name} has no member ${name}`);
      apply(member, value[name], request, scope);
    }
  }
}

async function httpRequest(options) {
  const base = options.baseURL === undefined ? "" : options.baseURL.replace(/\/$/, "");
  const url = new URL(base + options.url);
  for (const [name, value] of Object.entries(options.qs ?? {})) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  const headers = { ...options.headers };
  const hasBody = Object.keys(options.body ?? {}).length > 0;
  if (hasBody) headers["Content-Type"] = "application/json";
  const redirect = options.disableFollowRedirect ? "manual" : "follow";
  const body = hasBody ? JSON.stringify(options.body) : null;
  const limit = AbortSignal.timeout(options.timeout ?? 300_000);
  const signal = options.abortSignal ? AbortSignal.any([limit, options.abortSignal]) : limit;
  const response = await fetch(url, { method: options.method ?? "GET", headers, body, redirect, signal }).catch((error) => {
    if (options.abortSignal?.aborted) throw options.abortSignal.reason;
    // As the HTTP client of n8n reports it.
    const code = error.cause?.code === "UND_ERR_SOCKET" ? "ECONNRESET" : error.cause?.code;
    throw Object.assign(new Error(error.message), { code });
  });
  if (!response.ok && !options.ignoreHttpStatusErrors) throw new Error(`status ${response.status}`);
  const bytes = Buffer.from(await response.arrayBuffer());
  let content = bytes;
  if (options.encoding !== "arraybuffer") {
    content = bytes.toString();
    try {
      content = JSON.parse(content);
    } catch {
      // n8n returns a text that is no JSON as it is.
    }
  }
  const reply = { statusCode: response.status, headers: Object.fromEntries(response.headers), body: content };
  return options.returnFullResponse ? reply : content;
}

/** The node and the credential of the package in a directory, and a function that runs the node for one item. */
export function load(dir) {
  const { n8n } = require(join(dir, "package.json"));
  // A file exports a class with its own name.
  const create = (path) => new (require(join(dir, path))[path.split("/").pop().split(".")[0]])();
  const node = create(n8n.nodes[0]);
  const credential = create(n8n.credentials[0]);
  const { description } = node;

  /** Runs the node. `given` are the parameters that are not at their default, as n8n stores them. */
  async function run(given, { credentials, execution = "7", runIndex = 0, itemIndex = 0, signal } = {}) {
    const [shown, parameters] = complete(description.properties, given);
    const scope = { $parameter: parameters, $credentials: credentials };
    const request = { options: { qs: {}, body: {}, headers: {} }, preSend: [], paginate: false };
    Object.assign(request.options, resolve(description.requestDefaults, scope));
    for (const property of shown) apply(property, parameters[property.name], request, scope);
    const context = {
      getExecutionCancelSignal: () => signal,
      getExecutionId: () => execution,
      getInstanceId: () => "instance",
      getItemIndex: () => itemIndex,
      getNode: () => ({ id: "5f0c3c0e", name: description.defaults.name }),
      getNodeParameter: (name, fallback) => (shown.some((one) => one.name === name) ? parameters[name] : fallback),
      getWorkflow: () => ({ id: "workflow" }),
      getWorkflowDataProxy: () => ({ $runIndex: runIndex }),
      helpers: {
        httpRequest,
        async httpRequestWithAuthentication(name, options) {
          if (name !== credential.name) throw new Error(`there are no credentials ${name}`);
          const own = resolve(credential.authenticate.properties.headers, { $credentials: credentials });
          return httpRequest({ ...options, headers: { ...options.headers, ...own } });
        },
        prepareBinaryData: async (data, fileName, mimeType) => ({ data: data.toString("base64"), fileName, mimeType }),
      },
    };
    let { options } = request;
    for (const prepare of request.preSend) options = await prepare.call(context, options);
    if (!request.paginate || !request.pagination) throw new Error("every operation has an action");
    return request.pagination.call(context, { ...request, options });
  }

  /** Sends the request that tests credentials. Returns its status. */
  async function testCredentials(credentials) {
    const stated = resolve(credential.test.request, { $credentials: credentials });
    const headers = resolve(credential.authenticate.properties.headers, { $credentials: credentials });
    const options = { ...stated, headers, returnFullResponse: true, ignoreHttpStatusErrors: true };
    return (await httpRequest(options)).statusCode;
  }

  return { description, credential, run, testCredentials };
}

import type { INodeProperties, INodePropertyOptions, INodePropertyRouting } from "n8n-workflow";

import { DEFAULT_LIMIT_S, MAX_LIMIT_S, capture, checkId, exchange, get, list, prepareCapture, wait } from "./actions";
import { COMMON_OPTIONS, OTHER_OPTIONS } from "./options";

/** A segment of a path. `checkId` allows only ids. */
const GRAB = '/grabs/{{ encodeURIComponent($parameter["grabId"]) }}';

type Method = NonNullable<INodePropertyRouting["request"]>["method"];
type Action = NonNullable<NonNullable<INodePropertyRouting["operations"]>["pagination"]>;
type Preparation = NonNullable<NonNullable<INodePropertyRouting["send"]>["preSend"]>[number];

/** What is sent, how the request is completed, and what is done with the response. */
function routing(method: Method, url: string, action: Action, preSend: Preparation[]): INodePropertyRouting {
  // n8n calls such an action only of requests with pages. It may send any number of requests.
  return { request: { method, url }, send: { paginate: true, preSend }, operations: { pagination: action } };
}

function show(...operations: string[]): INodeProperties["displayOptions"] {
  return { show: { operation: operations } };
}

const OPERATIONS: INodePropertyOptions[] = [
  {
    name: "Capture",
    value: "capture",
    action: "Capture a web page",
    description: "Capture a web page as an image",
    routing: routing("POST", "/grabs", capture, [prepareCapture]),
  },
  {
    name: "Delete",
    value: "delete",
    action: "Delete an image",
    description: "Delete the image and the files of a grab, but not its record",
    routing: routing("DELETE", `=${GRAB}`, exchange, [checkId]),
  },
  {
    name: "Get",
    value: "get",
    action: "Get a grab",
    description: "Get a grab in its current state",
    routing: routing("GET", `=${GRAB}`, get, [checkId]),
  },
  {
    name: "List",
    value: "list",
    action: "List grabs",
    description: "List grabs, newest first",
    routing: routing("GET", "/grabs", list, []),
  },
  {
    name: "Read Text",
    value: "read",
    action: "Read the text of a grab",
    description: "Read a text of a page within a number of tokens, such as its Markdown",
    routing: routing("GET", `=${GRAB}/read`, exchange, [checkId]),
  },
  {
    name: "Wait",
    value: "wait",
    action: "Wait for a grab",
    description: "Wait until a grab has ended",
    routing: routing("GET", `=${GRAB}`, wait, [checkId]),
  },
];

const DOWNLOADS: INodeProperties[] = [
  {
    displayName: "Download Image",
    name: "downloadImage",
    type: "boolean",
    default: false,
    description: "Whether to add the image to the item as binary data",
    displayOptions: show("capture", "get", "wait"),
  },
  {
    displayName: "Put Image in Field",
    name: "imageField",
    type: "string",
    default: "data",
    required: true,
    description: "The name of the binary field of the image",
    displayOptions: { show: { operation: ["capture", "get", "wait"], downloadImage: [true] } },
  },
];

const DOWNLOAD_FILES: INodeProperties = {
  displayName: "Download Files",
  name: "downloadFiles",
  type: "boolean",
  default: false,
  description:
    "Whether to add the files beside the image as binary data, each in a field with the name of its kind, such as pdf, or slice, " +
    "slice_2 and so on",
};

const TIME_LIMIT: INodeProperties = {
  displayName: "Time Limit",
  name: "timeLimit",
  type: "number",
  typeOptions: { minValue: 1, maxValue: MAX_LIMIT_S, numberPrecision: 0 },
  default: DEFAULT_LIMIT_S,
  description: "How long an item may take, in seconds, with waits for limits of the service",
};

function settings(operations: string[], options: INodeProperties[]): INodeProperties {
  return {
    displayName: "Settings",
    name: "settings",
    type: "collection",
    placeholder: "Add Setting",
    default: {},
    displayOptions: show(...operations),
    options,
  };
}

const CAPTURE: INodeProperties[] = [
  {
    displayName: "URL",
    name: "url",
    type: "string",
    default: "",
    placeholder: "e.g. https://example.com/",
    description: "Absolute http(s) URL of a public page. Leave it empty with the option HTML.",
    displayOptions: show("capture"),
    routing: { send: { type: "body", property: "url" } },
  },
  ...COMMON_OPTIONS.map((property) => ({ ...property, displayOptions: show("capture") })),
  {
    displayName: "Options",
    name: "options",
    type: "collection",
    placeholder: "Add Option",
    default: {},
    displayOptions: show("capture"),
    options: OTHER_OPTIONS,
  },
];

const CAPTURE_SETTINGS: INodeProperties[] = [
  DOWNLOAD_FILES,
  {
    displayName: "Idempotency Key",
    name: "idempotencyKey",
    type: "string",
    default: "",
    placeholder: "e.g. order-{{ $json.id }}",
    description:
      "Captures with the same key and the same options are made and charged once in 24 hours. By default, the key is made from " +
      "the execution, the run of this node and the item.",
  },
  TIME_LIMIT,
  {
    displayName: "Wait for Result",
    name: "waitForResult",
    type: "boolean",
    default: true,
    description: "Whether to wait until the capture has ended. Otherwise, the item is the queued grab.",
  },
];

const GRAB_ID: INodeProperties = {
  displayName: "Grab ID",
  name: "grabId",
  type: "string",
  default: "",
  required: true,
  placeholder: "e.g. 01993e1c-7b1a-7000-8000-0123456789ab",
  description: "The ID that Capture or List returned",
  displayOptions: show("get", "wait", "delete", "read"),
};

const READ: INodeProperties[] = [
  {
    displayName: "Text",
    name: "text",
    type: "options",
    default: "markdown",
    description: "What is read. The capture must have made it: choose it in Also.",
    displayOptions: show("read"),
    options: [
      { name: "Accessibility", value: "accessibility" },
      { name: "Difference", value: "difference" },
      { name: "Elements", value: "elements" },
      { name: "Markdown", value: "markdown" },
      { name: "Report", value: "report" },
      { name: "Text", value: "text" },
    ],
    routing: { send: { type: "query", property: "format" } },
  },
  {
    displayName: "Options",
    name: "readOptions",
    type: "collection",
    placeholder: "Add Option",
    default: {},
    displayOptions: show("read"),
    options: [
      {
        displayName: "Compare To",
        name: "compare_to",
        type: "string",
        default: "",
        description: "Of a difference: the ID of the earlier grab, unless the capture named it",
        routing: { send: { type: "query", property: "compare_to", value: "={{ $value || undefined }}" } },
      },
      {
        displayName: "From",
        name: "from",
        type: "number",
        typeOptions: { minValue: 0, maxValue: 4_294_967_295, numberPrecision: 0 },
        default: 0,
        description: "Where to begin: 0, or next of the part before",
        routing: { send: { type: "query", property: "from" } },
      },
      {
        displayName: "Max Tokens",
        name: "max_tokens",
        type: "number",
        typeOptions: { minValue: 100, maxValue: 50_000, numberPrecision: 0 },
        default: 8000,
        description: "The estimated number of tokens of the text, at most",
        routing: { send: { type: "query", property: "max_tokens" } },
      },
    ],
  },
];

const LIST: INodeProperties[] = [
  {
    displayName: "Return All",
    name: "returnAll",
    type: "boolean",
    default: false,
    description: "Whether to return all results or only up to a given limit",
    displayOptions: show("list"),
  },
  {
    displayName: "Limit",
    name: "limit",
    type: "number",
    typeOptions: { minValue: 1, numberPrecision: 0 },
    default: 50,
    description: "Max number of results to return",
    displayOptions: { show: { operation: ["list"], returnAll: [false] } },
  },
  {
    displayName: "Filters",
    name: "filters",
    type: "collection",
    placeholder: "Add Filter",
    default: {},
    displayOptions: show("list"),
    options: [
      {
        displayName: "From",
        name: "from",
        type: "string",
        default: "",
        placeholder: "e.g. 2026-11-20",
        description: "Only grabs of this UTC day and later ones",
        routing: { send: { type: "query", property: "from", value: "={{ $value || undefined }}" } },
      },
      {
        displayName: "Status",
        name: "status",
        type: "options",
        default: "done",
        description: "Only grabs in this state",
        options: [
          { name: "Done", value: "done" },
          { name: "Failed", value: "failed" },
          { name: "Pending", value: "pending" },
          { name: "Processing", value: "processing" },
        ],
        routing: { send: { type: "query", property: "status" } },
      },
      {
        displayName: "Until",
        name: "until",
        type: "string",
        default: "",
        placeholder: "e.g. 2026-11-27",
        description: "Only grabs of this UTC day and earlier ones",
        routing: { send: { type: "query", property: "until", value: "={{ $value || undefined }}" } },
      },
      {
        displayName: "URL Contains",
        name: "url",
        type: "string",
        default: "",
        description: "Only grabs whose requested URL contains this text, in any case",
        routing: { send: { type: "query", property: "url", value: "={{ $value || undefined }}" } },
      },
    ],
  },
];

/** All parameters of the node, in the order in which they are shown. */
export const PROPERTIES: INodeProperties[] = [
  {
    displayName: "Operation",
    name: "operation",
    type: "options",
    noDataExpression: true,
    default: "capture",
    options: OPERATIONS,
  },
  GRAB_ID,
  ...CAPTURE,
  ...READ,
  ...LIST,
  ...DOWNLOADS,
  settings(["capture"], CAPTURE_SETTINGS),
  settings(["get", "wait"], [DOWNLOAD_FILES, TIME_LIMIT]),
  settings(["list"], [TIME_LIMIT]),
];

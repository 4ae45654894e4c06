// The part of the types of n8n-workflow that this package uses. That package has more than 140 MB with what it depends on,
// and n8n brings it along: at run time, n8n's own is loaded. A declaration here is as wide as that of n8n, or narrower.

declare module "n8n-workflow" {
  export type GenericValue = string | object | number | boolean | undefined | null;

  export interface IDataObject {
    [key: string]: GenericValue | IDataObject | GenericValue[] | IDataObject[];
  }

  export type JsonObject = { [key: string]: string | number | boolean | null | JsonObject | undefined };

  export interface IHttpRequestOptions {
    url: string;
    baseURL?: string;
    headers?: IDataObject;
    method?: "DELETE" | "GET" | "HEAD" | "PATCH" | "POST" | "PUT";
    body?: GenericValue | GenericValue[];
    qs?: IDataObject;
    encoding?: "arraybuffer" | "json" | "text";
    json?: boolean;
    timeout?: number;
    disableFollowRedirect?: boolean;
    ignoreHttpStatusErrors?: boolean;
    returnFullResponse?: boolean;
    allowedDomains?: string;
    abortSignal?: AbortSignal;
  }

  export namespace DeclarativeRestApiSettings {
    type HttpRequestOptions = Omit<IHttpRequestOptions, "url"> & { url?: string };

    interface ResultOptions {
      maxResults?: number | string;
      options: HttpRequestOptions;
      paginate?: boolean | string;
    }
  }

  export interface IN8nHttpFullResponse {
    body: unknown;
    headers: IDataObject;
    statusCode: number;
  }

  export interface IBinaryData {
    [key: string]: string | number | undefined;
    data: string;
    mimeType: string;
    fileName?: string;
  }

  export interface INodeExecutionData {
    json: IDataObject;
    binary?: { [name: string]: IBinaryData };
    pairedItem?: { item: number };
  }

  export interface INode {
    id: string;
    name: string;
  }

  export interface IExecuteSingleFunctions {
    getExecutionCancelSignal(): AbortSignal | undefined;
    getExecutionId(): string;
    getInstanceId(): string;
    getItemIndex(): number;
    getNode(): INode;
    getNodeParameter(name: string, fallback?: unknown): unknown;
    getWorkflow(): { id?: string };
    getWorkflowDataProxy(itemIndex: number): { $runIndex: number };
    helpers: {
      httpRequest(options: IHttpRequestOptions): Promise<unknown>;
      httpRequestWithAuthentication(
        this: IExecuteSingleFunctions, credentials: string, options: IHttpRequestOptions,
      ): Promise<unknown>;
      prepareBinaryData(data: Buffer, fileName?: string, mimeType?: string): Promise<IBinaryData>;
    };
  }

  export type IExecutePaginationFunctions = IExecuteSingleFunctions;

  export interface INodePropertyRouting {
    operations?: {
      pagination?: (
        this: IExecutePaginationFunctions, request: DeclarativeRestApiSettings.ResultOptions,
      ) => Promise<INodeExecutionData[]>;
    };
    request?: DeclarativeRestApiSettings.HttpRequestOptions;
    send?: {
      preSend?: ((this: IExecuteSingleFunctions, options: IHttpRequestOptions) => Promise<IHttpRequestOptions>)[];
      paginate?: boolean;
      property?: string;
      propertyInDotNotation?: boolean;
      type?: "body" | "query";
      value?: string;
    };
  }

  export interface INodePropertyOptions {
    name: string;
    value: string | number | boolean;
    action?: string;
    description?: string;
    routing?: INodePropertyRouting;
  }

  export interface INodePropertyCollection {
    displayName: string;
    name: string;
    values: INodeProperties[];
  }

  export interface INodeProperties {
    displayName: string;
    name: string;
    type: "boolean" | "collection" | "fixedCollection" | "json" | "multiOptions" | "number" | "options" | "string";
    typeOptions?: {
      maxValue?: number;
      minValue?: number;
      multipleValues?: boolean;
      numberPrecision?: number;
      password?: boolean;
      rows?: number;
    };
    default: string | number | boolean | string[] | Record<string, never>;
    description?: string;
    displayOptions?: { show?: { [name: string]: (string | boolean)[] } };
    noDataExpression?: boolean;
    options?: (INodePropertyOptions | INodeProperties | INodePropertyCollection)[];
    placeholder?: string;
    required?: boolean;
    routing?: INodePropertyRouting;
  }

  export interface INodeTypeDescription {
    displayName: string;
    name: string;
    icon: `file:${string}.svg`;
    group: ("input" | "output" | "transform")[];
    version: number;
    subtitle?: string;
    description: string;
    defaults: { name: string };
    inputs: "main"[];
    outputs: "main"[];
    usableAsTool?: true;
    credentials: { name: string; required: boolean }[];
    requestDefaults?: DeclarativeRestApiSettings.HttpRequestOptions;
    properties: INodeProperties[];
  }

  export interface INodeType {
    description: INodeTypeDescription;
  }

  export interface ICredentialType {
    name: string;
    displayName: string;
    icon?: `file:${string}.svg`;
    documentationUrl?: string;
    properties: INodeProperties[];
    authenticate?: { type: "generic"; properties: { headers?: { [name: string]: string } } };
    test?: {
      request: DeclarativeRestApiSettings.HttpRequestOptions;
      rules?: { type: "responseCode"; properties: { value: number; message: string } }[];
    };
  }

  interface ErrorOptions {
    description?: string;
    httpCode?: string;
    itemIndex?: number;
    message?: string;
  }

  export class NodeApiError extends Error {
    constructor(node: INode, response: JsonObject, options?: ErrorOptions);
  }

  export class NodeOperationError extends Error {
    constructor(node: INode, error: Error | string, options?: Omit<ErrorOptions, "httpCode">);
  }

  export function sleep(ms: number): Promise<void>;
}

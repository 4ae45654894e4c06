import type { INodeType, INodeTypeDescription } from "n8n-workflow";

import { BASE_URL } from "../../credentials/GrabdApi.credentials";
import { PROPERTIES } from "./operations";

export class Grabd implements INodeType {
  description: INodeTypeDescription = {
    displayName: "grabd",
    name: "grabd",
    icon: "file:grabd.svg",
    group: ["transform"],
    version: 1,
    subtitle: '={{ $parameter["operation"] }}',
    description: "Capture web pages as images, PDFs and text",
    defaults: { name: "grabd" },
    inputs: ["main"],
    outputs: ["main"],
    usableAsTool: true,
    credentials: [{ name: "grabdApi", required: true }],
    requestDefaults: {
      baseURL: BASE_URL,
      headers: { Accept: "application/json" },
      json: true,
      returnFullResponse: true,
      // The actions read the error of a response, and the key is meant for this address only.
      ignoreHttpStatusErrors: true,
      disableFollowRedirect: true,
    },
    properties: PROPERTIES,
  };
}

import type { ICredentialType } from "n8n-workflow";

/** The API root of the service: what was entered, also without the `/v1`, and with a slash at the end. */
export const BASE_URL = '={{ $credentials.baseUrl.trim().replace(/(\\/v1)?\\/*$/, "/v1") }}';

function refusal(value: number, message: string): { type: "responseCode"; properties: { value: number; message: string } } {
  return { type: "responseCode", properties: { value, message } };
}

export class GrabdApi implements ICredentialType {
  name = "grabdApi";
  displayName = "grabd API";
  icon = "file:grabd.svg" as const;
  properties: ICredentialType["properties"] = [
    {
      displayName: "Base URL",
      name: "baseUrl",
      type: "string",
      default: "",
      required: true,
      placeholder: "e.g. https://grabs.example.com/v1",
      description: "The API root of the service, which ends in /v1",
    },
    {
      displayName: "API Key",
      name: "apiKey",
      type: "string",
      typeOptions: { password: true },
      default: "",
      required: true,
      placeholder: "sk_live_…",
      description: "A key that begins with sk_live_ captures pages; one that begins with sk_test_ returns placeholders",
    },
  ];
  authenticate: ICredentialType["authenticate"] = {
    type: "generic",
    properties: { headers: { Authorization: "=Bearer {{ $credentials.apiKey }}" } },
  };
  test: ICredentialType["test"] = {
    request: { baseURL: BASE_URL, url: "/usage" },
    // What n8n shows for these statuses.
    rules: [
      refusal(401, "The API key is unknown or was revoked."),
      refusal(403, "The API key is valid, but lacks the scope read, which this test needs. It may still capture pages."),
    ],
  };
}

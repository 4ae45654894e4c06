// Connects with a third-party OAuth library, without a browser: node oauth.mjs FILE, where FILE holds {origin, mcp,
// email, password, tls}. `tls` is {host, cert, key} of a site that serves the metadata document of an unregistered
// client. Prints each step.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import * as oauth from "oauth4webapi";
import { challenge, discover, insecure, register } from "./client.mjs";
import { Visitor } from "./visitor.mjs";

const { origin, mcp, email, password, tls } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const redirect = "http://127.0.0.1:4711/callback";

const visitor = new Visitor(origin);

async function connect(as, client, authentication) {
  const { query, verifier, state } = await challenge(client, redirect, { resource: mcp, scope: "grabs" });
  const answered = await visitor.allow(`${as.authorization_endpoint}?${query}`, { email, password });

  const answer = oauth.validateAuthResponse(as, client, answered, state);
  const exchange = () =>
    oauth.authorizationCodeGrantRequest(as, client, authentication, answer, redirect, verifier, insecure);
  const tokens = await oauth.processAuthorizationCodeResponse(as, client, await exchange());
  assert.equal(tokens.scope, "grabs");

  const again = await oauth.refreshTokenGrantRequest(as, client, authentication, tokens.refresh_token, insecure);
  const newer = await oauth.processRefreshTokenResponse(as, client, again);
  assert.notEqual(newer.refresh_token, tokens.refresh_token);
  assert.equal(await usage(newer.access_token), 200);

  const revoked = await oauth.revocationRequest(as, client, authentication, newer.refresh_token, insecure);
  await oauth.processRevocationResponse(revoked);
  assert.equal(await usage(newer.access_token), 401);
  await assert.rejects(async () => {
    const dead = await oauth.refreshTokenGrantRequest(as, client, authentication, newer.refresh_token, insecure);
    await oauth.processRefreshTokenResponse(as, client, dead);
  }, { error: "invalid_grant" });
}

async function usage(token) {
  return (await fetch(`${origin}/v1/usage`, { headers: { authorization: `Bearer ${token}` } })).status;
}

const resource = new URL(mcp);
const found = await oauth.resourceDiscoveryRequest(resource, insecure);
const { authorization_servers: [issuer] } = await oauth.processResourceDiscoveryResponse(resource, found);
assert.equal(issuer, origin);
const as = await discover(issuer);

for (const method of ["none", "client_secret_basic", "client_secret_post"]) {
  const metadata = { client_name: method, redirect_uris: [redirect], token_endpoint_auth_method: method };
  const client = await register(issuer, metadata);
  const authentication = {
    none: () => oauth.None(),
    client_secret_basic: () => oauth.ClientSecretBasic(client.client_secret),
    client_secret_post: () => oauth.ClientSecretPost(client.client_secret),
  }[method]();
  await connect(as, client, authentication);
  console.log(`registered with ${method}: connected, refreshed, revoked`);
}

// The site that serves the client metadata document.
const site = createServer(tls, (_, response) => {
  const metadata = { client_id: document, client_name: "described", redirect_uris: [redirect] };
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ ...metadata, token_endpoint_auth_method: "none" }));
});
await new Promise((ready) => site.listen(0, tls.host, ready));
const document = `https://${tls.host}:${site.address().port}/client.json`;
await connect(as, { client_id: document }, oauth.None());
console.log("described by a document: connected, refreshed, revoked");
site.close();

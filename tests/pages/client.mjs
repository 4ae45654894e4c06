// The steps of an OAuth client: register, create an authorization request, exchange the code.
import * as oauth from "oauth4webapi";

export const insecure = { [oauth.allowInsecureRequests]: true };

export async function discover(issuer) {
  const url = new URL(issuer);
  const response = await oauth.discoveryRequest(url, { algorithm: "oauth2", ...insecure });
  return oauth.processDiscoveryResponse(url, response);
}

export async function register(issuer, metadata) {
  const as = await discover(issuer);
  const wanted = { token_endpoint_auth_method: "none", ...metadata };
  const response = await oauth.dynamicClientRegistrationRequest(as, wanted, insecure);
  return oauth.processDynamicClientRegistrationResponse(response);
}

export async function challenge(client, redirect, changes = {}) {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const query = new URLSearchParams({
    response_type: "code",
    client_id: client.client_id,
    redirect_uri: redirect,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    state,
    ...changes,
  });
  return { query, verifier, state };
}

export async function exchange(issuer, client, parameters, redirect, { verifier, state }) {
  const as = await discover(issuer);
  const answer = oauth.validateAuthResponse(as, client, parameters, state);
  const authentication = oauth.None();
  const response = await oauth.authorizationCodeGrantRequest(
    as, client, authentication, answer, redirect, verifier, insecure,
  );
  return oauth.processAuthorizationCodeResponse(as, client, response);
}

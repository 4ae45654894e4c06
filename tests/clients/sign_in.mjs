// Credentials of the TypeScript clients: a key, or a person who signs in and allows the client.
import { Visitor } from "../pages/visitor.mjs";

const REDIRECT = "http://127.0.0.1:4711/callback";

/// Transport options for `auth`, which is `{"key": "sk_…"}` or `{"email", "password"}`. `answered()` returns the
/// parameters of the authorization response.
export function credential(url, auth) {
  if (auth.key) return { options: { requestInit: { headers: { Authorization: `Bearer ${auth.key}` } } } };
  const authProvider = new Person(new URL(url).origin, auth);
  return { options: { authProvider }, answered: () => authProvider.answer.searchParams };
}

// Keeps client information and tokens in memory, and acts as the person at the browser.
class Person {
  #origin;
  #auth;
  #client;
  #tokens;
  #verifier;
  answer;

  constructor(origin, auth) {
    this.#origin = origin;
    this.#auth = auth;
  }

  redirectUrl = REDIRECT;
  clientMetadata = { client_name: "a library", redirect_uris: [REDIRECT], token_endpoint_auth_method: "none" };
  clientInformation = () => this.#client;
  saveClientInformation = (client) => void (this.#client = client);
  tokens = () => this.#tokens;
  saveTokens = (tokens) => void (this.#tokens = tokens);
  saveCodeVerifier = (verifier) => void (this.#verifier = verifier);
  codeVerifier = () => this.#verifier;
  redirectToAuthorization = async (url) => {
    this.answer = await new Visitor(this.#origin).allow(url, this.#auth);
  };
}

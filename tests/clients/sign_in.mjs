// How the TypeScript clients get in: with a key that they bring along, or by signing in somebody, who allows it on the
// service's pages.
import { Visitor } from "../pages/visitor.mjs";

const REDIRECT = "http://127.0.0.1:4711/callback";

/// What a transport needs for `auth`, which is `{"key": "sk_…"}` or `{"email", "password"}`. `answered()` is what the pages
/// answered to the client's request, as parameters.
export function credential(url, auth) {
  if (auth.key) return { options: { requestInit: { headers: { Authorization: `Bearer ${auth.key}` } } } };
  const authProvider = new Person(new URL(url).origin, auth);
  return { options: { authProvider }, answered: () => authProvider.answer.searchParams };
}

// Keeps in memory what a client is given, and answers for the person at the browser.
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

// A minimal browser: it keeps cookies, fills forms, and follows redirects within the service.
import assert from "node:assert/strict";

export class Visitor {
  #origin;
  #cookies = new Map();

  constructor(origin) {
    this.#origin = origin;
  }

  /// The page at the end of the redirects, or the first URL outside the service.
  async visit(url, form) {
    const response = await fetch(url, {
      method: form ? "POST" : "GET",
      body: form && new URLSearchParams(form),
      headers: { cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
      redirect: "manual",
    });
    for (const line of response.headers.getSetCookie()) {
      const [name, value] = line.split(";")[0].split("=");
      this.#cookies.set(name, value);
    }
    if (response.status !== 303) return { url, status: response.status, html: await response.text() };
    const location = new URL(response.headers.get("location"), url);
    return location.origin === this.#origin ? this.visit(location) : { url: location };
  }

  /// Signs in if asked, and allows an app all that it asks for. Returns the URL that the app is redirected to.
  async allow(url, { email, password }) {
    let page = await this.visit(url);
    if (new URL(page.url).pathname === "/sign-in") {
      page = await this.visit(new URL("/sign-in", this.#origin), { ...hidden(page.html), email, password });
    }
    assert.equal(page.status, 200, page.html);
    const [, place] = page.html.match(/name="place" value="([^"]*)" checked/);
    const ticked = page.html.includes('name="manage" value="yes"') ? { manage: "yes" } : {};
    const form = { ...hidden(page.html), ...ticked, place, decision: "allow" };
    return (await this.visit(new URL("/oauth/authorize", this.#origin), form)).url;
  }
}

function hidden(html) {
  const fields = html.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g);
  return Object.fromEntries([...fields].map(([, name, value]) => [name, value.replaceAll("&#38;", "&")]));
}

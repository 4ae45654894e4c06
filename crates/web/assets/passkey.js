// Passkeys. A button with `data-passkey="use"` sends its form with the answer of a passkey; one with `data-passkey="create"`
// creates a passkey with the options in `data-options`. Without this script both are disabled.
const decode = (text) =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (char) => char.charCodeAt(0));
const encode = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

async function use(form) {
  const response = await fetch("/sign-in/passkey/challenge");
  if (!response.ok) throw new Error(`the challenge has the status ${response.status}`);
  const { token, options } = await response.json();
  const publicKey = { ...options, challenge: decode(options.challenge) };
  const credential = await navigator.credentials.get({ publicKey });
  const { authenticatorData, clientDataJSON, signature, userHandle } = credential.response;
  form.elements.passkey_token.value = token;
  return [credential, { authenticatorData, clientDataJSON, signature, userHandle }];
}

async function create(_, { dataset }) {
  const options = JSON.parse(dataset.options);
  const excludeCredentials = (options.excludeCredentials ?? []).map((known) => ({ ...known, id: decode(known.id) }));
  const user = { ...options.user, id: decode(options.user.id) };
  const publicKey = { ...options, challenge: decode(options.challenge), user, excludeCredentials };
  const credential = await navigator.credentials.create({ publicKey });
  const { attestationObject, clientDataJSON } = credential.response;
  return [credential, { attestationObject, clientDataJSON }];
}

// The credential as JSON. PublicKeyCredential.toJSON is too new for some browsers.
function toJson({ id, rawId, type }, response) {
  const values = Object.entries(response).filter(([, value]) => value);
  const encoded = Object.fromEntries(values.map(([name, value]) => [name, encode(value)]));
  return JSON.stringify({ id, rawId: encode(rawId), type, response: encoded });
}

function explain({ name }, isNew) {
  if (name === "InvalidStateError" && isNew) return "This device has a passkey for your account already.";
  if (name === "NotAllowedError") return isNew ? "No passkey was created. Try again." : "No passkey was used. Try again.";
  return "Passkeys cannot be used here at the moment. Try again later, or in another browser.";
}

for (const button of document.querySelectorAll("button[data-passkey]")) {
  const { form } = button;
  const message = document.getElementById(button.dataset.says);
  const isNew = button.dataset.passkey === "create";
  if (!window.PublicKeyCredential) {
    message.textContent = "This browser does not support passkeys.";
    continue;
  }
  button.disabled = false;
  let isBusy = false;
  button.addEventListener("click", async (event) => {
    event.preventDefault();
    if (isBusy) return;
    // The passkey replaces the code.
    const { code } = form.elements;
    if (code) code.required = false;
    const isComplete = form.reportValidity();
    if (code) code.required = true;
    if (!isComplete) return;
    isBusy = true;
    message.textContent = "";
    try {
      const [credential, response] = await (isNew ? create : use)(form, button);
      form.elements.passkey.value = toJson(credential, response);
      form.submit();
    } catch (error) {
      message.textContent = explain(error, isNew);
    }
    isBusy = false;
  });
}

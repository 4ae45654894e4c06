
// Code that follows forms: what is shown and what is copied are the code of the form as it is. This is appended to the script
// of the documentation, whose functions it uses. The script of a page sets `codeRequest` and calls `followForm`.
const code = document.getElementById("code");
const note = document.getElementById("code-note");

// The request for the code of the form as it is: its URL, and the body of a POST or null.
let codeRequest;
// The request whose answer is shown. None at first: a browser may have filled in the form when it loaded the page again.
let shownRequest = null;
let latest = 0;
let retry;
let typing;

const requestKey = ({ url, body }) => `${url}\n${body}`;

// Shows the code of an answer. The buttons stay if the languages do: browsers drop a press whose target is replaced before the
// button is released, and leaving a field to press one updates the code.
function show(html) {
  const fresh = new DOMParser().parseFromString(html, "text/html").body;
  const blocks = (root) => [...root.querySelectorAll("figure.code")];
  const names = (root) => blocks(root).map(nameOf).join();
  if (!names(fresh) || names(fresh) !== names(code)) {
    code.replaceChildren(...fresh.childNodes);
    groups.length = 0;
    addButtons(code);
    return;
  }
  const about = [code, fresh].map((root) => root.querySelector(":scope > p"));
  about[0]?.replaceChildren(...about[1].childNodes);
  for (const [index, block] of blocks(code).entries()) {
    const shown = block.querySelector("code");
    const text = blocks(fresh)[index].querySelector("code").textContent;
    if (shown.textContent === text) continue;
    shown.textContent = text;
    block.querySelector(".copy").textContent = "Copy";
  }
}

// Only the answer for the latest form is shown, whatever the order of the answers. Code that does not follow the form is marked
// as such.
async function updateCode() {
  const mine = ++latest;
  clearTimeout(retry);
  clearTimeout(typing);
  const request = codeRequest();
  let seconds;
  try {
    const options = request.body === null ? {} : { method: "POST", body: new URLSearchParams(request.body) };
    const response = await fetch(request.url, options);
    const text = await response.text();
    if (mine !== latest) return;
    if (response.ok) {
      show(text);
      note.textContent = "";
      shownRequest = requestKey(request);
      return;
    }
    // Too many requests: the answer says when the next one is allowed.
    seconds = response.status === 429 ? Number(response.headers.get("Retry-After")) : 0;
  } catch {
    if (mine !== latest) return;
  }
  if (seconds > 0) retry = setTimeout(updateCode, seconds * 1000);
  note.textContent = `This code is for the former options. ${seconds > 0 ? `It follows in ${seconds} s.` : "Press Copy to update it."}`;
}

function followForm(form) {
  form.addEventListener("change", ({ target }) => target.name && updateCode());
  form.addEventListener("input", ({ target }) => {
    if (!target.name) return;
    clearTimeout(typing);
    typing = setTimeout(updateCode, 400);
  });
}

// What is copied is the code of the form at the moment of the press.
currentBlock = async (block) => {
  const language = nameOf(block);
  while (requestKey(codeRequest()) !== shownRequest) {
    await updateCode();
    if (note.textContent) return null;
  }
  return [...code.querySelectorAll("figure.code")].find((other) => nameOf(other) === language) ?? null;
};

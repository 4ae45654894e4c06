
// The result beside the capture form: the form is sent without leaving the page, and the answer is shown in its pane. This is
// appended to the scripts of live updates and of the capture form, whose functions it uses.
const result = document.getElementById("result");
const once = form.elements.once;
let isSending = false;

// Shows the errors of a refused form at their fields, as the server does without scripts.
function showErrors() {
  for (const link of result.querySelectorAll(".notice.bad a[href^='#']")) {
    const field = document.getElementById(link.hash.slice(1));
    if (!field) continue;
    const error = document.createElement("p");
    error.className = "error";
    error.id = `${field.id}-error`;
    error.innerHTML = '<span aria-hidden="true">!</span>';
    error.append(Object.assign(document.createElement("span"), { textContent: link.textContent }));
    field.closest(".field, .mode").append(error);
    // A set of check boxes is no field itself.
    if ("name" in field) field.setAttribute("aria-invalid", "true");
    const described = field.closest("[role=group]") ?? field;
    described.setAttribute("aria-describedby", `${described.getAttribute("aria-describedby") ?? ""} ${error.id}`.trim());
    field.closest(".group")?.setAttribute("open", "");
  }
  result.querySelector(".notice.bad")?.focus();
}

function clearErrors() {
  for (const error of form.querySelectorAll(".error")) {
    const field = document.getElementById(error.id.replace(/-error$/, ""));
    const described = field?.closest("[role=group]") ?? field;
    const others = (described?.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => id && id !== error.id);
    field?.removeAttribute("aria-invalid");
    if (others.length > 0) described?.setAttribute("aria-describedby", others.join(" "));
    else described?.removeAttribute("aria-describedby");
    error.remove();
  }
  document.querySelector("main > .notice.bad")?.remove();
}

async function send() {
  const body = new URLSearchParams(new FormData(form));
  body.set("part", "result");
  document.getElementById("state").textContent = "Sending…";
  const response = await fetch(form.action, { method: "POST", body });
  // Other answers are whole pages, such as that the session has ended. The form is sent again for them, which makes no second
  // capture, because it has the same value in `once`.
  if (response.status !== 200 && response.status !== 422) return form.submit();
  clearErrors();
  stream?.close();
  const shown = showParts(await response.text()).querySelector("[data-once]");
  once.value = shown.dataset.once;
  stream = shown.dataset.events && follow(shown.dataset.events);
  if (response.status === 422) showErrors();
  // On narrow screens the result is below the form.
  const { top, bottom } = result.getBoundingClientRect();
  if (top > innerHeight / 2 || bottom < 0) result.scrollIntoView();
}

form.addEventListener("submit", async (event) => {
  if (event.submitter?.hasAttribute("formaction")) return;
  event.preventDefault();
  if (isSending) return;
  if (event.submitter?.name === "use_test_mode") document.getElementById("environment").checked = true;
  isSending = true;
  try {
    await send();
  } catch {
    document.getElementById("state").textContent = "The service cannot be reached. Check your connection and try again.";
  } finally {
    isSending = false;
  }
});

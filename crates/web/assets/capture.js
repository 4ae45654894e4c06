
// The capture form with scripts: presets fill it in, options are found by their texts, and the code follows it. This is appended to
// the script of code, whose functions it uses.
const form = document.querySelector("form.capture");
const code = document.getElementById("code");
const presets = [...document.querySelectorAll(".presets a")];
const presetNames = new Set(presets.flatMap((link) => [...new URL(link.href).searchParams.keys()]));

function setField(name, value) {
  const field = form.elements[name];
  if (field.type === "checkbox") field.checked = value === "true";
  else if (field.tagName === "SELECT" && !value) field.selectedIndex = 0;
  else field.value = value;
  // A value that was filled in is not hidden.
  if (value) field.closest("details")?.setAttribute("open", "");
}

for (const link of presets) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const values = new URL(link.href).searchParams;
    for (const name of presetNames) setField(name, values.get(name) ?? "");
    presets.forEach((other) => other.toggleAttribute("aria-current", other === link));
    link.setAttribute("aria-current", "true");
    updateCode();
  });
}

// Only the latest form is shown, whatever the order of the answers.
let latest = 0;
async function updateCode() {
  const mine = ++latest;
  const body = new URLSearchParams(new FormData(form));
  body.set("part", "code");
  try {
    const response = await fetch(form.dataset.code, { method: "POST", body });
    if (!response.ok || mine !== latest) return;
    code.innerHTML = await response.text();
    groups.length = 0;
    addButtons(code);
  } catch {
    // The former code stays; the button below asks again.
  }
}
form.addEventListener("change", updateCode);

const find = document.getElementById("find");
find?.addEventListener("input", () => {
  const wanted = find.value.trim().toLowerCase();
  let count = 0;
  for (const group of document.querySelectorAll(".more fieldset")) {
    let isShown = false;
    for (const field of group.querySelectorAll(".pair > *")) {
      field.hidden = !field.textContent.toLowerCase().includes(wanted) && !field.querySelector(`[name*="${CSS.escape(wanted)}"]`);
      if (!field.hidden) [isShown, count] = [true, count + 1];
    }
    group.hidden = !isShown;
  }
  document.getElementById("found").textContent = wanted ? `${count} option${count === 1 ? "" : "s"}` : "";
});
// Enter in the search must not capture.
find?.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
find?.addEventListener("change", (event) => event.stopPropagation());


// The capture form with scripts: presets fill it in, options are found by their texts, and the code follows it. This is appended to
// the scripts of code, whose functions it uses.
const form = document.querySelector("form.capture");
const presets = [...document.querySelectorAll(".presets button")];
const presetNames = new Set(["device", "width", "height"]);

function setField(name, value) {
  const field = form.elements[name];
  if (field.type === "checkbox") field.checked = value === "true";
  else if (field.tagName === "SELECT" && !value) field.selectedIndex = 0;
  else field.value = value;
  // A value that was filled in is not hidden.
  if (value) field.closest(".group")?.setAttribute("open", "");
}

// Presets fill in a size, and keep everything else.
for (const button of presets) {
  button.addEventListener("click", (event) => {
    event.preventDefault();
    const values = new URLSearchParams(button.dataset.fields);
    for (const name of presetNames) setField(name, values.get(name) ?? "");
    showDefaults();
    markPreset();
    updateCode();
  });
}

// What is used while a field is empty, where that depends on another field: with this value of it.
function defaultWith(field, value) {
  const pair = field.dataset.defaults.split(" ").find((pair) => pair.startsWith(`${value}=`));
  return pair ? pair.slice(value.length + 1) : field.placeholder;
}

// Marks the preset whose size the form has.
function markPreset() {
  const device = form.elements.device;
  for (const button of presets) {
    const values = new URLSearchParams(button.dataset.fields);
    const wanted = values.get("device") ?? device.options[0].value;
    const isSame = (field) => (values.get(field.name) ?? defaultWith(field, wanted)) === (field.value || field.placeholder);
    const isChosen = device.value === wanted && [form.elements.width, form.elements.height].every(isSame);
    button.setAttribute("aria-pressed", String(isChosen));
  }
}

function showDefaults() {
  for (const field of form.querySelectorAll("[data-defaults]")) {
    field.placeholder = defaultWith(field, form.elements[field.dataset.defaultOf].value);
  }
}

// The credits that are left, when a capture has ended.
const outcome = document.getElementById("outcome");
async function showBalance() {
  if (outcome.querySelector(".stages")) return;
  try {
    const response = await fetch(form.dataset.balance);
    if (response.ok) showParts(await response.text());
  } catch {
    // The number is right again after the next capture.
  }
}
new MutationObserver(showBalance).observe(outcome, { childList: true });

form.addEventListener("change", ({ target }) => {
  if (!target.name) return;
  showDefaults();
  markPreset();
});
// A browser may have restored what was entered before.
showDefaults();
markPreset();

codeRequest = () => {
  const body = new URLSearchParams(new FormData(form));
  body.set("part", "code");
  return { url: form.dataset.code, body: body.toString() };
};
followForm(form);

// The search opens the groups with options that match, and closes them again.
const find = document.getElementById("find");
const groupsOfForm = [...form.querySelectorAll(".group")];
let openBefore = null;
find.addEventListener("input", () => {
  const wanted = find.value.trim().toLowerCase();
  openBefore ??= groupsOfForm.filter((group) => group.open);
  let count = 0;
  for (const group of groupsOfForm) {
    let isShown = false;
    for (const field of group.querySelectorAll(".option")) {
      field.hidden = !field.textContent.toLowerCase().includes(wanted) && !field.querySelector(`[name*="${CSS.escape(wanted)}"]`);
      if (!field.hidden) [isShown, count] = [true, count + 1];
    }
    group.hidden = !isShown;
    group.open = wanted ? isShown : openBefore.includes(group);
  }
  if (!wanted) openBefore = null;
  document.getElementById("found").textContent = wanted ? `${count} option${count === 1 ? "" : "s"}` : "";
});
// Enter in the search must not capture.
find.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());

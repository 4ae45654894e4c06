
// The capture form with scripts: presets fill it in, options are found by their texts, and the code follows it. This is appended to
// the scripts of code, whose functions it uses.
const form = document.querySelector("form.capture");
const presets = [...document.querySelectorAll(".presets a")];
const presetNames = new Set(presets.flatMap((link) => [...new URL(link.href).searchParams.keys()]));

function setField(name, value) {
  const field = form.elements[name];
  if (field.type === "checkbox") field.checked = value === "true";
  else if (field.tagName === "SELECT" && !value) field.selectedIndex = 0;
  else field.value = value;
  // A value that was filled in is not hidden.
  if (value) field.closest(".group")?.setAttribute("open", "");
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
find.addEventListener("change", (event) => event.stopPropagation());

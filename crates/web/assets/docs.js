// The documentation with scripts: examples in several languages become tabs, and code can be copied. Without scripts the
// examples are shown below each other.
const LANGUAGE = "docs-language";

// Open the contents where there is room for them beside the text.
const contents = document.querySelector(".contents");
if (contents && matchMedia("(min-width: 60rem)").matches) contents.open = true;

function copyButton(block) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.querySelector("code").textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(block.querySelector("code"));
      button.textContent = "Selected";
    }
  });
  return button;
}

const blocks = [...document.querySelectorAll("figure.code")];
// The clipboard needs a secure context; elsewhere the button selects the code.
for (const block of blocks) block.append(copyButton(block));

// Groups of adjacent blocks in different languages.
const groups = [];
for (const block of blocks) {
  if (!block.querySelector("figcaption")) continue;
  const last = groups.at(-1);
  if (last?.at(-1) === block.previousElementSibling) last.push(block);
  else groups.push([block]);
}

function choose(language) {
  for (const group of groups.filter((group) => group.length > 1)) {
    const chosen = group.find((block) => nameOf(block) === language);
    if (!chosen) continue;
    group.forEach((block) => (block.hidden = block !== chosen));
    group.buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.textContent === language)));
  }
}

function nameOf(block) {
  return block.querySelector("figcaption").textContent;
}

for (const group of groups.filter((group) => group.length > 1)) {
  const bar = document.createElement("div");
  bar.className = "languages";
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "Language");
  group.buttons = group.map((block) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = nameOf(block);
    block.querySelector("figcaption").hidden = true;
    button.addEventListener("click", () => {
      choose(button.textContent);
      try {
        localStorage.setItem(LANGUAGE, button.textContent);
      } catch {
        // Without storage the choice holds for this page.
      }
    });
    return button;
  });
  bar.append(...group.buttons);
  group[0].before(bar);
  choose(nameOf(group[0]));
}
let remembered;
try {
  remembered = localStorage.getItem(LANGUAGE);
} catch {
  // Without storage the first language is shown.
}
if (remembered) choose(remembered);

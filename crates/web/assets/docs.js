// The documentation with scripts: examples in several languages become tabs, and code can be copied. Without scripts the
// examples are shown below each other.
const LANGUAGE = "docs-language";

// The block to copy instead of one that was pressed, or null if there is none. A page whose code follows a form replaces this.
let currentBlock = async (block) => block;

function copyButton(block) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const current = await currentBlock(block);
    // The code may have been replaced, and this button with it.
    const shown = current?.querySelector(".copy") ?? button;
    if (!current) return void (shown.textContent = "Not current");
    try {
      await navigator.clipboard.writeText(current.querySelector("code").textContent);
      shown.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(current.querySelector("code"));
      shown.textContent = "Selected";
    }
  });
  return button;
}

// Groups of adjacent blocks in different languages.
const groups = [];

// Adds the buttons to the code below `root`.
function addButtons(root) {
  const blocks = [...root.querySelectorAll("figure.code")];
  // The clipboard needs a secure context; elsewhere the button selects the code.
  for (const block of blocks) block.append(copyButton(block));
  const added = [];
  for (const block of blocks) {
    if (!block.querySelector("figcaption")) continue;
    const last = added.at(-1);
    if (last?.at(-1) === block.previousElementSibling) last.push(block);
    else added.push([block]);
  }
  for (const group of added.filter((group) => group.length > 1)) addLanguages(group);
  const language = rememberedLanguage();
  if (language) choose(language);
}

function choose(language) {
  for (const group of groups) {
    const chosen = group.find((block) => nameOf(block) === language);
    if (!chosen) continue;
    group.forEach((block) => (block.hidden = block !== chosen));
    group.buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.textContent === language)));
  }
}

function nameOf(block) {
  return block.querySelector("figcaption").textContent;
}

function addLanguages(group) {
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
  groups.push(group);
  choose(nameOf(group[0]));
}

function rememberedLanguage() {
  try {
    return localStorage.getItem(LANGUAGE);
  } catch {
    // Without storage the first language is shown.
    return null;
  }
}

addButtons(document);

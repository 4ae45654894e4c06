// On every page: the chosen theme, the reader's time as a tooltip of times, the menus, and the keys of the gallery. Without
// this script the theme is that of the system, and menus close by their summary alone. It runs before the page is painted,
// so that the theme does not change visibly.
(() => {
  const KEY = "theme";
  const THEMES = { system: "System", light: "Light", dark: "Dark" };

  function storedTheme() {
    try {
      return localStorage.getItem(KEY) in THEMES ? localStorage.getItem(KEY) : "system";
    } catch {
      return "system";
    }
  }

  function applyTheme(theme) {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }

  function themeMenu() {
    const label = document.createElement("label");
    const select = document.createElement("select");
    for (const [value, text] of Object.entries(THEMES)) select.add(new Option(text, value));
    select.value = storedTheme();
    select.addEventListener("change", () => {
      applyTheme(select.value);
      try {
        localStorage.setItem(KEY, select.value);
      } catch {
        // Without storage the choice holds for this page.
      }
    });
    label.append("Theme", select);
    return label;
  }

  const local = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });

  // All pages show times in UTC.
  function addLocalTimes() {
    for (const time of document.querySelectorAll('time[datetime*="T"]:not([title])')) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.getTime())) time.title = `${local.format(at)} in your time zone`;
    }
  }

  // Moves through the captures of the gallery. Keys that are typed into fields, or with a modifier, are left alone.
  function handleKey(event) {
    const target = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input:not([type=checkbox]), select, textarea")) return;
    const cards = [...document.querySelectorAll(".gallery .card")];
    const current = cards.findIndex((card) => card.contains(target));
    const actions = {
      "/": () => document.getElementById("q"),
      j: () => cards[Math.min(current + 1, cards.length - 1)]?.querySelector("a"),
      k: () => cards[Math.max(current - 1, 0)]?.querySelector("a"),
      x: () => cards[current]?.querySelector("input[name=grab]"),
    };
    if (cards.length === 0) return;
    if (!Object.hasOwn(actions, event.key)) return void handleSelectionKey(event);
    const next = actions[event.key]();
    if (!next) return;
    event.preventDefault();
    if (event.key === "x") next.click();
    else next.focus();
  }

  // Presses the button for the selected captures that has this key. Escape closes an open menu first.
  function handleSelectionKey(event) {
    const button = [...document.querySelectorAll(".selection [data-key]")].find(({ dataset }) => dataset.key === event.key);
    const isMenuOpen = event.key === "Escape" && document.querySelector(".drop[open]");
    if (!button || button.disabled || isMenuOpen || countSelected() === 0) return;
    event.preventDefault();
    button.click();
  }

  const countSelected = () => document.querySelectorAll(".gallery input[name=grab]:checked").length;

  // Says how many captures are selected. Two can be compared.
  function showSelection() {
    const count = document.querySelector(".selection .count");
    if (!count) return;
    const selected = countSelected();
    count.textContent = `${selected} selected`;
    document.querySelector(".selection [data-key=c]").disabled = selected !== 2;
  }

  // Shows the difference or the image.
  function which(button) {
    button.closest(".pictures").classList.toggle("of-change", button.dataset.which === "difference");
    for (const other of button.parentElement.children) other.setAttribute("aria-pressed", String(other === button));
  }

  // The size of an image in a viewer.
  function zoom(button) {
    const view = button.closest(".view");
    for (const name of ["fit", "actual"]) view.classList.toggle(name, button.dataset.zoom === name);
    for (const other of view.querySelectorAll("[data-zoom]")) other.setAttribute("aria-pressed", String(other === button));
  }

  // The clipboard API needs a secure context; without TLS the older command still works.
  async function copy(button) {
    const text = button.dataset.copy ?? document.getElementById(button.dataset.copiesText).textContent;
    let isCopied = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const field = Object.assign(document.createElement("textarea"), { value: text, className: "unseen" });
      document.body.append(field);
      field.select();
      isCopied = document.execCommand("copy");
      field.remove();
      button.focus();
    }
    const label = (button.dataset.label ??= button.textContent);
    button.textContent = isCopied ? "Copied" : "Select the text";
    setTimeout(() => (button.textContent = label), 2000);
  }

  function handleClick({ target }) {
    const button = target.closest?.("[data-zoom], [data-which], [data-copy], [data-copies-text]");
    if (button?.dataset.zoom) zoom(button);
    else if (button?.dataset.which) which(button);
    else if (button) copy(button);
  }

  // A menu closes when something else is pressed, and by Escape, which returns to its summary.
  function closeMenus(event) {
    const isEscape = event.type === "keydown" && event.key === "Escape";
    if (event.type === "keydown" && !isEscape) return;
    for (const menu of document.querySelectorAll(".drop[open], .menu[open]")) {
      if (!isEscape && menu.contains(event.target)) continue;
      if (isEscape && menu.contains(event.target)) menu.querySelector("summary").focus();
      menu.open = false;
    }
  }

  applyTheme(storedTheme());
  addEventListener("keydown", handleKey);
  addEventListener("click", handleClick);
  addEventListener("change", showSelection);
  // A form is cleared after its event. A page from the history has its former selection.
  addEventListener("reset", () => setTimeout(showSelection));
  addEventListener("pageshow", showSelection);
  addEventListener("keydown", closeMenus);
  addEventListener("pointerdown", closeMenus);
  // Also those of captures that arrive later.
  new MutationObserver(addLocalTimes).observe(document.documentElement, { childList: true, subtree: true });
  addEventListener("DOMContentLoaded", () => document.getElementById("theme").append(themeMenu()));
})();

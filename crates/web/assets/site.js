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
    if (cards.length === 0 || !Object.hasOwn(actions, event.key)) return;
    const next = actions[event.key]();
    if (!next) return;
    event.preventDefault();
    if (event.key === "x") next.click();
    else next.focus();
  }

  // The size of an image in a viewer.
  function zoom(button) {
    const view = button.closest(".view");
    for (const name of ["fit", "actual"]) view.classList.toggle(name, button.dataset.zoom === name);
    for (const other of view.querySelectorAll("[data-zoom]")) other.setAttribute("aria-pressed", String(other === button));
  }

  // The clipboard API needs a secure context; without TLS the older command still works.
  async function copy(button) {
    let isCopied = true;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch {
      const field = Object.assign(document.createElement("textarea"), { value: button.dataset.copy, className: "unseen" });
      document.body.append(field);
      field.select();
      isCopied = document.execCommand("copy");
      field.remove();
      button.focus();
    }
    const label = (button.dataset.label ??= button.textContent);
    button.textContent = isCopied ? "Copied" : "Select the URL";
    setTimeout(() => (button.textContent = label), 2000);
  }

  function handleClick({ target }) {
    const button = target.closest?.("[data-zoom], [data-copy]");
    if (button?.dataset.zoom) zoom(button);
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
  addEventListener("keydown", closeMenus);
  addEventListener("pointerdown", closeMenus);
  // Also those of captures that arrive later.
  new MutationObserver(addLocalTimes).observe(document.documentElement, { childList: true, subtree: true });
  addEventListener("DOMContentLoaded", () => document.getElementById("theme").append(themeMenu()));
})();

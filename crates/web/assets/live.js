// Updates the page from Server-Sent Events: each event contains the changed parts of the page, which replace the parts
// with the same id.
const live = document.querySelector("[data-events]");
const events = new EventSource(live.dataset.events);

events.addEventListener("parts", ({ data }) => {
  const fresh = new DOMParser().parseFromString(data, "text/html");
  for (const part of fresh.querySelectorAll("[data-part]")) {
    const shown = document.getElementById(part.id);
    if (!shown || shown.innerHTML === part.innerHTML) continue;
    const hadFocus = shown.contains(document.activeElement);
    const isSelected = shown.querySelector("input[name=grab]")?.checked;
    shown.replaceChildren(...part.childNodes);
    if (isSelected) shown.querySelector("input[name=grab]").checked = true;
    if (hadFocus) shown.querySelector("a")?.focus();
  }
  const title = fresh.querySelector("[data-title]");
  if (title) document.title = title.dataset.title;
});

events.addEventListener("end", () => events.close());

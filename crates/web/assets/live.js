// Shows what has happened since the page was loaded: the server writes the parts of the page that have changed, and each
// takes the place of the one with its id.
const live = document.querySelector("[data-events]");
const news = new EventSource(live.dataset.events);

news.addEventListener("parts", ({ data }) => {
  const fresh = new DOMParser().parseFromString(data, "text/html");
  for (const part of fresh.querySelectorAll("[data-part]")) {
    const shown = document.getElementById(part.id);
    if (!shown || shown.innerHTML === part.innerHTML) continue;
    const hadFocus = shown.contains(document.activeElement);
    shown.replaceChildren(...part.childNodes);
    if (hadFocus) shown.querySelector("a")?.focus();
  }
  const title = fresh.querySelector("[data-title]");
  if (title) document.title = title.dataset.title;
});

news.addEventListener("end", () => news.close());

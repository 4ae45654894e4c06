// Updates the page from Server-Sent Events: each event contains the changed parts of the page, which replace the parts
// with the same id.
function showParts(html) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  for (const part of fresh.querySelectorAll("[data-part]")) {
    const shown = document.getElementById(part.id);
    if (!shown || shown.innerHTML === part.innerHTML) continue;
    shown.replaceChildren(...part.childNodes);
  }
  const title = fresh.querySelector("[data-title]");
  if (title) document.title = title.dataset.title;
  return fresh;
}

// Follows the stream at `path` until it ends.
function follow(path) {
  const events = new EventSource(path);
  events.addEventListener("parts", ({ data }) => showParts(data));
  events.addEventListener("end", () => events.close());
  return events;
}

const live = document.querySelector("[data-events]");
let stream = live && follow(live.dataset.events);

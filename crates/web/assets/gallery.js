
// New captures in the gallery: a button says how many there are, and inserts them, so that nothing moves under the reader's
// pointer, selection or focus. This is appended to the script of live updates, whose functions it uses.
const fresh = document.getElementById("fresh");
const gallery = document.querySelector(".gallery");
const PERIOD_MS = 5000;
// Questions without the page being hidden and shown: those of an hour.
const MAX_POLLS = 720;
// Captures that one stream can follow.
const MAX_FOLLOWED = 32;

// The list of new captures that was received last.
let found = null;
let timer = 0;
let polls = 0;
let isAsking = false;

async function poll() {
  clearTimeout(timer);
  if (document.hidden || isAsking || polls >= MAX_POLLS) return;
  isAsking = true;
  polls += 1;
  try {
    const url = new URL(fresh.dataset.path, location.href);
    if (fresh.dataset.since) url.searchParams.set("since", fresh.dataset.since);
    const response = await fetch(url);
    // Signed out, or the newest capture is not kept any more.
    if (!response.ok) return;
    showCount(new DOMParser().parseFromString(await response.text(), "text/html").querySelector("ul"));
  } catch {
    // The next question may be answered.
  } finally {
    isAsking = false;
  }
  timer = setTimeout(poll, PERIOD_MS);
}

function showCount(list) {
  const count = Number(list.dataset.count);
  found = count > 0 ? list : null;
  fresh.classList.toggle("found", count > 0);
  const text = `${count}${"more" in list.dataset ? "+" : ""} new capture${count === 1 ? "" : "s"}`;
  if (count === 0 || fresh.textContent === text) return;
  fresh.textContent = text;
  document.getElementById("news").textContent = text;
}

function insert() {
  if (!gallery || "more" in found.dataset) return location.reload();
  const cards = [...found.querySelectorAll(".card")].filter((card) => !document.getElementById(card.id));
  gallery.prepend(...cards);
  fresh.dataset.since = cards[0]?.querySelector("input[name=grab]").value ?? fresh.dataset.since;
  fresh.classList.remove("found");
  found = null;
  gallery.querySelector(".card a").focus();
  // One stream for all that are open, because a browser has few connections to a host.
  const open = [...gallery.querySelectorAll(".card:has(.state.open) input[name=grab]")].slice(0, MAX_FOLLOWED);
  stream?.close();
  const ids = new URLSearchParams(open.map((box) => ["grab", box.value]));
  stream = open.length > 0 ? follow(`${fresh.dataset.stream}?${ids}`) : null;
}

if (fresh) {
  fresh.addEventListener("click", () => found && insert());
  document.addEventListener("visibilitychange", () => {
    polls = 0;
    poll();
  });
  timer = setTimeout(poll, PERIOD_MS);
}

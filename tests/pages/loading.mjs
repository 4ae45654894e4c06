// Checks how a page loads on a phone without a cache: layout shifts, images without dimensions, requests and bytes.
//
// Each path is checked once without and once with images, in a second tab of the visitor. If GRABD_TEST_PERFORMANCE names a
// file, Lighthouse's scores are appended to it (`script/bench pages`).
// Maximum requests of a page besides images: itself, the style sheet, the font, the icon, the script of all
// pages, and one of its own.
const REQUESTS = 6;
// Maximum transfer size of these requests.
const BYTES = 115_000;
// The same of pages of the API reference, whose tables have all members of a request.
const REFERENCE_BYTES = 200_000;
// The same of the capture form, which has a field for each option, of the changelog, and of the forms of monitors, which have
// fields for all that is compared and explain them.
const LONG_BYTES = 130_000;
const PHONE = { width: 412, height: 823 };
const scores = process.env.GRABD_TEST_PERFORMANCE;

export async function openLoading(executablePath) {
  // Loading Lighthouse takes a second of processor time.
  const lighthouse = scores ? await (await import("./lighthouse.mjs")).openLighthouse(executablePath, scores) : undefined;
  const known = new Set();

  // Returns the findings for a page, if it needs a check.
  async function audit(name, page) {
    // A page that waits for events never finishes loading. It is checked after its events.
    if ((await page.locator("[data-events]").count()) > 0) return [];
    const kind = `${pathOf(page)} ${(await page.locator("img").count()) > 0}`;
    if (known.has(kind)) return [];
    known.add(kind);
    const found = await load(name, page);
    if (lighthouse) found.push(...(await lighthouse.audit(name, page)));
    return found;
  }

  return { audit, close: async () => lighthouse?.close() };
}

async function load(name, page) {
  const tab = await page.context().newPage();
  // Only reached by failing walks.
  tab.setDefaultTimeout(60_000);
  try {
    await tab.setViewportSize(PHONE);
    const session = await page.context().newCDPSession(tab);
    await session.send("Network.enable");
    await session.send("Network.setCacheDisabled", { cacheDisabled: true });
    const parts = new Map();
    session.on("Network.responseReceived", ({ requestId, type, response }) => {
      if (type !== "Image" && !response.url.startsWith("data:")) parts.set(requestId, { url: response.url, bytes: 0 });
    });
    session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
      if (parts.has(requestId)) parts.get(requestId).bytes = encodedDataLength;
    });
    await tab.goto(page.url(), { waitUntil: "networkidle" });
    if (tab.url() !== page.url()) return [`${name}: a second load was redirected to ${tab.url()}`];
    const { shift, unsized } = await tab.evaluate(measure);
    const found = [];
    if (shift !== 0) found.push(`${name}: cumulative layout shift is ${shift}`);
    if (unsized.length > 0) found.push(`${name}: images without dimensions: ${unsized}`);
    const loaded = [...parts.values()];
    const bytes = loaded.reduce((sum, part) => sum + part.bytes, 0);
    if (loaded.length > REQUESTS) found.push(`${name} requests ${loaded.map(({ url }) => url)}`);
    const limit = limitOf(new URL(page.url()).pathname);
    if (bytes > limit) found.push(`${name} has ${bytes} bytes without its images`);
    return found;
  } finally {
    await tab.close();
  }
}

// Runs in the page. An image needs both attributes, or both in its styles, to have its space before it is loaded.
async function measure() {
  let shift = 0;
  const add = (entries) => entries.forEach((entry) => (shift += entry.value));
  const observer = new PerformanceObserver((list) => add(list.getEntries()));
  observer.observe({ type: "layout-shift", buffered: true });
  // The buffered entries are delivered before the second frame.
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  await frame();
  await frame();
  add(observer.takeRecords());
  const sized = (image) => image.hasAttribute("width") && image.hasAttribute("height");
  const styled = (image) => {
    const styles = image.computedStyleMap();
    const fixed = (name) => styles.get(name)?.toString() !== "auto";
    return ["fixed", "absolute"].includes(styles.get("position").toString()) || (fixed("width") && fixed("height"));
  };
  const images = [...document.images].filter((image) => image.checkVisibility());
  return { shift, unsized: images.filter((image) => !sized(image) && !styled(image)).map((image) => image.outerHTML) };
}

// The path of a page, with a star for each id.
export function pathOf(page) {
  return new URL(page.url()).pathname.replaceAll(/[\w-]{20,}/g, "*");
}

function limitOf(path) {
  if (path.startsWith("/docs/api")) return REFERENCE_BYTES;
  return /\/capture$|^\/docs\/changelog$|\/monitors\/(new|[^/]+\/change)$/.test(path) ? LONG_BYTES : BYTES;
}

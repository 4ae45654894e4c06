const doctype = () => {
  const type = doctypeOf(document);
  return type ? `<!DOCTYPE ${type.name}>\n` : '';
};

const html = ({ most }) => {
  const element = rootOf(document);
  if (!element) return { content: '' };
  const shadowRoots = trees().slice(1);
  let content = doctype();
  if (shadowRoots.length > 0) {
    const empty = outerHtml(cloneNode(element, false));
    const end = empty.lastIndexOf('</');
    content += end < 0 ? empty : empty.slice(0, end) + getHtml(element, { shadowRoots }) + empty.slice(end);
  } else {
    content += outerHtml(element);
  }
  return content.length > most ? { isTooLarge: true } : { content };
};

const cut = (content, most) => ({ content: content.slice(0, most), isCut: content.length > most });

const text = ({ most, main }) => {
  const found = main ? mainContent() : null;
  if (found) return cut(plainText(found), most);
  const body = bodyOf(document) ?? rootOf(document);
  const content = body instanceof HTMLElement ? innerText(body) : body ? textContent(body) : '';
  return { ...cut(content.replace(/\u0000/g, ''), most), isWhole: Boolean(main) };
};

const MAX_LINKS = 5000;
const MAX_LINK_CHARACTERS = 1 << 20;

const links = () => {
  const all = [];
  let size = 0;
  const anchors = trees().flatMap((tree) => selectIn(tree, 'a[href], area[href]'));
  for (const anchor of anchors) {
    const url = webUrl(anchor instanceof HTMLAnchorElement ? anchorUrl(anchor) : anchor instanceof HTMLAreaElement ? areaUrl(anchor) : '');
    if (!url) continue;
    if (all.length === MAX_LINKS || size > MAX_LINK_CHARACTERS) return { links: all, isCut: true };
    const label = textContent(anchor) || attribute(anchor, 'aria-label') || attribute(anchor, 'alt') || '';
    const link = { url, text: oneLine(label, 300), rel: oneLine(attribute(anchor, 'rel') ?? '', 100) };
    size += link.url.length + link.text.length + link.rel.length;
    all.push(link);
  }
  return { links: all, isCut: false };
};

// Visible headings, with the row of the image in which each begins. It is negative above the image.

const MAX_HEADINGS = 2000;
const MAX_HEADING = 200;

const textWithImages = (element) => {
  const text = oneLine(element instanceof HTMLElement ? innerText(element) : textContent(element), MAX_HEADING);
  if (text) return text;
  const labels = selectIn(element, 'img[alt], [aria-label], svg title').map((inner) => attribute(inner, 'alt') || attribute(inner, 'aria-label') || textContent(inner));
  return oneLine(labels.join(' '), MAX_HEADING);
};

const headings = ({ area, leftEdge, image }) => {
  const origin = area ? { x: area.x - scrollX + leftEdge, y: area.y - scrollY } : { x: visualViewport.offsetLeft, y: visualViewport.offsetTop };
  const width = area ? area.width : visualViewport.width;
  const factor = image.width / width;
  const all = [];
  for (const element of trees().flatMap((tree) => selectIn(tree, 'h1, h2, h3, h4, h5, h6'))) {
    if (!isVisible(element, { opacityProperty: true, visibilityProperty: true })) continue;
    const box = boxOf(element);
    // Those for screen readers only are a pixel large, or outside of the page.
    const isShown = box.width > 1 && box.height > 1 && box.right > origin.x && box.left < origin.x + width && box.bottom + scrollY > 0;
    const text = isShown ? oneLine(textWithImages(element).toWellFormed(), MAX_HEADING).toWellFormed() : '';
    if (!text) continue;
    all.push({ y: Math.round((box.top - origin.y) * factor), text });
    if (all.length === MAX_HEADINGS) break;
  }
  return { headings: all };
};

// Sizes and margins of the page's styles win over those that the browser prints with, so that they are overruled, unless they
// are to be kept. On a roll of paper, the styles break the page no more. `rules` fill the margins.
const ROLL = '*, *::before, *::after { break-before: auto !important; break-after: auto !important; page: auto !important }';
const paper = ({ margins, isRoll, rules }) => {
  const sheet = new CSSStyleSheet();
  const page = margins === null ? '' : `@page { size: auto !important; margin: ${margins} !important }`;
  sheet.replaceSync(`${page} ${isRoll ? ROLL : ''} ${rules}`);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  return {};
};

const height = () => {
  const element = document.scrollingElement ?? rootOf(document);
  return { height: element instanceof Element ? element.scrollHeight : 0 };
};

// The day in the time zone of the page.
const today = () => {
  const now = new Date();
  const two = (number) => String(number).padStart(2, '0');
  return { date: `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}` };
};

// Images: the address of the one that is meant, where the page loads it late or in several sizes.

const LAZY_NAMES = /^data-(?:.*(?:src|original|lazy|image|img|url|full|large|loader|hi-?res|zoom|path)[\w-]*)$/i;
const IMAGE_ADDRESS = /^(?:https?:)?\/?[^\s<>"']+\.(?:jpe?g|png|webp|gif|avif|svg)(?:[?#/][^\s]*)?$/i;
const PLACEHOLDER = /^(?:data:|about:|blob:|$)|(?:^|[/_-])(?:placeholder|spacer|blank|transparent|pixel|cleardot|1x1|loading|lazy)(?:[._-][^/]*)?\.(?:gif|png|svg|jpe?g)(?:[?#]|$)/i;
const attributeNames = method(Element.prototype, 'getAttributeNames');
const baseOf = getter(Node.prototype, 'baseURI');
const naturalWidth = getter(HTMLImageElement.prototype, 'naturalWidth');
const naturalHeight = getter(HTMLImageElement.prototype, 'naturalHeight');

const absolute = (address) => {
  try {
    return webUrl(new URL(address.trim(), baseOf(document)).href);
  } catch {
    return null;
  }
};
// The largest candidate of a set of sources.
const largestOf = (set) => {
  if (!set || set.length > 20000) return null;
  let best = null;
  const offer = (address, size) => {
    const [, number, unit] = /^([\d.]+)([wxh])$/.exec(size) ?? [null, '1', 'x'];
    const value = Number.parseFloat(number) * (unit === 'w' ? 1 : 10000);
    if (address && !PLACEHOLDER.test(address) && (best === null || value > best.value)) best = { address, value };
  };
  // Addresses may have commas within, and end at a space or at their last comma.
  let address = null;
  for (const word of set.split(/\s+/)) {
    if (address === null) {
      const bare = word.replace(/^,+|,+$/g, '');
      if (word.endsWith(',')) offer(bare, '');
      else address = bare || null;
      continue;
    }
    const comma = word.indexOf(',');
    offer(address, comma < 0 ? word : word.slice(0, comma));
    address = comma < 0 || comma === word.length - 1 ? (comma < 0 ? address : null) : word.slice(comma + 1);
  }
  if (address !== null) offer(address, '');
  return best ? absolute(best.address) : null;
};
const sourceOf = (element) => {
  const own = attribute(element, 'src') ?? '';
  const parent = parentElement(element);
  const sources = parent && localName(parent) === 'picture' ? selectIn(parent, ':scope > source').slice(0, 20) : [];
  // The first source of a picture is the one that a browser of today shows.
  for (const source of sources) {
    const best = largestOf(attribute(source, 'srcset')) ?? largestOf(attribute(source, 'data-srcset'));
    if (best) return best;
  }
  const sets = [attribute(element, 'srcset'), attribute(element, 'data-srcset'), attribute(element, 'data-lazy-srcset')];
  for (const set of sets) {
    const best = largestOf(set);
    if (best) return best;
  }
  const isPlaceholder = PLACEHOLDER.test(own);
  if (own && !isPlaceholder) return webUrl(imageSource(element));
  for (const name of attributeNames(element).slice(0, 50)) {
    const value = attribute(element, name) ?? '';
    if (!name.startsWith('data-') || value.length > MAX_URL) continue;
    if (/srcset/i.test(name)) {
      const best = largestOf(value);
      if (best) return best;
    } else if ((/^data-(?:lazy-|original-|full-|real-)?(?:src|original|lazy|url)$/i.test(name) && !PLACEHOLDER.test(value)) || (LAZY_NAMES.test(name) && (/^https?:\/\//i.test(value) || IMAGE_ADDRESS.test(value)) && !PLACEHOLDER.test(value) && /[/.]/.test(value))) {
      const url = absolute(value);
      if (url) return url;
    }
  }
  return webUrl(shownSource(element)) ?? (isPlaceholder && /^(?:data:|$)/i.test(own) ? null : webUrl(imageSource(element)));
};
// Pictures of a pixel count visitors.
const isPixel = (element) => {
  const [width, height] = ['width', 'height'].map((name) => Number.parseInt(attribute(element, name) ?? '', 10));
  return (width <= 2 && height <= 2) || (naturalWidth(element) > 0 && naturalWidth(element) <= 2 && naturalHeight(element) <= 2);
};
const hasImages = once((element) => selectIn(element, 'img').slice(0, 20).some((image) => sourceOf(image)));
// An image for browsers without scripts, where no other one is beside it.
const imageWithoutScript = (element) => {
  const text = textContent(element);
  if (text.length > 20000) return null;
  // Up to the last end of a tag, so that the first beginning has one.
  const tag = /<img\b[^>]*>/i.exec(text.slice(0, text.lastIndexOf('>') + 1))?.[0];
  if (!tag) return null;
  let around = parentElement(element);
  for (let up = 0; around && up < 3 && !/^(?:figure|picture|p|li|td)$/.test(localName(around)); up += 1) {
    const outer = parentElement(around);
    if (!outer || /^(?:article|section|main|body)$/.test(localName(outer))) break;
    around = outer;
  }
  if (around && hasImages(around)) return null;
  const read = (name) => (new RegExp(`\\s${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`, 'i').exec(tag) ?? []).slice(1).find((value) => value !== undefined)?.replace(/&amp;/g, '&').replace(/&quot;/g, '"') ?? '';
  const width = Number.parseInt(read('width') || '99', 10);
  const url = largestOf(read('srcset')) ?? (PLACEHOLDER.test(read('src')) ? null : absolute(read('src')));
  return url && width > 2 ? { url, alt: read('alt') } : null;
};

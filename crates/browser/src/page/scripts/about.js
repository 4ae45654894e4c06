// What the page says about itself.

const MAX_TITLE = 300;
const MAX_DESCRIPTION = 1000;
const MAX_LANG = 64;
const MAX_ADDRESS = 2048;

// One line of at most this many characters, or null. Names in the document may replace its properties by elements.
const line = (text, most) => {
  if (typeof text !== 'string') return null;
  const clean = text.slice(0, 10 * most).replace(/\s+/g, ' ').trim();
  return clean ? [...clean].slice(0, most).join('') : null;
};

const address = (link) => webAddress(link?.href);

const webAddress = (url) => {
  return typeof url === 'string' && /^https?:/.test(url) && url.length <= MAX_ADDRESS ? url : null;
};

const absolute = (text) => {
  if (typeof text !== 'string' || !text) return null;
  try {
    return new URL(text.slice(0, 2 * MAX_ADDRESS), document.baseURI).href;
  } catch {
    return null;
  }
};

// A number, or a word: letters, digits and marks, also with apostrophes, dots and hyphens inside. Chinese and Japanese have no
// spaces, so that each character counts, as in word processors. The browser takes milliseconds to read this expression.
const allWords = () => {
  const alone = '\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}';
  const letters = `(?:(?![${alone}])[\\p{L}\\p{N}\\p{M}])+`;
  return new RegExp(`[${alone}]|${letters}(?:['’.,\\-](?=[\\p{L}\\p{N}])${letters})*`, 'gu');
};

// The same for text without other letters than Latin ones.
const IS_LATIN = /^[\u0000-\u024f\u2000-\u206f\u20a0-\u20bf\u2190-\u21ff]*$/;
const LETTER = 'A-Za-z0-9\\u00aa\\u00b2\\u00b3\\u00b5\\u00b9\\u00ba\\u00bc-\\u00be\\u00c0-\\u00d6\\u00d8-\\u00f6\\u00f8-\\u024f';
const LATIN_WORDS = new RegExp(`[${LETTER}]+(?:['’.,\\-][${LETTER}]+)*`, 'g');

// Writing systems without spaces between words: Thai, Lao, Myanmar and Khmer.
const UNSPACED = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f]/;

// Reading the text of more takes a noticeable part of the time of a capture.
const MAX_ELEMENTS = 30_000;
const MAX_TEXT = 2_000_000;

const wordsIn = (text) => {
  let count = 0;
  let segmenter = null;
  for (const [word] of text.matchAll(IS_LATIN.test(text) ? LATIN_WORDS : allWords())) {
    if (UNSPACED.test(word)) {
      segmenter ??= new Intl.Segmenter(undefined, { granularity: 'word' });
      for (const part of segmenter.segment(word)) if (part.isWordLike) count += 1;
    } else {
      count += 1;
    }
  }
  return count;
};

// The number of words that the document shows, with its open shadow trees and without frames. Null if it has too much text.
const shownWords = () => {
  if (document.getElementsByTagName('*').length > MAX_ELEMENTS) return null;
  const roots = trees().flatMap((tree) => (tree === document ? [document.body] : [...tree.children]));
  const texts = roots.map((root) => root?.innerText).filter((text) => typeof text === 'string');
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  return length > MAX_TEXT ? null : texts.reduce((sum, text) => sum + wordsIn(text), 0);
};

// Members have the names of `PageInfo`. Last: what began to move since the page was laid out is shown at its end.
page.about = async ({ area }) => {
  await finishAllAnimations();
  const meta = (selector) => document.querySelector(selector)?.content;
  const property = (name) => meta(`meta[property="og:${name}" i]`);
  const { width, height } = pageSize();
  return {
    title: line(document.title, MAX_TITLE),
    description: line(meta('meta[name="description" i]') ?? meta('meta[property="og:description" i]'), MAX_DESCRIPTION),
    lang: line(document.documentElement.lang, MAX_LANG),
    canonical_url: address(document.querySelector('link[rel~="canonical" i]')),
    icon_url: address(document.querySelector('link[rel~="icon" i]')),
    open_graph: {
      title: line(property('title'), MAX_TITLE),
      description: line(property('description'), MAX_DESCRIPTION),
      image: webAddress(absolute(property('image') ?? property('image:url'))),
      site_name: line(property('site_name'), MAX_TITLE),
      type: line(property('type'), MAX_LANG),
    },
    page_width: Math.ceil(width),
    page_height: Math.ceil(height),
    words: shownWords(),
    glyphs_missing: missingGlyphs(area),
  };
};

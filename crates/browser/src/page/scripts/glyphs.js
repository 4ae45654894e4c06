// Characters that no font has. The browser draws the box of a missing glyph in their place.

// Everything but Latin, Greek and Cyrillic letters, punctuation and what is not drawn: every text font has these.
const MAY_LACK = /[^\u0000-\u02ff\u0370-\u03ff\u0400-\u04ff\u1e00-\u1eff\u2000-\u206f\ufe00-\ufe0f\ufeff]/u;

// What is not drawn by itself: marks, separators, controls, and what no version of Unicode defines. As a text, since the browser
// takes a millisecond to read it, and most pages have no such characters.
const NOT_DRAWN = '[\\p{M}\\p{Z}\\p{Cc}\\p{Cf}\\p{Cs}\\p{Cn}\\p{Default_Ignorable_Code_Point}]';

// No font can have it.
const IN_NO_FONT = '\u{10ffff}';

const MAX_CHARACTERS = 3000;

// A font that has the first letter of such a range has the others, so that one stands for all: letters of alphabets, and what was
// added to Unicode at once. For each other character, the browser looks for a font, which takes up to a millisecond.
const ALIKE = [
  ['\u0531', '\u0556'], ['\u0561', '\u0586'], // Armenian
  ['\u05d0', '\u05ea'], // Hebrew
  ['\u0621', '\u063a'], ['\u0641', '\u064a'], // Arabic
  ['\u0905', '\u090c'], ['\u0915', '\u0928'], ['\u092a', '\u0930'], ['\u0935', '\u0939'], // Devanagari
  ['\u0e01', '\u0e30'], ['\u0e40', '\u0e46'], // Thai
  ['\u10d0', '\u10f0'], // Georgian
  ['\u3001', '\u3003'], ['\u3008', '\u3011'], // Chinese and Japanese punctuation
  ['\u3041', '\u3093'], ['\u30a1', '\u30f6'], // Japanese syllables
  ['\u4e00', '\u9fff'], // Chinese characters
  ['\uac00', '\ud7a3'], // Korean syllables
  ['\uff01', '\uff5e'], // wide Latin letters
];

// Emoji of the first versions, which all fonts with emoji have.
const OLD_EMOJI = '^(?=\\p{Emoji_Presentation})[\\u{1f300}-\\u{1f64f}]$';

// Returns a function that returns the character that stands for another one.
const standIns = () => {
  const oldEmoji = new RegExp(OLD_EMOJI, 'u');
  return (character) => {
    const range = ALIKE.find(([first, last]) => character >= first && character <= last);
    return range ? range[0] : oldEmoji.test(character) ? '\u{1f600}' : character;
  };
};

// Returns a function that says whether a character has a glyph in a font, or in the fonts that the browser falls back to.
// It compares the measures with those of a missing glyph, which is drawn in the first font.
const glyphsOf = (view) => {
  const standIn = standIns();
  const context = new view.OffscreenCanvas(1, 1).getContext('2d');
  const measure = (text) => {
    const found = context.measureText(text);
    const { width, actualBoundingBoxLeft, actualBoundingBoxRight, actualBoundingBoxAscent, actualBoundingBoxDescent } = found;
    return [width, actualBoundingBoxLeft, actualBoundingBoxRight, actualBoundingBoxAscent, actualBoundingBoxDescent].join();
  };
  const fonts = new Map();
  return (character, font) => {
    context.font = font;
    const known = fonts.get(font) ?? new Map([[IN_NO_FONT, measure(IN_NO_FONT)]]);
    fonts.set(font, known);
    const letter = standIn(character);
    if (!known.has(letter)) known.set(letter, measure(letter));
    return known.get(letter) !== known.get(IN_NO_FONT);
  };
};

const ANY_FONT = '32px sans-serif';

const fontOf = (element) => {
  const { fontStyle, fontWeight, fontFamily } = getComputedStyle(element);
  return `${fontStyle} ${fontWeight} 32px ${fontFamily}`;
};

// Adds the characters of a document's trees that no font has. `isInImage` is asked about the text nodes with such characters.
const addMissing = (missing, view, roots, isInImage) => {
  const unusual = roots.filter((tree) => MAY_LACK.test(tree.textContent ?? ''));
  if (unusual.length === 0) return;
  const hasGlyph = glyphsOf(view);
  const notDrawn = new RegExp(NOT_DRAWN, 'u');
  const seen = new Set();
  for (const tree of unusual) {
    const nodes = document.createTreeWalker(tree, NodeFilter.SHOW_TEXT);
    for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {
      if (!MAY_LACK.test(node.data)) continue;
      const lacking = new Set();
      for (const character of node.data) {
        if (missing.has(character) || (seen.has(character) && hasGlyph(character, ANY_FONT))) continue;
        if (!MAY_LACK.test(character) || notDrawn.test(character)) continue;
        if (seen.size >= MAX_CHARACTERS) return;
        seen.add(character);
        if (!hasGlyph(character, ANY_FONT)) lacking.add(character);
      }
      const parent = node.parentElement ?? tree.host;
      if (lacking.size === 0 || !parent || !isInImage(node, parent)) continue;
      const font = fontOf(parent);
      for (const character of lacking) if (!hasGlyph(character, font)) missing.add(character);
    }
  }
};

// Counts the different characters in the image that no font has, also in frames of the same site. `area` is the part of the
// page that the image shows, or null for the window.
const missingGlyphs = (area) => {
  const image = area
    ? { left: area.x - scrollX, top: area.y - scrollY, right: area.x - scrollX + area.width, bottom: area.y - scrollY + area.height }
    : viewport();
  const isTextInImage = (node, parent) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return isShown(parent) && overlaps(range.getBoundingClientRect(), image);
  };
  const missing = new Set();
  addMissing(missing, window, [document.documentElement, ...trees().slice(1)].filter(Boolean), isTextInImage);
  for (const frame of elements('iframe, frame, object')) {
    const inner = frame.contentDocument?.documentElement;
    if (!inner || !MAY_LACK.test(inner.textContent) || !isShown(frame)) continue;
    if (!overlaps(frame.getBoundingClientRect(), image)) continue;
    addMissing(missing, frame.contentWindow, [inner], (_, parent) => parent.checkVisibility({ visibilityProperty: true }));
  }
  return missing.size;
};

// Which of these texts have a character without a glyph? For machines, not for pages.
page.textsWithoutGlyphs = ({ texts }) => {
  const hasGlyph = glyphsOf(window);
  return texts.filter((text) => [...text].some((character) => !hasGlyph(character, ANY_FONT)));
};

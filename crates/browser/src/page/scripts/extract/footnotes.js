// Footnotes: which elements refer to a note, and which have its text. Notes are told by links to them, by their place in a list
// of notes, or by being beside the text.

const MAX_NOTES = 2000;
const MAX_ANCHORS = 50000;
const NOTE_MARK = /^[\s[({]*(?:n(?:ote)?\.? ?)?(\d{1,4}|[*†‡§¶]{1,4}|[a-z]|[ivxlc]{2,6})[\s\])}.:]*$/iu;
const NOTE_NAME = /(?:^|[^a-z])(?:foot|end|side|margin)?[-_]?notes?(?![a-z])|footnote|endnote|sidenote|(?:^|[^a-z])foot(?=\d)|(?:^|[^a-z])(?:_?fn|_?ftn|ftnt|_?edn|bib|bibitem|cite|footdef)(?![a-qs-z])/i;
const NOTE_HEADINGS = /^(?:(?:foot|end|side)?notes?(?: (?:and|&) (?:references|citations|sources))?|references(?: (?:and|&) (?:foot)?notes)?|citations|works cited|bibliography|(?:foot)?notes? et références|fußnoten|anmerkungen|einzelnachweise|notas|références|примечания|脚注|注释)$/i;
const BIBLIOGRAPHIES = /^(?:references(?: and notes)?|citations|works cited|bibliography|einzelnachweise|références|referencias|riferimenti)$/i;
const NOTE_BLOCKS = new Set(['li', 'p', 'dd', 'div', 'aside', 'section', 'tr', 'blockquote', 'article']);
const NOTE_ATTRIBUTES = ['data-definition', 'data-footnote', 'data-footnote-id', 'data-fn'];
const BESIDE_NAME = /(?:^|[\s_-])(?:side-?notes?|margin-?notes?|foot-?notes?[-_]{0,2}(?:content|text|body|inner|popup|tooltip)|inline-?foot-?notes?)(?:$|[\s_-])/i;
const BACK_NAME = /back-?ref|back-?link|foot-?note-?back|reversefootnote|fn-?back|to-top|return/i;
const BACK_TEXT = /^[\s↩↵⤴⤶⬆↑^⏎⮐←⇑↰\uFE0E\uFE0F[\]]+$/;

// The place of each element in the document. Comparing two elements by the DOM takes as long as there are elements between them.
const placesOf = once((tree) => new Map(selectIn(tree, '*').map((element, at) => [element, at])));
const isBefore = (one, other) => placesOf(document).get(one) < placesOf(document).get(other);
const previousNode = getter(Node.prototype, 'previousSibling');
const namesOfElement = (element) => `${attribute(element, 'id') ?? ''} ${attribute(element, 'class') ?? ''} ${attribute(element, 'name') ?? ''} ${attribute(element, 'role') ?? ''}`.slice(0, 300);
const lengthOf = once((element) => textContent(element).length);
const shortText = (element, most) => {
  const text = textContent(element);
  return text.length > 10 * most ? null : text.replace(/\s+/g, ' ').trim();
};
const markOf = (element) => {
  const text = shortText(element, 12);
  return text === null || text.length > 12 ? null : (NOTE_MARK.exec(text)?.[1].toLowerCase() ?? null);
};
const fragmentOf = (anchor) => {
  const address = attribute(anchor, 'href') ?? '';
  const at = address.indexOf('#');
  if (at < 0 || address.length - at > 300) return null;
  try {
    return decodeURIComponent(address.slice(at + 1));
  } catch {
    return address.slice(at + 1);
  }
};
const hasTextBefore = (parent, child) => {
  // A break begins a new line.
  for (let at = previousNode(child); at && at !== parent; at = previousNode(at)) {
    if (typeOf(at) === ELEMENT && localName(at) === 'br') return false;
    if ((typeOf(at) === TEXT ? codeOf(at) : typeOf(at) === ELEMENT && !SKIPPED.has(localName(at)) ? textContent(at) : '').trim()) return true;
  }
  return false;
};
const isAtStart = (block, element) => {
  for (let at = element; at && at !== block; at = parentElement(at)) {
    for (let before = previousNode(at); before; before = previousNode(before)) if (typeOf(before) !== 8 && textContent(before).trim()) return false;
  }
  return true;
};
// How much text an element has: characters, and how many of them are letters or digits.
const sizeOfText = once((element) => {
  const text = textContent(element).trim();
  return { characters: text.length, letters: text.replace(/[^\p{L}\p{N}]/gu, '').length };
});
// The block that an element is the beginning of.
const blockBegunBy = (element, mark) => {
  let at = element;
  for (let up = 0; at && up < 6; up += 1) {
    const size = NOTE_BLOCKS.has(localName(at)) ? sizeOfText(at) : null;
    if (size && size.characters > 3 && size.letters > (mark?.length ?? 0)) return at;
    const parent = parentElement(at);
    if (!parent || localName(parent) === 'body' || hasTextBefore(parent, at)) return null;
    at = parent;
  }
  return null;
};
const isNamedAsNote = (element) => {
  for (let at = element, up = 0; at && up < 4 && localName(at) !== 'body' && localName(at) !== 'article' && localName(at) !== 'main'; at = parentElement(at), up += 1) {
    if (NOTE_NAME.test(namesOfElement(at))) return true;
  }
  return false;
};
const isNoteHeading = (element) => /^(?:h[1-6]|p|div|strong|b)$/.test(localName(element)) && NOTE_HEADINGS.test((shortText(element, 40) ?? '').replace(/[:.]$/, ''));
const isBelowNoteHeading = (block) => {
  const around = localName(block) === 'li' ? parentElement(block) : block;
  let before = around ? previousSibling(around) : null;
  for (let step = 0; before && step < 30; step += 1) {
    if (isNoteHeading(before)) return true;
    if (/^h[1-6]$/.test(localName(before)) || localName(block) === 'li') return false;
    before = previousSibling(before);
  }
  return false;
};
// The mark at the beginning of a block, if it is an element of its own.
const leadingMark = once((block) => {
  let at = firstChild(block);
  for (let step = 0; at && step < 12; step += 1) {
    if (typeOf(at) === TEXT && !codeOf(at).trim()) at = nextSibling(at);
    else if (typeOf(at) !== ELEMENT) return null;
    else if (['sup', 'strong', 'b', 'a', 'span'].includes(localName(at)) && markOf(at)) return /^\d+$/.test(markOf(at)) || localName(at) !== 'span' ? markOf(at) : null;
    else if (textContent(at).trim()) at = firstChild(at);
    else at = nextSibling(at);
  }
  return null;
});

// Is an element, or what it is in, one of these?
const isWithin = (element, elements) => {
  for (let at = element; at; at = parentElement(at)) if (elements.has(at)) return true;
  return false;
};

// Links with a mark. Those at the beginning of a block lead back, if a link before leads to it.
const findLinkedNotes = ({ references, hidden, targets, add, refer }) => {
  const anchors = selectIn(document, 'a[href*="#"], label[for]').slice(0, MAX_ANCHORS);
  const links = [];
  for (const anchor of anchors) {
    const mark = markOf(anchor) ?? (/foot-?note|doc-noteref|noteref/i.test(namesOfElement(anchor)) && (shortText(anchor, 40) ?? '').length <= 40 ? '*' : null);
    const fragment = localName(anchor) === 'label' ? attribute(anchor, 'for') : fragmentOf(anchor);
    if (mark && fragment) links.push({ anchor, mark, fragment });
  }
  const beginning = new Map();
  for (const { anchor, mark } of links) {
    if (!/^\d+$/.test(mark)) continue;
    const block = blockBegunBy(anchor, mark);
    if (block) beginning.set(mark, { block, anchor });
  }
  const isBackLink = (anchor, block) => {
    const fragment = fragmentOf(anchor);
    if (fragment === null) return false;
    const target = targets.get(fragment);
    return (target && isBefore(target, block)) || BACK_NAME.test(namesOfElement(anchor)) || BACK_TEXT.test(textContent(anchor)) || /ref/i.test(fragment);
  };
  const hasBackLink = once((block) => selectIn(block, 'a[href*="#"]').slice(0, 20).some((anchor) => isBackLink(anchor, block)));
  const isNote = (block, target, mark) => {
    if (/^h[1-6]$/.test(localName(block)) || lengthOf(block) > 20000) return false;
    if (isNamedAsNote(block) || isNamedAsNote(target)) return true;
    if (leadingMark(block) === mark || isBelowNoteHeading(block)) return true;
    return hasBackLink(block);
  };
  for (const { anchor, mark, fragment } of links) {
    const target = targets.get(fragment);
    if (target && (contains(target, anchor) || contains(anchor, target))) continue;
    const begun = !target && /fn|ftn|note|edn/i.test(fragment) ? beginning.get(mark) : null;
    if (begun && isBefore(anchor, begun.anchor) && anchor !== begun.anchor) refer(anchor, add(begun.block, begun.anchor, mark));
    if (!target) continue;
    const title = closest(target, 'h1, h2, h3, h4, h5, h6, dt');
    const isTitleOfNote = title && markOf(title) && (NOTE_NAME.test(namesOfElement(title)) || NOTE_NAME.test(fragment));
    const block = title ? (isTitleOfNote ? nextSiblingElement(title) : null) : blockBegunBy(target, mark);
    const isAfter = block && isBefore(anchor, target);
    if (isAfter && title) hidden.add(title);
    if (isAfter && (title || isNote(block, target, mark))) refer(anchor, add(block, target, mark));
  }
  for (const name of NOTE_ATTRIBUTES) {
    for (const element of selectIn(document, `[${name}]`).slice(0, MAX_NOTES)) {
      const target = targets.get(attribute(element, name));
      const block = target && blockBegunBy(target, '');
      if (block && !contains(block, element) && (shortText(element, 20)?.length ?? 99) <= 20) refer(element, add(block, target, '*'));
    }
  }
};

// Marks without a link, and notes with the same number.
const findLooseNotes = ({ references, byBlock, add, refer }) => {
  const loose = new Map();
  const offer = (mark, block) => {
    if (/^\d+$/.test(mark ?? '') && !loose.has(mark) && !byBlock.has(block) && lengthOf(block) < 20000) loose.set(mark, block);
  };
  const offerList = (list) => {
    const start = Number.parseInt(attribute(list, 'start') ?? '1', 10);
    selectIn(list, ':scope > li').slice(0, MAX_NOTES).forEach((item, at) => offer(/(?:^|[^\d])(\d{1,4})$/.exec(attribute(item, 'id') ?? '')?.[1] ?? String(start + at), item));
  };
  const offerBlocks = (first) => {
    for (let at = first, step = 0; at && step < 200; at = nextSiblingElement(at), step += 1) {
      if (/^h[1-6]$/.test(localName(at))) break;
      if (localName(at) === 'ol') offerList(at);
      else if (NOTE_BLOCKS.has(localName(at))) offer(leadingMark(at), at);
    }
  };
  const named = '[class*="footnote" i], [id*="footnote" i], [class*="endnote" i], [id*="endnote" i], [role="doc-endnotes"], [role="doc-footnote"]';
  for (const element of selectIn(document, named).slice(0, MAX_NOTES)) {
    if (localName(element) === 'ol') offerList(element);
    else if (localName(element) === 'p' || localName(element) === 'div' && leadingMark(element)) offer(leadingMark(element), element);
    for (const list of selectIn(element, 'ol').slice(0, 5)) offerList(list);
  }
  for (const list of selectIn(document, 'aside > ol').slice(0, MAX_NOTES)) offerList(list);
  for (const heading of selectIn(document, 'h1, h2, h3, h4, h5, h6, p > strong:only-child, p > b:only-child').slice(0, MAX_NOTES)) {
    if (!isNoteHeading(heading)) continue;
    const next = nextSiblingElement(/^h/.test(localName(heading)) ? heading : parentElement(heading));
    if (next) offerBlocks(next);
  }
  for (const line of selectIn(document, 'hr').slice(-5)) if (nextSiblingElement(line)) offerBlocks(nextSiblingElement(line));
  const raised = selectIn(document, 'sup').slice(0, MAX_NOTES);
  for (const element of raised) {
    const mark = markOf(element);
    const block = mark ? blockBegunBy(element, mark) : null;
    if (block && localName(block) === 'p') offer(mark, block);
  }
  if (loose.size > 0) {
    const blocks = new Set(loose.values());
    for (const element of raised) {
      const mark = markOf(element);
      const block = mark ? loose.get(mark) : null;
      if (!block || selectIn(element, 'a[href]').some((anchor) => references.has(anchor)) || !isBefore(element, block)) continue;
      // Powers and units have raised numbers too.
      const before = previousNode(element);
      const word = before && typeOf(before) === TEXT ? /([\p{L}\p{N}]+)$/u.exec(codeOf(before).slice(-20))?.[1] : null;
      if (word && /^(?:\p{L}|[kcdmn]m|.*\d)$/iu.test(word)) continue;
      if (!isWithin(element, blocks)) refer(element, add(block, block, mark));
    }
  }
};

// Notes beside the text.
const findNotesBeside = ({ references, hidden, byBlock, add }) => {
  const beside = new Set();
  for (const element of selectIn(document, '[class*="note" i]').slice(0, MAX_NOTES)) {
    const isBox = /(?:^|\s)footnote(?:\s|$)/i.test(attribute(element, 'class') ?? '') && ['label', 'input'].includes(localName(previousSibling(element) ?? element));
    if (!(isBox || BESIDE_NAME.test(attribute(element, 'class') ?? '')) || byBlock.has(element) || !textContent(element).trim()) continue;
    let outer = element;
    for (let up = 0; outer && up < 6 && !byBlock.has(outer); up += 1) outer = parentElement(outer);
    if (outer && byBlock.has(outer)) continue;
    let parent = parentElement(element);
    while (parent && ['span', 'sup', 'small', 'em', 'strong', 'label', 'aside', 'a'].includes(localName(parent))) parent = parentElement(parent);
    if (!parent || !['p', 'li', 'dd', 'td', 'blockquote'].includes(localName(parent)) || markOf(element)) continue;
    if (isWithin(element, beside)) continue;
    const before = [];
    for (let at = previousSibling(element), step = 0; at && step < 3; at = previousSibling(at), step += 1) {
      const isMark = ['label', 'input', 'sup', 'a', 'button', 'span'].includes(localName(at)) && (!textContent(at).trim() || markOf(at));
      if (!isMark) break;
      before.push(at);
    }
    const isKnown = before.some((at) => references.has(at) || selectIn(at, 'a').some((anchor) => references.has(anchor)));
    if (isKnown) {
      hidden.add(element);
      continue;
    }
    for (const at of before) hidden.add(at);
    const content = selectIn(element, '[class*="note" i]').find((inner) => BESIDE_NAME.test(attribute(inner, 'class') ?? '') && textContent(inner).trim().length > 3) ?? element;
    const note = add(content, content, '*');
    if (note) {
      note.isBeside = true;
      beside.add(note.block).add(element);
      note.isReferred = true;
      references.set(element, note);
    }
  }
};

// What each has: its block, and the blocks until the next note. Several in one block are divided at their anchors.
const divideNotes = ({ references, hidden, notes }) => {
  const used = notes.filter((note) => note.isReferred);
  const firstReferences = [...references.keys()].slice(0, 100);
  const childrenIn = once((block) => childrenOf(block));
  const numbersIn = once((block) => new Map(childrenIn(block).map((child, at) => [child, at])));
  // The number of the child with an element in it, or -1.
  const numberOfChild = (block, element) => {
    const numbers = numbersIn(block);
    for (let at = element; at; at = parentElement(at)) if (numbers.has(at)) return numbers.get(at);
    return -1;
  };
  used.sort((one, other) => (one.anchor === other.anchor ? 0 : isBefore(one.anchor, other.anchor) ? -1 : 1));
  used.forEach((note, at) => {
    const next = used[at + 1];
    const children = childrenIn(note.block);
    if (next && next.block !== note.block && contains(note.block, next.anchor) || next?.block === note.block || used[at - 1]?.block === note.block) {
      const begin = numberOfChild(note.block, note.anchor);
      const end = next && contains(note.block, next.anchor) ? numberOfChild(note.block, next.anchor) : children.length;
      note.nodes = begin >= 0 && end > begin ? children.slice(begin, end) : children;
      for (const child of note.nodes) hidden.add(child);
      return;
    }
    note.nodes = children;
    if (note.isBeside) return;
    hidden.add(note.block);
    const isLast = !next || parentElement(next.block) !== parentElement(note.block);
    if (localName(note.block) === 'li' || (isLast && !NOTE_NAME.test(namesOfElement(parentElement(note.block))))) return;
    const between = [];
    for (let sibling = nextSiblingElement(note.block); sibling && sibling !== next?.block && between.length < 20; sibling = nextSiblingElement(sibling)) between.push(sibling);
    if (between.length < 20 && !between.some((sibling) => /^h[1-6r]$/.test(localName(sibling)) || firstReferences.some((element) => contains(sibling, element)))) {
      note.nodes = [...children, ...between];
      for (const sibling of between) hidden.add(sibling);
    }
  });
  return used;
};

// The page's numbers, unless some are no numbers, or two are equal.
const numberNotes = ({ references }, used) => {
  const marks = new Set(used.map((note) => note.mark));
  const keepsMarks = marks.size === used.length && used.every((note) => /^\d+$/.test(note.mark));
  const first = new Map();
  for (const [element, note] of references) if (!first.has(note) || isBefore(element, first.get(note))) first.set(note, element);
  const inOrder = keepsMarks ? used : [...used].sort((one, other) => (isBefore(first.get(one) ?? one.block, first.get(other) ?? other.block) ? -1 : 1));
  inOrder.forEach((note, at) => {
    note.number = keepsMarks ? Number(note.mark) : at + 1;
  });
};

// `references` has the note of each element that refers to one, and `hidden` what is not written where it is.
const findFootnotes = () => {
  const references = new Map();
  const hidden = new Set();
  const notes = [];
  const byBlock = new Map();
  const targets = new Map();
  for (const element of selectIn(document, '[id], a[name]').slice(0, MAX_ANCHORS)) {
    if (localName(element) === 'input') continue;
    for (const name of [attribute(element, 'id'), localName(element) === 'a' ? attribute(element, 'name') : null]) {
      if (name && !targets.has(name)) targets.set(name, element);
    }
  }
  const add = (block, anchor, mark) => {
    // Several notes of one block are divided by breaks.
    const known = byBlock.get(anchor) ?? (isAtStart(block, anchor) ? byBlock.get(block) : null);
    if (known) return known;
    if (notes.length >= MAX_NOTES) return null;
    const note = { block, anchor, mark, number: 0, nodes: null };
    byBlock.set(anchor, note);
    if (anchor === block || !byBlock.has(block)) byBlock.set(block, note);
    notes.push(note);
    return note;
  };
  const refer = (element, note) => {
    if (!note || contains(note.block, element)) return;
    references.set(element, note);
    note.isReferred = true;
  };
  const state = { references, hidden, notes, byBlock, targets, add, refer };
  findLinkedNotes(state);
  findLooseNotes(state);
  findNotesBeside(state);
  const used = divideNotes(state);
  numberNotes(state, used);
  return { references, hidden, notes: used };
};

// Markdown.

const MAX_NODES = 200000;
const MAX_DEPTH = 150;
const SKIPPED = new Set(['script', 'style', 'noscript', 'template', 'head', 'title', 'svg', 'canvas', 'iframe', 'object', 'embed', 'audio', 'video', 'select', 'input', 'textarea', 'datalist', 'map']);
const BOLD = new Set(['b', 'strong']);
const ITALIC = new Set(['i', 'em', 'cite', 'var', 'dfn']);
const STRUCK = new Set(['s', 'del', 'strike']);
const CODE = new Set(['code', 'kbd', 'samp', 'tt']);
// What leads to a heading, or edits it.
const HEADING_LINK = /(?:^|[\s_-])(?:anchor(?:js)?|header-?link|hash-?link|heading-?link|perma-?link|mw-editsection|edit-?section|anchor-?link|copy-?link)(?:$|[\s_-])/i;
const LINK_SIGN = /^[\s#¶§🔗⚓\u200b\uFE0F]*$/u;

// A dollar sign of a text, until it is known whether it has to be escaped. No text has this character.
const DOLLAR = '\uFDD0';
const escapeInline = (text) =>
  text.replaceAll(DOLLAR, '').replaceAll(MESSAGE, '').replaceAll('$', DOLLAR).replace(/[\\`*\[\]<]|&(?=#?[\da-z]+;)/gi, '\\$&').replace(/(^|[^\p{L}\p{N}])_|_(?=[^\p{L}\p{N}]|$)/gu, (found) => found.replace('_', '\\_'));
// The dollar signs of a line: escaped where programs would read what is between them as a formula. Such a formula neither begins nor
// ends with a space, and no digit follows it, so that most prices are none.
const dollarsOfLine = (line) => {
  if (!line.includes(DOLLAR)) return line;
  const places = [...line.matchAll(/(?<!\\)\$|\uFDD0/g)].map(({ index }) => index);
  const escaped = new Set();
  for (let at = 0; at + 1 < places.length; at += 1) {
    const [begin, end] = [places[at], places[at + 1]];
    if (/\s/.test(line[begin + 1]) || /\s/.test(line[end - 1]) || /\d/.test(line[end + 1] ?? '')) continue;
    const [isText, isTextAfter] = [line[begin] === DOLLAR, line[end] === DOLLAR];
    if (isText) escaped.add(begin);
    if (isTextAfter) escaped.add(end);
    // The second one may begin a formula of the page.
    if (!isText || isTextAfter) at += 1;
  }
  return line.replace(/\uFDD0/g, (_, index) => (escaped.has(index) ? '\\$' : '$'));
};
// Lines that belong together end with two spaces.
const withDollars = (part) => part.split(/(?<! {2})\n/).map(dollarsOfLine).join('\n');
// What would make the line before it a heading, or the head of a table.
const isDelimiterRow = (line) => line.includes('-') && /^[\s|:-]+$/.test(line);
// What would begin a heading, a list or a quotation.
const escapeStart = (line) => {
  if (isDelimiterRow(line)) return line.replace(/[|:-]/, '\\$&');
  return line.replace(/^(\s*)(#{1,6}(?=\s|$)|[-+](?=\s|$)|>|={3,}|=+$|~{3,}|-{3,})/, '$1\\$2').replace(/^(\s*\d{1,9})([.)])(?=\s|$)/, '$1\\$2');
};
const encoded = (url) => url.replace(/[<>\\\s]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
const target = (url) => encoded(url).replace(/[()]/g, '\\$&');
// A call with more than about 100,000 arguments fails, so that long lists are never spread into one.
const longestOf = (lists) => lists.reduce((longest, { length }) => Math.max(longest, length), 0);
const fence = (code, least) => {
  const longest = longestOf(code.match(/`+/g) ?? []);
  return '`'.repeat(Math.max(least, longest + 1));
};
// Marks are directly beside the text, and spaces are kept outside.
const wrap = (text, mark) => {
  const inner = text.trim();
  if (!inner || REFERENCES_ONLY.test(inner)) return text;
  return `${/^\s/.test(text) ? ' ' : ''}${mark}${inner}${mark}${/\s$/.test(text) ? ' ' : ''}`;
};
// References to notes, without the brackets of the page around them and the space before them.
const bareReferences = (text) =>
  text.replace(/\\\[ ?(\[\^\d+\](?:, ?\[\^\d+\])*) ?\\\]/g, (_, references) => references.replace(/,(?=\[)/g, ', ')).replace(/([^\s,]) (?=\[\^\d+\])/g, '$1');
const REFERENCES_ONLY = /^(?:\[\^\d+\](?:, )?)+$/;
const isInline = (style) => /^(?:inline|contents|ruby)/.test(style.display);
// Joins the parts of a line. A power of a number has a sign before it, without which it would be another number, and a lowered
// number keeps its element. Only the last part is looked at, since the line may be long.
const lineOf = () => {
  let text = '';
  let last = '';
  const add = (node, part) => {
    const isPower = typeOf(node) === ELEMENT && localName(node) === 'sup' && /^[-+−]?\d+$/.test(part) && /\d$/.test(last);
    const isLowered = typeOf(node) === ELEMENT && localName(node) === 'sub' && /^\d/.test(part) && /\d$/.test(last);
    text += isPower ? `^${part}` : isLowered ? `<sub>${part}</sub>` : part;
    last = part || last;
  };
  return { add, text: () => text };
};
const oneSpaced = (text) => text.replace(/\s+/g, ' ').trim();
const tidy = (text) => text.split('\n').map(oneSpaced).join('\n').replace(/\n{2,}/g, '\n').replace(/^\n|\n$/g, '');
const paragraph = (text) => tidy(text).split('\n').map(escapeStart).join('  \n');
const indent = (text, first, rest) => text.split('\n').map((line, at) => (at === 0 ? first + line : line ? rest + line : line)).join('\n');
// Blocks with lines between them. Answers are in the same quotation as what they answer.
const joined = (parts) => {
  let made = '';
  let before = 0;
  parts.forEach((part, at) => {
    const level = /^\uFDD1*/.exec(part)[0].length;
    const isAnswer = before > 0 && level > 1;
    if (at > 0) made += isAnswer ? `\n${'> '.repeat(Math.min(level, before)).trimEnd()}\n` : '\n\n';
    made += withDollars(part.slice(level));
    before = level;
  });
  return made.replaceAll('\uFDD1', '');
};
const quote = (text) => text.split('\n').map((line) => (line ? `> ${line}` : '>')).join('\n');
const levelOf = (element) => {
  const level = /^h([1-6])$/.exec(localName(element))?.[1];
  if (level) return Number(level);
  if (attribute(element, 'role') !== 'heading') return null;
  const given = Number.parseInt(attribute(element, 'aria-level') ?? '2', 10);
  return given >= 1 && given <= 6 ? given : null;
};
// The address that is written for a link. Those within the page are their fragment only.
const linkOf = (anchor) => {
  const given = (attribute(anchor, 'href') ?? '').trim();
  if (/^#[^\s]/.test(given) && given.length <= 300) return given;
  const url = anchorUrl(anchor);
  return (webUrl(url) || /^(?:mailto|tel):/i.test(url)) && url.length <= MAX_URL ? url : null;
};

const markdown = ({ most, main }) => {
  const found = main ? mainContent() : null;
  const thread = main ? threadOf(found) : null;
  const removed = found?.removed ?? new Set();
  const notes = findFootnotes();
  const written = new Set();
  let nodes = 0;
  let size = 0;
  let isCut = false;
  let frames = 0;
  // Within notes and callouts, all that is shown is written.
  let isWhole = 0;
  let inNote = null;
  // The marks that the text is within. They cannot be within themselves.
  const marks = new Set();
  // What is shown when a folded callout is opened.
  const unfolded = new Set();
  const isKept = (element) => calloutKind(element) !== null && !/cookie|consent|newsletter|subscri|share/i.test(namesOfElement(element)) && textContent(element).length < 5000;
  const isRemoved = (element) => isWhole === 0 && removed.has(element) && !isKept(element);
  const isLeftOut = (element, style) =>
    (notes.hidden.has(element) && !notes.references.has(element)) || SKIPPED.has(localName(element)) || (style.display === 'none' && !unfolded.has(element)) || attribute(element, 'aria-hidden') === 'true' || isRemoved(element) || (thread !== null && thread.actions.has(element));
  const isTextLeftOut = (node) => (isWhole === 0 && removed.has(node)) || (notes.hidden.has(node) && inNote === null);
  const enter = (depth) => {
    nodes += 1;
    if (nodes > MAX_NODES || size > most || depth > MAX_DEPTH) isCut = true;
    return !(nodes > MAX_NODES || size > most || depth > MAX_DEPTH);
  };
  const count = (text) => {
    size += text.length;
    return text;
  };
  const wholly = (write) => {
    isWhole += 1;
    const made = write();
    isWhole -= 1;
    return made;
  };

  const reference = (element) => {
    const note = notes.references.get(element);
    if (!note) return null;
    written.add(note);
    return `[^${note.number}]`;
  };
  // Links from a note to where it is referred to.
  const isBack = (anchor) => {
    if (!inNote) return false;
    if (attribute(anchor, 'role') === 'doc-backlink' || BACK_NAME.test(attribute(anchor, 'class') ?? '')) return true;
    const text = textContent(anchor);
    if (text.trim() && BACK_TEXT.test(text)) return true;
    const fragment = fragmentOf(anchor);
    return fragment !== null && text.trim().length <= 4 && (/ref|anchor|back/i.test(fragment) || markOf(anchor) !== null);
  };

  const image = (element) => {
    if (isPixel(element)) return '';
    const url = sourceOf(element);
    const alt = escapeInline(oneLine(attribute(element, 'alt') ?? '', 300));
    return url ? count(`![${alt}](${target(url)})`) : alt;
  };

  // An element or a text, in one line.
  const inline = (node, depth, isShown) => {
    if (!enter(depth)) return '';
    if (typeOf(node) === TEXT) return isShown && !isTextLeftOut(node) ? count(writeText(codeOf(node).replace(/[\s\u0000]+/g, ' '))) : '';
    if (typeOf(node) !== ELEMENT) return '';
    const name = localName(node);
    const math = formula(node);
    const style = getComputedStyle(node);
    if (math && (name === 'script' || style.display !== 'none')) return math.tex && (name === 'script' || style.visibility === 'visible') ? count(`$${math.tex}$`) : '';
    if (name === 'noscript') {
      const given = imageWithoutScript(node);
      return given ? count(`![${escapeInline(oneLine(given.alt, 300))}](${target(given.url)})`) : '';
    }
    const note = reference(node);
    if (note) return count(note);
    if (isLeftOut(node, style)) return '';
    const shown = style.visibility === 'visible';
    if (name === 'br') return '\n';
    if (isHtml(node, 'img')) return shown ? image(node) : '';
    if (CODE.has(name)) {
      const code = textContent(node).replace(/\s+/g, ' ').trim();
      if (!code || !shown) return '';
      const mark = fence(code, 1);
      const space = /^`|`$/.test(code) ? ' ' : '';
      return count(`${mark}${space}${code}${space}${mark}`);
    }
    if (name === 'a' && isBack(node)) return '';
    const mark = BOLD.has(name) ? '**' : ITALIC.has(name) ? '*' : STRUCK.has(name) ? '~~' : '';
    const isMarked = mark !== '' && marks.has(mark);
    if (mark) marks.add(mark);
    const inner = inlines(node, depth, shown);
    if (mark && !isMarked) marks.delete(mark);
    if (isHtml(node, 'a')) {
      const url = linkOf(node);
      const label = oneSpaced(inner) || escapeInline(oneLine(attribute(node, 'aria-label') ?? '', 300));
      if (!label || !url || /^\[\^\d+\]$/.test(label)) return inner;
      return count(`${/^\s/.test(inner) ? ' ' : ''}[${label}](${target(url)})${/\s$/.test(inner) ? ' ' : ''}`);
    }
    if (mark) return isMarked ? inner : wrap(inner, mark);
    return isInline(style) ? inner : ` ${inner} `;
  };
  const inlines = (node, depth, isShown) => {
    const line = lineOf();
    for (const child of childrenOf(node)) line.add(child, inline(child, depth + 1, isShown));
    return bareReferences(line.text());
  };

  const hasBlocks = (node, depth) => {
    if (depth > MAX_DEPTH) return false;
    for (const child of childrenOf(node)) {
      if (typeOf(child) !== ELEMENT) continue;
      const style = getComputedStyle(child);
      if (SKIPPED.has(localName(child)) || style.display === 'none' || notes.references.has(child) || formula(child)) continue;
      if (!isInline(style) || isCodeBlock(child, style) || hasBlocks(child, depth + 1)) return true;
    }
    return false;
  };

  const list = (element, depth) => {
    const isOrdered = localName(element) === 'ol';
    const start = Number.parseInt(attribute(element, 'start') ?? '1', 10);
    let number = Number.isFinite(start) && start >= 0 && start < 1e9 ? start : 1;
    const items = [];
    for (const child of childrenOf(element)) {
      if (typeOf(child) !== ELEMENT || isLeftOut(child, getComputedStyle(child))) continue;
      const given = Number.parseInt(attribute(child, 'value') ?? '', 10);
      if (isOrdered && given >= 0 && given < 1e9) number = given;
      const isNested = /^(?:ul|ol|menu)$/.test(localName(child));
      const content = (isNested ? block(child, depth + 1) : blocks(child, depth + 1)).join('\n\n').replace(/\n\n(?= *(?:[-*]|\d+\.) )/g, '\n');
      if (!content) continue;
      if (isNested && items.length > 0) {
        items[items.length - 1] += `\n${indent(content, '  ', '  ')}`;
        continue;
      }
      const box = selectIn(child, ':scope > input[type="checkbox" i], :scope > label > input[type="checkbox" i], :scope > p:first-child > input[type="checkbox" i]')[0];
      const task = box instanceof HTMLInputElement ? (box.checked ? '[x] ' : '[ ] ') : '';
      const marker = isOrdered ? `${number}. ` : '- ';
      number += 1;
      items.push(indent(task + content, marker, ' '.repeat(marker.length)));
    }
    return items.join('\n');
  };

  const { table, numberedList } = tableWriter({ enter, count, isLeftOut, isTextLeftOut, inlines: (...of) => inlines(...of), reference });

  const preformatted = (element) => {
    const code = codeText(element);
    if (!code) return '';
    const mark = fence(code, 3);
    return count(`${mark}${languageOf(element)}\n${code}\n${mark}`);
  };

  const isHeadingLink = (element) =>
    HEADING_LINK.test(attribute(element, 'class') ?? '') ? LINK_SIGN.test(textContent(element)) || /mw-editsection|edit-?section/i.test(attribute(element, 'class') ?? '') || textContent(element).trim().length <= 12 : localName(element) === 'a' && attribute(element, 'href') !== null && LINK_SIGN.test(textContent(element)) && selectIn(element, 'img').length === 0;
  const heading = (element, level, depth, isShown, link) => {
    let text = '';
    const whole = textContent(element).trim();
    const write = (node, step) => {
      for (const child of childrenOf(node)) {
        if (typeOf(child) === ELEMENT) {
          if ((isHeadingLink(child) && textContent(child).trim() !== whole) || localName(child) === 'button') continue;
          // A link to the heading itself is its text.
          if (localName(child) === 'a' && /^#/.test(attribute(child, 'href') ?? '') && !notes.references.has(child) && step < 4) {
            write(child, step + 1);
            continue;
          }
        }
        text += inline(child, depth + 1, isShown);
      }
    };
    write(element, 0);
    const line = oneSpaced(text).replace(/\s*[#¶§]$/u, '');
    if (!line) return [];
    return [`${'#'.repeat(level)} ${link ? `[${line}](${target(link)})` : line}`];
  };

  const callout = (element, kind, depth) => {
    const title = calloutTitle(element);
    const name = title ? oneSpaced(wholly(() => inlines(title, depth + 1, true))) : '';
    if (title) notes.hidden.add(title);
    const fold = foldOf(element);
    if (fold) for (const child of childrenOf(element)) if (typeOf(child) === ELEMENT) unfolded.add(child);
    const content = wholly(() => blocks(element, depth + 1)).join('\n\n');
    if (!content && !name) return [];
    return [quote(`[!${kind}]${fold} ${name || kind[0].toUpperCase() + kind.slice(1)}${content ? `\n${content}` : ''}`)];
  };

  // A message of a discussion, with the signs of its level before it.
  const message = (of, depth) => {
    const content = wholly(() => blocksOf(of.body, true, depth + 1)).join('\n\n');
    const time = of.url ? `[${escapeInline(of.when)}](${target(of.url)})` : escapeInline(of.when);
    const head = [`**${escapeInline(of.author)}**`, time, ...(of.points ? [escapeInline(of.points)] : [])].join(' · ');
    // What is in it was counted when it was written.
    let text = `${count(head)}\n\n${content}`.trimEnd();
    for (let level = 0; level <= of.level; level += 1) text = quote(text);
    return MESSAGE.repeat(of.level + 1) + text;
  };

  // The blocks of an element that is a block, or has some.
  const block = (element, depth, link = null) => {
    const name = localName(element);
    const isShown = getComputedStyle(element).visibility === 'visible';
    const level = levelOf(element);
    if (level) return heading(element, level, depth, isShown, link);
    const one = (text) => (text ? [text] : []);
    if (thread !== null && thread.outer.has(element)) return blocks(element, depth + 1);
    const kind = calloutKind(element);
    if (kind && element !== found?.root && textContent(element).length < 20000) return callout(element, kind, depth);
    switch (name) {
      case 'hr':
        return ['---'];
      case 'pre':
      case 'code':
        return isShown ? one(preformatted(element)) : [];
      case 'ul':
      case 'ol':
      case 'menu':
        return one(list(element, depth));
      case 'blockquote': {
        const inner = blocks(element, depth + 1).join('\n\n');
        return inner ? [quote(inner)] : [];
      }
      case 'table': {
        const code = codeOfTable(element);
        if (code) return one(preformatted(code));
        const rows = rowsOf(element);
        if (isNumberedList(element, rows)) return numberedList(rows, depth + 1);
        if (!isDataTable(element, rows)) return blocks(element, depth + 1);
        const captions = selectIn(element, ':scope > caption').filter((caption) => !isLeftOut(caption, getComputedStyle(caption)));
        return [...captions.flatMap((caption) => blocks(caption, depth + 1)), ...one(table(rows, depth + 1))];
      }
      case 'dt':
        return one(wrap(oneSpaced(inlines(element, depth, isShown)), '**'));
      default:
        return blocks(element, depth + 1, link);
    }
  };

  const blocks = (node, depth, link = null) => blocksOf(childrenOf(node), typeOf(node) !== ELEMENT || getComputedStyle(node).visibility === 'visible', depth, link);
  const blocksOf = (children, isShown, depth, link = null) => {
    const made = [];
    let run = lineOf();
    const flush = () => {
      const text = bareReferences(paragraph(run.text()));
      if (text) made.push(text);
      run = lineOf();
    };
    for (const child of children) {
      if (typeOf(child) !== ELEMENT) {
        run.add(child, inline(child, depth + 1, isShown));
        continue;
      }
      if (!enter(depth)) break;
      const style = getComputedStyle(child);
      const name = localName(child);
      const said = thread?.byUnit.get(child);
      if (said && !thread.isBelow && style.display !== 'none' && style.visibility === 'visible') {
        flush();
        made.push(message(said, depth));
        continue;
      }
      if (notes.references.has(child) || name === 'noscript') {
        run.add(child, inline(child, depth + 1, isShown));
        continue;
      }
      if (isHtml(child, 'iframe') && frames < MAX_FRAMES && style.display !== 'none' && style.visibility === 'visible' && !isRemoved(child)) {
        frames += 1;
        flush();
        const body = bodyOfFrame(child);
        const link = body ? null : linkOfFrame(child);
        if (body) {
          for (const part of wholly(() => blocks(body, depth + 1))) made.push(part);
        } else if (link) made.push(count(`[${escapeInline(link.title)}](${target(link.url)})`));
        continue;
      }
      const next = name === 'div' || name === 'span' || name === 'button' || name === 'figcaption' ? nextSiblingElement(child) : null;
      if (next && localName(next) === 'pre' && codeHeader(child) !== null) continue;
      const math = formula(child);
      if (math?.isBlock && math.tex && (name === 'script' || (style.visibility === 'visible' && style.display !== 'none'))) {
        flush();
        made.push(count(`$$\n${math.tex}\n$$`));
        continue;
      }
      if (!math && isLeftOut(child, style)) continue;
      // A link or a span around blocks is left out, so that they are written as such; links around text stay.
      const hasHeading = name === 'a' && selectIn(child, 'h1, h2, h3, h4, h5, h6').length > 0;
      const isBlock = !math && (!isInline(style) || isCodeBlock(child, style) || hasHeading || (name !== 'a' && hasBlocks(child, depth)));
      if (isBlock && name !== 'br' && name !== 'img' && !(name === 'a' && !hasHeading)) {
        flush();
        const around = hasHeading && isHtml(child, 'a') ? linkOf(child) : null;
        for (const part of block(child, depth + 1, around?.startsWith('#') ? null : (around ?? link))) made.push(part);
      } else {
        if (isBlock) flush();
        run.add(child, inline(child, depth + 1, isShown));
        if (isBlock) flush();
      }
    }
    flush();
    return made;
  };

  const definition = (note) => {
    inNote = note;
    for (const node of note.nodes) notes.hidden.delete(node);
    // The note itself may not be shown before it is asked for.
    const made = wholly(() => blocksOf(note.nodes.filter((node) => !(typeOf(node) === ELEMENT && localName(node) === 'input')), true, 2));
    inNote = null;
    // The mark at its beginning, as it is written: in brackets, bold, or before a dot.
    const lead = new RegExp(`^(?:\\\\?[\\[(]|\\*\\*)*(?:${note.mark.replace(/[*]/g, '\\\\?\\*')}|\\^|↑)(?:\\\\?[\\])]|\\*\\*)*\\\\?[.:)]?${leadingMark(note.block) === note.mark ? '\\s*' : '(?:\\s+|$)'}`, 'i');
    const text = made.join('\n\n').replace(/^\\?[\^↑]\s+/, '').replace(lead, '').trimEnd().replace(/[↩↵⤴↑]\uFE0E?$/, '').trim();
    return text ? `[^${note.number}]: ${indent(text, '', '    ')}` : '';
  };
  const definitions = () => {
    const top = found?.root;
    const made = new Map();
    for (const note of notes.notes) if (!note.isBeside && top && contains(top, note.block)) written.add(note);
    // Notes may refer to others.
    for (const note of written) if (made.size < MAX_NOTES) made.set(note, definition(note));
    return [...made].sort(([one], [other]) => one.number - other.number).map(([, text]) => text).filter(Boolean);
  };

  // An article may be all of a table or of a list, so that it is not only its blocks.
  const top = thread?.root ?? found?.root ?? bodyOf(document) ?? rootOf(document);
  const made = !top ? [] : found && localName(top) !== 'body' ? block(top, 0) : blocks(top, 0);
  if (thread?.isBelow) made.push(...thread.messages.map((of) => message(of, 0)));
  // The post is divided from what is said about it.
  const discussion = thread ? made.findIndex((part) => part.startsWith(MESSAGE)) : -1;
  if (made.slice(0, Math.max(0, discussion)).some((part) => !part.startsWith('#')) && !made[discussion - 1].startsWith('#')) made.splice(discussion, 0, '---', '## Comments');
  const ends = definitions();
  // The heading of the notes has nothing below it.
  const parts = made.filter((part, at) => {
    const level = /^(#{1,6}) /.exec(part)?.[1].length;
    const next = made[at + 1];
    const nextLevel = next === undefined ? 0 : (/^(#{1,6}) /.exec(next)?.[1].length ?? 9);
    // That of a bibliography is a part of the article.
    if (level && next === undefined && BIBLIOGRAPHIES.test(part.slice(level + 1))) return true;
    return !(ends.length > 0 && nextLevel <= (level ?? 9) && (level ? NOTE_HEADINGS.test(part.slice(level + 1)) : next === undefined && (part === '---' || NOTE_HEADINGS.test(part.replace(/\*|:$/g, '')))));
  });
  if (ends.length > 0 && parts.at(-1) === '---') parts.pop();
  const content = top ? `${joined([...parts, ...ends])}\n` : '';
  return { content: content.slice(0, most), isCut: isCut || content.length > most, isWhole: Boolean(main) && !found };
};

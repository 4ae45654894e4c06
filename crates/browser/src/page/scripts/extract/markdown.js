// Markdown.

const MAX_NODES = 200000;
const MAX_DEPTH = 150;
const SKIPPED = new Set(['script', 'style', 'noscript', 'template', 'head', 'title', 'svg', 'canvas', 'iframe', 'object', 'embed', 'audio', 'video', 'select', 'input', 'textarea', 'datalist', 'map']);
const BOLD = new Set(['b', 'strong']);
const ITALIC = new Set(['i', 'em', 'cite', 'var', 'dfn']);
const STRUCK = new Set(['s', 'del', 'strike']);
const CODE = new Set(['code', 'kbd', 'samp', 'tt']);

const escapeInline = (text) =>
  text.replace(/[\\`*\[\]<]/g, '\\$&').replace(/(^|[^\p{L}\p{N}])_|_(?=[^\p{L}\p{N}]|$)/gu, (found) => found.replace('_', '\\_'));
// What would begin a heading, a list or a quotation.
const escapeStart = (line) => line.replace(/^(\s*)(#{1,6}(?=\s|$)|[-+](?=\s|$)|>|={3,}|-{3,}|~{3,})/, '$1\\$2').replace(/^(\s*\d{1,9})([.)])(?=\s|$)/, '$1\\$2');
const target = (url) => url.replace(/[()<>\\\s]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
const fence = (code, least) => {
  const longest = Math.max(0, ...(code.match(/`+/g) ?? []).map((run) => run.length));
  return '`'.repeat(Math.max(least, longest + 1));
};
// Marks are directly beside the text, and spaces are kept outside.
const wrap = (text, mark) => {
  const inner = text.trim();
  if (!inner) return text;
  return `${/^\s/.test(text) ? ' ' : ''}${mark}${inner}${mark}${/\s$/.test(text) ? ' ' : ''}`;
};

// The source of a formula: of MathML, of KaTeX and MathJax, which both have MathML in them or its source, or of an image. Null
// if the element is no formula, or has no source.
const MATH_CLASSES = /(?:^|\s)(?:katex|katex-display|MathJax|MathJax_Display|mwe-math-element)(?:\s|$)/;
const MATH_IMAGES = /(?:^|\s)(?:latex|tex|mathtex|mwe-math-fallback-image[\w-]*)(?:\s|$)/;
const formula = (element) => {
  const name = localName(element);
  if (name === 'img') {
    const tex = MATH_IMAGES.test(attribute(element, 'class') ?? '') ? oneLine(attribute(element, 'alt') ?? '', MAX_URL) : '';
    return tex ? { tex: tex.replace(/^\{\\displaystyle (.*)\}$/, '$1'), isBlock: false } : null;
  }
  const isMath = name === 'math' || name === 'mjx-container' || MATH_CLASSES.test(attribute(element, 'class') ?? '');
  if (!isMath) return null;
  const math = name === 'math' ? element : selectIn(element, 'math')[0];
  const source = selectIn(element, 'annotation[encoding="application/x-tex" i]')[0];
  const given = source ? textContent(source) : (math && (attribute(math, 'alttext') || attribute(math, 'data-latex'))) || attribute(element, 'data-latex');
  const tex = (given ?? '').replace(/\s+/g, ' ').trim().replace(/^\{\\displaystyle (.*)\}$/, '$1').trim();
  if (!tex || tex.length > MAX_URL) return null;
  const isBlock = (math && attribute(math, 'display') === 'block') || attribute(element, 'display') === 'true' || /display/i.test(attribute(element, 'class') ?? '');
  return { tex, isBlock };
};

// The language of code, by the names that highlighters give.
const LANGUAGE = /(?:^|\s)(?:lang(?:uage)?-|highlight-(?:source|text)-|brush:\s*)([\w+#-]{1,30})/;
const languageOf = (element) => {
  const parent = parentElement(element);
  const outer = parent ? parentElement(parent) : null;
  const around = [element, ...selectIn(element, 'code').slice(0, 1), parent, outer].filter(Boolean);
  for (const of of around) {
    const named = LANGUAGE.exec(attribute(of, 'class') ?? '')?.[1] ?? attribute(of, 'data-lang') ?? attribute(of, 'data-language');
    if (named && /^[\w+#-]{1,30}$/.test(named)) return named.toLowerCase();
  }
  return '';
};

const markdown = ({ most, main }) => {
  const found = main ? mainContent() : null;
  const removed = found?.removed ?? new Set();
  let nodes = 0;
  let size = 0;
  let isCut = false;
  const styleOf = (element) => getComputedStyle(element);
  const isLeftOut = (element, style) => removed.has(element) || SKIPPED.has(localName(element)) || style.display === 'none' || attribute(element, 'aria-hidden') === 'true';
  const isInline = (style) => /^(?:inline|contents|ruby)/.test(style.display);
  const enter = (depth) => {
    nodes += 1;
    if (nodes > MAX_NODES || size > most || depth > MAX_DEPTH) isCut = true;
    return !(nodes > MAX_NODES || size > most || depth > MAX_DEPTH);
  };
  const count = (text) => {
    size += text.length;
    return text;
  };

  const image = (element) => {
    const url = webUrl(shownSource(element) || imageSource(element));
    const alt = escapeInline(oneLine(attribute(element, 'alt') ?? '', 300));
    return url ? count(`![${alt}](${target(url)})`) : alt;
  };

  // An element or a text, in one line.
  const inline = (node, depth, isShown) => {
    if (!enter(depth)) return '';
    if (typeOf(node) === TEXT) return isShown && !removed.has(node) ? count(escapeInline(codeOf(node).replace(/[\s\u0000]+/g, ' '))) : '';
    if (typeOf(node) !== ELEMENT) return '';
    const style = styleOf(node);
    if (isLeftOut(node, style)) return '';
    const name = localName(node);
    const shown = style.visibility === 'visible';
    const math = formula(node);
    if (math) return shown ? count(`$${math.tex}$`) : '';
    if (name === 'br') return '\n';
    if (name === 'img' && node instanceof HTMLImageElement) return shown ? image(node) : '';
    if (CODE.has(name)) {
      const code = textContent(node).replace(/\s+/g, ' ').trim();
      if (!code || !shown) return '';
      const mark = fence(code, 1);
      const space = /^`|`$/.test(code) ? ' ' : '';
      return count(`${mark}${space}${code}${space}${mark}`);
    }
    const inner = inlines(node, depth, shown);
    if (name === 'a' && node instanceof HTMLAnchorElement) {
      const url = anchorUrl(node);
      const label = inner.replace(/\s+/g, ' ').trim() || escapeInline(oneLine(attribute(node, 'aria-label') ?? '', 300));
      if (!label || !(webUrl(url) || /^(?:mailto|tel):/i.test(url)) || url.length > MAX_URL) return inner;
      return count(`${/^\s/.test(inner) ? ' ' : ''}[${label}](${target(url)})${/\s$/.test(inner) ? ' ' : ''}`);
    }
    if (BOLD.has(name)) return wrap(inner, '**');
    if (ITALIC.has(name)) return wrap(inner, '*');
    if (STRUCK.has(name)) return wrap(inner, '~~');
    return isInline(style) ? inner : ` ${inner} `;
  };
  const inlines = (node, depth, isShown) => {
    let text = '';
    for (const child of childrenOf(node)) text += inline(child, depth + 1, isShown);
    return text;
  };
  const tidy = (text) =>
    text.split('\n').map((line) => line.replace(/\s+/g, ' ').trim()).join('\n').replace(/^\n+|\n+$/g, '').replace(/\n{2,}/g, '\n');
  const singleLine = (text) => text.replace(/\s+/g, ' ').trim();
  const paragraph = (text) => tidy(text).split('\n').map(escapeStart).join('  \n');

  const hasBlocks = (node, depth) => {
    if (depth > MAX_DEPTH) return false;
    for (const child of childrenOf(node)) {
      if (typeOf(child) !== ELEMENT) continue;
      const style = styleOf(child);
      if (SKIPPED.has(localName(child)) || style.display === 'none') continue;
      if (!isInline(style) || hasBlocks(child, depth + 1)) return true;
    }
    return false;
  };

  const indent = (text, first, rest) => text.split('\n').map((line, at) => (at === 0 ? first + line : line ? rest + line : line)).join('\n');

  const list = (element, depth) => {
    const isOrdered = localName(element) === 'ol';
    const start = Number.parseInt(attribute(element, 'start') ?? '1', 10);
    let number = Number.isFinite(start) && start >= 0 && start < 1e9 ? start : 1;
    const items = [];
    for (const child of childrenOf(element)) {
      if (typeOf(child) !== ELEMENT || isLeftOut(child, styleOf(child))) continue;
      const content = blocks(child, depth + 1).join('\n\n').replace(/\n\n(?=\s*(?:[-*]|\d+\.) )/g, '\n');
      if (!content) continue;
      const marker = isOrdered ? `${number}. ` : '- ';
      number += 1;
      items.push(indent(content, marker, ' '.repeat(marker.length)));
    }
    return items.join('\n');
  };

  const rowsOf = (table) => selectIn(table, ':scope > tr, :scope > thead > tr, :scope > tbody > tr, :scope > tfoot > tr');
  const cellsOf = (row) => selectIn(row, ':scope > th, :scope > td');
  const isData = (table, rows) => {
    if (selectIn(table, 'table').length > 0 || rows.length < 1) return false;
    const widest = Math.max(...rows.slice(0, 1000).map((row) => cellsOf(row).length));
    return widest > 1 && widest <= 100 && (rows.length > 1 || selectIn(table, 'th').length > 0);
  };
  // Markdown has no cells that span others, so that tables with them are written as HTML.
  const spanOf = (cell, name) => {
    const span = Number.parseInt(attribute(cell, name) ?? '1', 10);
    return span > 1 && span <= 1000 ? ` ${name}="${span}"` : '';
  };
  const hasSpans = (rows) => rows.some((row) => cellsOf(row).some((cell) => spanOf(cell, 'colspan') || spanOf(cell, 'rowspan')));
  const escapeHtml = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
  const inlineHtml = (node, depth, isShown) => {
    if (!enter(depth)) return '';
    if (typeOf(node) === TEXT) return isShown && !removed.has(node) ? count(escapeHtml(codeOf(node).replace(/[\s\u0000]+/g, ' '))) : '';
    if (typeOf(node) !== ELEMENT || isLeftOut(node, styleOf(node))) return '';
    const name = localName(node);
    if (name === 'br') return '<br>';
    const shown = styleOf(node).visibility === 'visible';
    let inner = '';
    for (const child of childrenOf(node)) inner += inlineHtml(child, depth + 1, shown);
    const url = node instanceof HTMLAnchorElement ? webUrl(anchorUrl(node)) : null;
    if (url && inner.trim()) return count(`<a href="${escapeHtml(target(url)).replace(/"/g, '%22')}">${inner.trim()}</a>`);
    return isInline(styleOf(node)) ? inner : ` ${inner} `;
  };
  const tableWithSpans = (rows, depth) => {
    const lines = [];
    for (const row of rows) {
      if (!enter(depth)) break;
      if (isLeftOut(row, styleOf(row))) continue;
      const cells = cellsOf(row).map((cell) => {
        const name = localName(cell);
        const content = singleLine(inlineHtml(cell, depth + 2, true));
        return count(`<${name}${spanOf(cell, 'colspan')}${spanOf(cell, 'rowspan')}>${content}</${name}>`);
      });
      if (cells.length > 0) lines.push(`<tr>${cells.join('')}</tr>`);
    }
    return lines.length > 0 ? `<table>\n${lines.join('\n')}\n</table>` : '';
  };
  const tableOf = (table, rows, depth) => {
    if (hasSpans(rows)) return tableWithSpans(rows, depth);
    const lines = [];
    for (const row of rows) {
      if (!enter(depth)) break;
      if (styleOf(row).display === 'none') continue;
      lines.push(cellsOf(row).map((cell) => singleLine(inlines(cell, depth + 2, styleOf(cell).visibility === 'visible')).replace(/\|/g, '\\|')));
    }
    const width = Math.max(0, ...lines.map((line) => line.length));
    if (width === 0) return '';
    const write = (cells) => `| ${Array.from({ length: width }, (_, at) => cells[at] ?? '').join(' | ')} |`;
    return [write(lines[0]), `|${' --- |'.repeat(width)}`, ...lines.slice(1).map(write)].join('\n');
  };

  const preformatted = (element) => {
    const code = (element instanceof HTMLElement ? innerText(element) : textContent(element)).replace(/\u0000/g, '').replace(/^\n|\s+$/g, '');
    if (!code) return '';
    const mark = fence(code, 3);
    return count(`${mark}${languageOf(element)}\n${code}\n${mark}`);
  };

  // The blocks of an element that is a block, or has some.
  const block = (element, depth) => {
    const name = localName(element);
    const isShown = styleOf(element).visibility === 'visible';
    const level = /^h([1-6])$/.exec(name)?.[1];
    if (level) {
      const heading = singleLine(inlines(element, depth, isShown));
      return heading ? [`${'#'.repeat(Number(level))} ${heading}`] : [];
    }
    const one = (text) => (text ? [text] : []);
    switch (name) {
      case 'hr':
        return ['---'];
      case 'pre':
        return isShown ? one(preformatted(element)) : [];
      case 'ul':
      case 'ol':
      case 'menu':
        return one(list(element, depth));
      case 'blockquote': {
        const inner = blocks(element, depth + 1).join('\n\n');
        return one(inner.split('\n').map((line) => (inner ? `> ${line}`.trimEnd() : '')).join('\n'));
      }
      case 'table': {
        const rows = rowsOf(element);
        return isData(element, rows) ? one(tableOf(element, rows, depth + 1)) : blocks(element, depth + 1);
      }
      case 'dt':
        return one(wrap(singleLine(inlines(element, depth, isShown)), '**'));
      default:
        return blocks(element, depth + 1);
    }
  };

  const blocks = (node, depth) => {
    const found = [];
    let run = '';
    const flush = () => {
      const text = paragraph(run);
      if (text) found.push(text);
      run = '';
    };
    const isShown = typeOf(node) !== ELEMENT || styleOf(node).visibility === 'visible';
    for (const child of childrenOf(node)) {
      if (typeOf(child) !== ELEMENT) {
        run += inline(child, depth + 1, isShown);
        continue;
      }
      if (!enter(depth)) break;
      const style = styleOf(child);
      if (isLeftOut(child, style)) continue;
      const name = localName(child);
      // A link or a span around blocks is left out, so that they are written as such; links around text stay.
      const math = formula(child);
      if (math?.isBlock && style.visibility === 'visible') {
        flush();
        found.push(count(`$$\n${math.tex}\n$$`));
        continue;
      }
      const isBlock = !math && (!isInline(style) || (name !== 'a' && hasBlocks(child, depth)));
      if (isBlock && name !== 'br' && name !== 'img') {
        flush();
        found.push(...block(child, depth + 1));
      } else {
        run += inline(child, depth + 1, isShown);
      }
    }
    flush();
    return found;
  };

  // An article may be all of a table or of a list, so that it is not only its blocks.
  const top = found?.root ?? bodyOf(document) ?? rootOf(document);
  const made = !top ? [] : found && localName(top) !== 'body' ? block(top, 0) : blocks(top, 0);
  const content = top ? `${made.join('\n\n')}\n` : '';
  return { content: content.slice(0, most), isCut: isCut || content.length > most, isWhole: Boolean(main) && !found };
};


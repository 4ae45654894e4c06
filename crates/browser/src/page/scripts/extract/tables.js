// Tables: as Markdown, or as HTML if cells span others.

const rowsOf = (table) => selectIn(table, ':scope > tr, :scope > thead > tr, :scope > tbody > tr, :scope > tfoot > tr');
const cellsOf = (row) => selectIn(row, ':scope > th, :scope > td');
const isDataTable = (table, rows) => {
  if (selectIn(table, 'table').length > 0 || rows.length < 1) return false;
  const widest = Math.max(...rows.slice(0, 1000).map((row) => cellsOf(row).length));
  return widest > 1 && widest <= 100 && (rows.length > 1 || selectIn(table, 'th, math, code').length > 0);
};
// A list that is laid out as a table: most rows are an item and begin with a number, each one more than that before.
const NUMBER_CELL = /^(\d{1,4})[.)]$/;
const numberOfRow = (row) => {
  const first = cellsOf(row).find((cell) => lengthOf(cell) > 0 && textContent(cell).trim());
  return first && lengthOf(first) <= 20 ? Number(NUMBER_CELL.exec(textContent(first).trim())?.[1] ?? 0) : 0;
};
const isNumberedList = (table, rows) => {
  if (rows.length < 3 || rows.length > 5000 || selectIn(table, 'table, th').length > 0) return false;
  const numbers = rows.map(numberOfRow).filter(Boolean);
  return numbers.length >= 3 && numbers.every((number, at) => at === 0 || number === numbers[at - 1] + 1) && numberOfRow(rows.find((row) => textContent(row).trim())) > 0;
};
const spanOf = (cell, name) => {
  const span = Number.parseInt(attribute(cell, name) ?? '1', 10);
  return span > 1 && span <= 1000 ? ` ${name}="${span}"` : '';
};
const hasSpans = (rows) => rows.some((row) => cellsOf(row).some((cell) => spanOf(cell, 'colspan') || spanOf(cell, 'rowspan')));
const escapeHtml = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');

// `writer` has what the writer of Markdown does with the parts of a cell.
const tableWriter = (writer) => {
  const { enter, count, isLeftOut, isTextLeftOut, inlines, reference } = writer;
  const inlineHtml = (node, depth, isShown) => {
    if (!enter(depth)) return '';
    if (typeOf(node) === TEXT) return isShown && !isTextLeftOut(node) ? count(escapeHtml(codeOf(node).replace(/[\s\u0000]+/g, ' '))) : '';
    if (typeOf(node) !== ELEMENT) return '';
    const note = reference(node);
    if (note) return count(note);
    const math = formula(node);
    if (math) return math.tex ? count(escapeHtml(`$${math.tex}$`)) : '';
    const style = getComputedStyle(node);
    if (isLeftOut(node, style)) return '';
    const name = localName(node);
    if (name === 'br') return '<br>';
    const shown = style.visibility === 'visible';
    const line = lineOf();
    for (const child of childrenOf(node)) line.add(child, inlineHtml(child, depth + 1, shown));
    const inner = line.text();
    if (isHtml(node, 'img')) {
      const url = shown && !isPixel(node) ? sourceOf(node) : null;
      return url ? count(`<img src="${escapeHtml(encoded(url)).replace(/"/g, '%22')}" alt="${escapeHtml(oneLine(attribute(node, 'alt') ?? '', 300)).replace(/"/g, '&quot;')}">`) : '';
    }
    const url = isHtml(node, 'a') ? webUrl(anchorUrl(node)) : null;
    if (url && inner.trim()) return count(`<a href="${escapeHtml(encoded(url)).replace(/"/g, '%22')}">${inner.trim()}</a>`);
    return isInline(style) ? inner : ` ${inner} `;
  };
  const tableWithSpans = (rows, depth) => {
    const lines = [];
    for (const row of rows) {
      if (!enter(depth)) break;
      if (isLeftOut(row, getComputedStyle(row))) continue;
      const cells = cellsOf(row).map((cell) => {
        const name = localName(cell);
        const content = oneSpaced(inlineHtml(cell, depth + 2, true));
        return count(`<${name}${spanOf(cell, 'colspan')}${spanOf(cell, 'rowspan')}>${content}</${name}>`);
      });
      if (cells.length > 0) lines.push(`<tr>${cells.join('')}</tr>`);
    }
    return lines.length > 0 ? `<table>\n${lines.join('\n')}\n</table>` : '';
  };
  // The rows without a number belong to the item before. After the last one, there may be something else.
  const numberedList = (rows, depth) => {
    const items = [];
    for (const row of rows) {
      if (!enter(depth)) break;
      if (isLeftOut(row, getComputedStyle(row))) continue;
      const number = numberOfRow(row);
      const cells = cellsOf(row).map((cell) => oneSpaced(inlines(cell, depth + 2, getComputedStyle(cell).visibility === 'visible'))).filter(Boolean);
      const line = (number ? cells.slice(1) : cells).join(' ');
      if (number) items.push({ number, lines: [line] });
      else if (line) items.at(-1)?.lines.push(line);
    }
    const last = items.at(-1);
    const usual = items[0]?.lines.length ?? 0;
    const after = last && items.length > 1 ? last.lines.splice(usual) : [];
    const write = ({ number, lines }) => indent(lines.join('  \n'), `${number}. `, ' '.repeat(`${number}. `.length));
    return [items.map(write).join('\n'), ...after].filter(Boolean);
  };
  const table = (rows, depth) => {
    if (hasSpans(rows)) return tableWithSpans(rows, depth);
    const lines = [];
    for (const row of rows) {
      if (!enter(depth)) break;
      if (isLeftOut(row, getComputedStyle(row))) continue;
      lines.push(cellsOf(row).map((cell) => oneSpaced(inlines(cell, depth + 2, getComputedStyle(cell).visibility === 'visible')).replace(/\|/g, '\\|')));
    }
    // Columns in which nothing is written are for the layout.
    const width = longestOf(lines);
    const columns = Array.from({ length: width }, (_, at) => at).filter((at) => lines.some((line) => line[at]));
    if (columns.length === 0) return '';
    const write = (cells) => `| ${columns.map((at) => cells[at] ?? '').join(' | ')} |`;
    return [write(lines[0]), `|${' --- |'.repeat(columns.length)}`, ...lines.slice(1).map(write)].join('\n');
  };
  return { table, numberedList };
};

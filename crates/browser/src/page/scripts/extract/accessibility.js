// What a document is for screen readers: roles, names, states and texts as an outline in YAML. Elements that can be operated have
// the number that they have in the list of elements.

const MAX_TREE_ENTRIES = 10000;
const MAX_TREE_CHARACTERS = 1 << 20;
const MAX_TREE_DEPTH = 400;
const MAX_TREE_INDENT = 40;
const MAX_TREE_TEXT = 500;
// The most options of a list.
const MAX_TREE_OPTIONS = 50;

// Roles whose elements are only text here, so that what is in them belongs to what they are in.
const WITHOUT_ENTRY = new Set([
  'caption', 'code', 'deletion', 'emphasis', 'generic', 'insertion', 'mark', 'none', 'rowgroup', 'strong', 'subscript', 'suggestion', 'superscript', 'time',
]);
// Roles whose names have the text in them, which is not written again.
const TEXT_IN_NAME = new Set([
  'button', 'checkbox', 'heading', 'img', 'link', 'menuitem', 'menuitemcheckbox', 'menuitemradio', 'option', 'radio', 'switch', 'tab', 'tooltip', 'treeitem',
]);

const plainText = /^[\p{L}\p{N}][^:#"'`{}[\],&*!|>%@\\\n\t]*$/u;
const otherType = /^(?:true|false|yes|no|on|off|null|y|n|[\d.,_+-]+(?:e[\d+-]+)?|0[xo].*|\.(?:inf|nan)|\d.*)$/i;
const quoted = (text) => (plainText.test(text) && !otherType.test(text) && text === text.trim() ? text : JSON.stringify(text));
// A key is plain unless it has what ends one.
const keyOf = (text) => (/: |:$| #/.test(text) ? `'${text.replace(/'/g, "''")}'` : text);
// YAML has no control characters.
const CONTROLS = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;
const cutText = (text) => {
  const line = text.replace(/[\s\u0000-\u001f]+/g, ' ').replace(CONTROLS, '').trim();
  return (line.length > MAX_TREE_TEXT ? `${line.slice(0, MAX_TREE_TEXT)}…` : line).toWellFormed();
};

const levelOf = (element) => {
  const given = Number.parseInt(attribute(element, 'aria-level') ?? '', 10);
  if (given >= 1 && given <= 99) return given;
  const [, digit] = /^h([1-6])$/.exec(localName(element)) ?? [];
  return digit ? Number(digit) : null;
};

const entryOf = (element, role, numbers) => {
  const isNamedByEntries = NAMED_BY_CONTENT.has(role) && !TEXT_IN_NAME.has(role);
  const name = isNamedByEntries ? trimmed(attribute(element, 'aria-label') ?? '').slice(0, MAX_NAME).toWellFormed() : nameOf(element, numbers.has(element));
  const marks = [];
  const level = role === 'heading' ? levelOf(element) : null;
  if (level) marks.push(`level=${level}`);
  const { value, ...states } = statesOf(element, role);
  for (const [state, is] of Object.entries(states)) if (is !== false) marks.push(is === true ? state : `${state}=${is}`);
  if (states.expanded === false) marks.push('expanded=false');
  if (numbers.has(element)) marks.push(`ref=e${numbers.get(element)}`);
  const parts = [role, ...(name ? [JSON.stringify(name)] : []), ...marks.map((mark) => `[${mark}]`)];
  return { head: parts.join(' ').replace(CONTROLS, ''), name, value, children: [] };
};

// The options of a native list: those that are selected, and the first of the others. The rest is counted. Null if the value of the
// list is kept secret.
const optionEntries = (list, left) => {
  const options = [...list.options].filter((option) => !hasAttribute(option, 'hidden'));
  const selected = options.filter((option) => option.selected);
  const isPrivate = (option) => hiddenTexts.some((text) => text !== '' && optionText(option).includes(text));
  if (isSecret(list) || selected.some(isPrivate)) return null;
  const chosen = new Set(selected.slice(0, MAX_TREE_OPTIONS));
  for (const option of options) {
    if (chosen.size === MAX_TREE_OPTIONS) break;
    chosen.add(option);
  }
  left.entries -= chosen.size;
  const entries = options
    .filter((option) => chosen.has(option))
    .map((option) => {
      const name = cutText(optionText(option));
      const marks = `${option.selected ? ' [selected]' : ''}${matchesSelector(option, ':disabled') ? ' [disabled]' : ''}`;
      return { head: `option ${JSON.stringify(name)}${marks}`, name, value: '', children: [] };
    });
  const rest = options.length - chosen.size;
  return rest > 0 ? [...entries, `${rest} more options`] : entries;
};

// The entries of a document. A text is a string, and a boundary between texts is `null`.
const entriesOf = (numbers) => {
  const left = { entries: MAX_TREE_ENTRIES, depth: 0, isCut: false };
  const read = (node, into, isInName) => {
    if (typeOf(node) === TEXT) {
      if (!isInName) into.push(collapsed(codeOf(node).slice(0, 10 * MAX_TREE_TEXT)));
      return;
    }
    if (typeOf(node) !== ELEMENT || UNREAD.has(localName(node)) || localName(node) === 'title') return;
    if (left.depth >= MAX_TREE_DEPTH || left.entries <= 0) {
      left.isCut = true;
      return;
    }
    const image = node instanceof HTMLAreaElement ? imageOf(node) : null;
    const { display, visibility } = styleOf(image ?? node);
    if (display === 'none' || attribute(node, 'aria-hidden') === 'true' || hasAttribute(node, 'inert')) return;
    left.depth += 1;
    const role = roleOf(node);
    const isInline = display === 'inline' || display === 'contents' || display.startsWith('ruby');
    if (visibility !== 'visible' || ((isInName || WITHOUT_ENTRY.has(role)) && !numbers.has(node))) {
      if (!isInline || localName(node) === 'br') into.push(null);
      if (!isLeaf(node)) inner(node, into, isInName, visibility === 'visible');
      if (!isInline) into.push(null);
    } else {
      left.entries -= 1;
      const entry = entryOf(node, role, numbers);
      const isField = VALUED_ROLES.has(role) || isLeaf(node);
      const options = node instanceof HTMLSelectElement ? optionEntries(node, left) : null;
      if (options) entry.children.push(...options);
      else if (entry.value) entry.children.push(entry.value);
      else if (!isField) inner(node, entry.children, TEXT_IN_NAME.has(role) || (role === 'generic' && numbers.has(node)), true);
      const isEmpty = !entry.name && !numbers.has(node) && !entry.children.some((child) => child !== null && (typeof child !== 'string' || child.trim() !== ''));
      // Images without a name, and empty boxes, are left out.
      if (!isEmpty) into.push(entry);
    }
    left.depth -= 1;
  };
  const inner = (node, into, isInName, isShown) => {
    const isClosed = node instanceof HTMLDetailsElement && !hasAttribute(node, 'open');
    if (isShown && !isInName) into.push(addedText(node, '::before'));
    for (const child of childrenOf(node)) {
      if (isClosed && (typeOf(child) !== ELEMENT || localName(child) !== 'summary')) continue;
      if (isShown || typeOf(child) === ELEMENT) read(child, into, isInName);
    }
    for (const owned of referenced(node, 'aria-owns')) if (!contains(owned, node)) read(owned, into, isInName);
    if (isShown && !isInName) into.push(addedText(node, '::after'));
  };
  const all = [];
  const start = bodyOf(document) ?? rootOf(document);
  if (start) read(start, all, false);
  return { entries: all, isCut: left.isCut || nodesLeft < 0 };
};

// Neighbouring texts as one, without empty ones.
const joined = (children) => {
  const all = [];
  let text = '';
  for (const child of [...children, null]) {
    if (typeof child === 'string') {
      text += child;
      continue;
    }
    if (text.trim()) all.push(cutText(text));
    text = '';
    if (child) all.push(child);
  }
  return all;
};

// The outline of the document as lines of YAML, and whether something is missing. That of a frame has an entry around it.
const outlineOf = (numbers, { size, isFrame, frame }) => {
  const { entries, isCut } = entriesOf(numbers);
  const lines = [];
  let characters = size;
  let isFull = false;
  const write = (children, indent) => {
    for (const child of joined(children)) {
      if (characters > MAX_TREE_CHARACTERS) {
        isFull = true;
        return;
      }
      const at = lines.length;
      const pad = '  '.repeat(Math.min(indent, MAX_TREE_INDENT));
      if (typeof child === 'string') {
        lines.push(`${pad}- text: ${quoted(child)}`);
      } else {
        const below = joined(child.children);
        const [only] = below;
        if (below.length === 1 && typeof only === 'string') lines.push(`${pad}- ${keyOf(child.head)}: ${quoted(only)}`);
        else if (below.length === 0 || indent >= MAX_TREE_INDENT) lines.push(`${pad}- ${keyOf(child.head)}`);
        else {
          lines.push(`${pad}- ${keyOf(child.head)}:`);
          characters += lines[at].length;
          write(child.children, indent + 1);
          continue;
        }
        if (indent >= MAX_TREE_INDENT && below.length > 1) isFull = true;
      }
      characters += lines[at].length;
    }
  };
  write(entries, 0);
  if (!isFrame || lines.length === 0) return { lines, isCut: isCut || isFull, size: characters };
  const head = frame === null ? 'frame' : keyOf(`frame ${JSON.stringify(frame)}`);
  return { lines: [`- ${head}:`, ...lines.map((line) => `  ${line}`)], isCut: isCut || isFull, size: characters };
};

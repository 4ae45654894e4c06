// Finds the elements that the steps of a capture name. These scripts are one expression together with `common.js`, which is
// sent only if there are steps, and runs in an isolated world of each frame that a step names; or if an option has a selector that
// is none of CSS.

const MAX_NAMES = 8;
const MAX_NAME = 40;
const MAX_BOXES = 4;
// The frames that are waited for until an element does not move.
const MAX_MOVES = 10;
// Where an element is clicked: in its middle, or where nothing covers it.
const PLACES = [[0.5, 0.5], [0.25, 0.5], [0.75, 0.5], [0.5, 0.25], [0.5, 0.75], [0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9]];

const steps = {};
// Texts that errors must not contain.
let hidden = [];
// The element that the last call has found, and the option of a list.
let found = null;
let foundOption = null;

const short = (text) => {
  let line = oneLine(text.slice(0, 10000));
  for (const secret of hidden) line = line.replaceAll(oneLine(secret), '…');
  return line.length > MAX_NAME ? `${line.slice(0, MAX_NAME - 1)}…` : line;
};
// A transparent element can be used: pages put one over what they draw instead of a check box.
const isUsable = (element) => hasArea(boxOf(element)) && (isShown(element) || element.checkVisibility({ visibilityProperty: true }));
const isSame = (one, other) => one.toLowerCase() === other.toLowerCase();

// Text

const BUTTON_INPUTS = 'input[type=button], input[type=submit], input[type=reset]';
const WITHOUT_TEXT = 'script, style, template, noscript, head';

// The text of an element, without scripts and styles in it. A forced line break is a space. A form may have fields in place of
// its `children` and `childNodes`.
const textOf = (element) => {
  if (!element.querySelector(`${WITHOUT_TEXT}, br`)) return element.textContent;
  let text = '';
  for (let node = element.firstChild; node; node = node.nextSibling) {
    if (node.nodeType === Node.TEXT_NODE) text += node.data;
    else if (node.nodeType === Node.ELEMENT_NODE && !node.matches(WITHOUT_TEXT)) text += node.localName === 'br' ? ' ' : textOf(node);
  }
  return text;
};

const withoutSpaces = (text) => drawnText(text).replace(/\s+/g, '').toLowerCase();

// The innermost elements whose text is accepted. Elements are searched only if their text contains the text.
const byText = (text, isWhole) => {
  const wanted = oneLine(text).toLowerCase();
  if (wanted === '') throw new SyntaxError('no text');
  const letters = withoutSpaces(wanted);
  const accepts = (line) => (isWhole ? line === wanted : line.includes(wanted));
  const all = [];
  const visit = (parent) => {
    let hasMatch = false;
    for (let child = parent.firstElementChild; child; child = child.nextElementSibling) {
      if (child.matches(WITHOUT_TEXT)) continue;
      const own = textOf(child);
      if (!withoutSpaces(own).includes(letters)) continue;
      const hasInner = visit(child);
      const isInnermost = !hasInner && accepts(oneLine(own).toLowerCase());
      if (isInnermost) all.push(child);
      hasMatch ||= hasInner || isInnermost;
    }
    return hasMatch;
  };
  for (const tree of trees()) visit(tree);
  const labelled = elements(BUTTON_INPUTS).filter((input) => accepts(oneLine(input.value).toLowerCase()));
  return [...all, ...labelled];
};

// Roles and names

const ROLES = {
  article: 'article',
  button: `button, summary, input[type=image], ${BUTTON_INPUTS}`,
  cell: 'td',
  checkbox: 'input[type=checkbox]',
  columnheader: 'th',
  combobox: 'select:not([multiple], [size])',
  dialog: 'dialog',
  form: 'form',
  heading: 'h1, h2, h3, h4, h5, h6',
  img: 'img',
  link: 'a[href], area[href]',
  list: 'ul, ol',
  listbox: 'select[multiple], select[size]',
  listitem: 'li',
  main: 'main',
  navigation: 'nav',
  option: 'option',
  radio: 'input[type=radio]',
  row: 'tr',
  searchbox: 'input[type=search]',
  slider: 'input[type=range]',
  spinbutton: 'input[type=number]',
  table: 'table',
  textbox: 'input:not([type]), input[type=text], input[type=email], input[type=tel], input[type=url], input[type=password], textarea, [contenteditable=""], [contenteditable=true]',
};

// The text of a label, without that of the fields in it.
const labelText = (node) =>
  [...node.childNodes]
    .map((child) => {
      if (child.nodeType === Node.TEXT_NODE) return child.data;
      return child instanceof Element && !child.matches('select, textarea, input, button') ? labelText(child) : '';
    })
    .join(' ');

// The name by which a caller knows an element, which need not be exactly its accessible name: `extract/names.js` and
// `extract/roles.js` compute that, but would make this library, which is sent with each call, more than twice as large.
const nameOf = (element) => {
  const ids = element.getAttribute('aria-labelledby')?.split(/\s+/) ?? [];
  const tree = element.getRootNode();
  const candidates = [
    () => ids.map((id) => tree.getElementById?.(id)?.textContent ?? '').join(' '),
    () => element.getAttribute('aria-label'),
    () => [...(element.labels ?? [])].map(labelText).join(' '),
    () => (element.matches(BUTTON_INPUTS) ? element.value : null),
    () => element.getAttribute('alt'),
    () => (element.matches('input, select, textarea') ? null : textOf(element)),
    () => [...element.querySelectorAll('slot')].flatMap((slot) => slot.assignedNodes({ flatten: true })).map((node) => node.textContent).join(' '),
    () => [...element.querySelectorAll('img[alt], [aria-label]')].map((inner) => inner.alt || inner.ariaLabel || '').join(' '),
    () => element.getAttribute('placeholder'),
    () => element.getAttribute('title'),
  ];
  for (const candidate of candidates) {
    const name = oneLine(candidate() ?? '');
    if (name !== '') return name;
  }
  return '';
};

const ROLE_SELECTOR = /^role=([a-z]+)\s*(?:\[\s*name\s*(\*?)=\s*(?:"([^"]*)"|'([^']*)'|([^"'\]]*))\s*\])?$/i;

const byRole = (selector) => {
  const [, role, part, ...names] = ROLE_SELECTOR.exec(selector) ?? [];
  if (!role) throw new SyntaxError('no role');
  const implied = Object.hasOwn(ROLES, role.toLowerCase()) ? ROLES[role.toLowerCase()] : null;
  const all = elements(implied ? `[role], ${implied}` : '[role]').filter((element) => {
    const [given] = (element.getAttribute('role') ?? '').trim().split(/\s+/);
    return given ? isSame(given, role) : Boolean(implied) && element.matches(implied);
  });
  const name = names.find((candidate) => candidate !== undefined);
  if (name === undefined) return all;
  const wanted = oneLine(name);
  const accepts = (own) => (part ? own.toLowerCase().includes(wanted.toLowerCase()) : isSame(own, wanted));
  return all.filter((element) => accepts(nameOf(element)));
};

const search = (selector) => {
  if (selector.startsWith('role=')) return byRole(selector);
  if (!selector.startsWith('text=')) return elements(selector);
  const text = selector.slice(5).trim();
  const quoted = /^(["'])(.*)\1$/s.exec(text);
  return quoted ? byText(quoted[2], true) : byText(text, false);
};

// What the page has instead of an element that is missing.

const KINDS = {
  buttons: ['button or link', 'buttons and links', `a[href], [role=button], [role=link], ${ROLES.button}`],
  fields: ['field', 'fields', 'input:not([type=hidden]), textarea, [contenteditable=""], [contenteditable=true], [role=textbox]'],
  lists: ['list', 'lists', 'select'],
};
const instead = (kind) => {
  if (!KINDS[kind]) return {};
  const [one, many, selector] = KINDS[kind];
  const all = elements(selector).filter(isVisible);
  const names = new Set(all.slice(0, 200).map((element) => short(nameOf(element) || (element.getAttribute('name') ?? ''))).filter((name) => name !== ''));
  return { noun: all.length === 1 ? one : many, count: all.length, names: [...names].slice(0, MAX_NAMES) };
};

const describe = (element) => {
  if (!element) return 'the edge of the window';
  const id = element.id ? `#${element.id}` : '';
  const [first] = element.classList;
  return short(`<${element.localName}${id}${!id && first ? `.${first}` : ''}>`);
};

// Problems that do not go by themselves.
const FINAL = ['notField', 'notList', 'notFrame'];

// Calls `accept` with the first element that matches and that is shown or can be used, until its result has no problem, or one
// that does not go by itself, or the time is up. Returns the last result.
const locate = async ({ selector, budgetMs, kind, secrets }, accept, isCandidate = isUsable) => {
  const until = performance.now() + budgetMs;
  hidden = secrets;
  for (;;) {
    let all;
    try {
      all = search(selector);
    } catch {
      return { problem: 'invalid' };
    }
    const isLast = performance.now() >= until;
    found = all.find(isCandidate) ?? null;
    const result = found ? await accept(found, isLast) : { problem: all.length > 0 ? 'hidden' : 'missing' };
    if (!result.problem || FINAL.includes(result.problem)) return result;
    if (isLast) return result.problem === 'missing' ? { ...result, ...instead(kind) } : result;
    await frame();
  }
};

const isDisabled = (element) => element.matches(':disabled') || element.closest('button:disabled, [aria-disabled=true]') !== null;

const pointsOf = (element) => {
  const own = [...element.getClientRects()].filter(hasArea);
  const boxes = own.length > 0 ? own.slice(0, MAX_BOXES) : [boxOf(element)];
  const points = boxes.flatMap((box) => PLACES.map(([across, down]) => [box.left + box.width * across, box.top + box.height * down]));
  return points.filter(([x, y]) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight);
};

// Does a click on `hit` act on the element? One on a label acts on its field.
const isHit = (element, hit) => holds(element, hit) || [...(element.labels ?? [])].some((label) => holds(label, hit));

// A point of the element that nothing covers.
const freePoint = (element) => pointsOf(element).find(([x, y]) => isHit(element, elementAt(x, y)));

const bringIntoView = (element) => {
  const target = getComputedStyle(element).display === 'contents' ? (element.firstElementChild ?? element) : element;
  target.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
};

// A point of the element that nothing covers, once the element does not move.
steps.target = ({ enabled, isDragging, ...args }) =>
  locate(args, async (element, isLast) => {
    if (enabled && isDisabled(element)) return { problem: 'disabled' };
    // Scrolling moves what is dragged.
    if (!isDragging || !freePoint(element)) bringIntoView(element);
    await frame();
    const before = boxOf(element);
    await frame();
    const box = boxOf(element);
    if (!isLast && (before.left !== box.left || before.top !== box.top)) return { problem: 'covered' };
    const free = freePoint(element);
    if (free) return { x: free[0], y: free[1] };
    const [point] = pointsOf(element);
    return { problem: 'covered', by: describe(point ? elementAt(...point) : null) };
  });

// Types of `<input>` that take a value instead of typed text, and those that take neither.
const VALUE_INPUTS = /^(date|time|month|week|datetime-local|color|range)$/;
const OTHER_INPUTS = /^(button|submit|reset|image|checkbox|radio|file|hidden)$/;

// The field of a label, also for the text in it.
const controlOf = (element) => {
  if (element.matches('input, textarea, select') || element.isContentEditable) return element;
  return element.closest('label')?.control ?? element;
};

const activeElement = () => {
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  return active;
};

// Focuses a field, and selects what is in it. Tells whether it takes a value instead of typed text.
steps.field = (args) =>
  locate(args, async (match) => {
    const element = controlOf(match);
    const isInput = element instanceof HTMLInputElement && !OTHER_INPUTS.test(element.type);
    const isText = isInput || element instanceof HTMLTextAreaElement;
    if (!isText && !element.isContentEditable) return { problem: 'notField' };
    if (isDisabled(element)) return { problem: 'disabled' };
    if (isText && element.readOnly) return { problem: 'readOnly' };
    bringIntoView(element);
    element.focus({ preventScroll: true });
    await frame();
    const active = activeElement();
    if (!holds(element, active) && !(element.isContentEditable && holds(active, element))) return { problem: 'disabled' };
    found = element;
    if (isInput && VALUE_INPUTS.test(element.type)) return { isValue: true };
    if (isText) element.select();
    else getSelection().selectAllChildren(element);
    return { isValue: false };
  });

const report = (element) => {
  for (const type of ['input', 'change']) element.dispatchEvent(new Event(type, { bubbles: true, composed: true }));
};

steps.setValue = ({ text }) => {
  found.value = text;
  if (found.value === '') return { problem: 'notAccepted' };
  report(found);
  return {};
};

// Finds the option of a list by its value or label.
steps.list = ({ text, ...args }) =>
  locate(args, async (match) => {
    const element = controlOf(match);
    if (!(element instanceof HTMLSelectElement)) return { problem: 'notList' };
    if (isDisabled(element)) return { problem: 'disabled' };
    const options = [...element.options];
    const labelled = (option) => oneLine(option.label) === oneLine(text);
    foundOption = options.find((option) => option.value === text) ?? options.find(labelled) ?? null;
    if (!foundOption) {
      const names = options.map((option) => short(option.label)).filter((name) => name !== '');
      return { problem: 'noOption', count: options.length, names: names.slice(0, MAX_NAMES) };
    }
    if (foundOption.matches(':disabled')) return { problem: 'disabled' };
    bringIntoView(element);
    element.focus({ preventScroll: true });
    found = element;
    return {};
  });

steps.choose = () => {
  foundOption.selected = true;
  report(found);
  return {};
};

steps.scrollToElement = (args) =>
  locate(args, async (element) => {
    bringIntoView(element);
    await frame();
    return {};
  });

steps.scrollToEnd = async ({ text }) => {
  scrollToTop(text === 'bottom' ? root().scrollHeight : 0);
  await frame();
  return {};
};

steps.wait = (args) => locate(args, async () => ({}), isVisible);

// The texts of frames of the same origin.
const frameTexts = () =>
  elements('iframe, frame').map((element) => {
    try {
      return element.contentDocument?.body?.innerText ?? '';
    } catch {
      return '';
    }
  });

steps.waitForText = async ({ text, budgetMs }) => {
  const until = performance.now() + budgetMs;
  const wanted = oneLine(text).toLowerCase();
  for (;;) {
    if (byText(text, false).some(isVisible) || frameTexts().some((shown) => oneLine(shown).toLowerCase().includes(wanted))) return {};
    if (performance.now() >= until) return { problem: 'missing' };
    await frame();
  }
};

// Finds a frame. `steps.element` is then the element.
steps.frame = (args) =>
  locate(args, async (element) => {
    if (!(element instanceof HTMLIFrameElement || element instanceof HTMLFrameElement)) return { problem: 'notFrame' };
    return {};
  });

steps.element = () => found;

// Where a point of the frame that was found is in the window.
const fromFrame = ({ x, y }) => {
  const [across, down] = drawnScale(found);
  const corner = frameCorner(found);
  return { x: corner.x + x * across, y: corner.y + y * down };
};

// The same once the frame does not move: a frame of another site is scrolled to a moment after its element asks for that.
const restingPoint = async (point) => {
  let at = fromFrame(point);
  for (let moves = 0; moves < MAX_MOVES; moves++) {
    await frame();
    const next = fromFrame(point);
    const isAtRest = next.x === at.x && next.y === at.y;
    at = next;
    if (isAtRest) break;
  }
  return at;
};

// Where a point of the frame is, unless something covers it there.
steps.framePoint = async (point) => {
  let at = await restingPoint(point);
  if (at.x < 0 || at.y < 0 || at.x >= innerWidth || at.y >= innerHeight) {
    scrollBy({ left: at.x - innerWidth / 2, top: at.y - innerHeight / 2, behavior: 'instant' });
    at = await restingPoint(point);
  }
  const there = elementAt(at.x, at.y);
  return there === found ? at : { problem: 'covered', by: describe(there) };
};

steps.pause = async () => {
  await frame();
  return {};
};

// For options whose selectors do not lead into frames.
steps.search = (selector) => {
  if (selector.includes(' >> ')) throw new SyntaxError('no frame');
  return search(selector);
};

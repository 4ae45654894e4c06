// Elements that a user can operate, with their boxes in pixels of the image.

const MAX_ELEMENTS = 2000;
// Of names, values, selectors and URLs of all elements together.
const MAX_ELEMENT_CHARACTERS = 2 << 20;
const MAX_VALUE = 300;
const OPERABLE =
  'a[href], area[href], button, input:not([type="hidden" i]), select, textarea, summary, audio[controls], video[controls], ' +
  '[contenteditable]:not([contenteditable="false" i]), [tabindex]:not([tabindex^="-"]), [onclick], [role]';
const NATIVELY_OPERABLE =
  'a[href], area[href], button, input, select, textarea, summary, audio, video, [contenteditable], [tabindex]:not([tabindex^="-"]), [onclick]';
// Roles of other elements tell what the page is made of, and not what can be operated.
const OPERABLE_ROLES = new Set([
  'button', 'checkbox', 'combobox', 'gridcell', 'link', 'listbox', 'menuitem', 'menuitemcheckbox', 'menuitemradio', 'option', 'radio',
  'scrollbar', 'searchbox', 'slider', 'spinbutton', 'switch', 'tab', 'textbox', 'treeitem',
]);
const VALUED_ROLES = new Set(['combobox', 'listbox', 'scrollbar', 'searchbox', 'slider', 'spinbutton', 'textbox']);

const isOperable = (element, role) => OPERABLE_ROLES.has(role) || matchesSelector(element, NATIVELY_OPERABLE);

// The number of each child among those of its name, and how many there are of each name.
const numbersIn = once((parent) => {
  const counts = new Map();
  const numbers = new Map();
  for (let child = firstElement(parent); child; child = nextSiblingElement(child)) {
    const name = localName(child);
    counts.set(name, (counts.get(name) ?? 0) + 1);
    numbers.set(child, counts.get(name));
  }
  return { counts, numbers };
});

// A selector that matches this element only. Elements in shadow trees have none.
const selectorOf = (element) => {
  if (rootNode(element) !== document) return null;
  const steps = [];
  for (let at = element; at; at = parentElement(at)) {
    const id = attribute(at, 'id');
    if (id && id.length <= 64 && selectIn(document, `#${CSS.escape(id)}`).length === 1) {
      steps.unshift(`#${CSS.escape(id)}`);
      break;
    }
    const name = localName(at);
    const parent = parentElement(at);
    const among = parent && numbersIn(parent);
    const isAlone = !among || among.counts.get(name) === 1;
    steps.unshift(isAlone ? CSS.escape(name) : `${CSS.escape(name)}:nth-of-type(${among.numbers.get(at)})`);
  }
  const selector = steps.join(' > ');
  return selector.length <= 1024 ? selector : null;
};

// A state of an element that has it: true, false or `mixed`.
const threeStates = (element, name) => ({ true: true, false: false, mixed: 'mixed' })[attribute(element, name)];

const statesOf = (element, role) => {
  const states = {};
  if (matchesSelector(element, ':disabled') || closest(element, '[aria-disabled="true"], [inert]') !== null) states.disabled = true;
  if (matchesSelector(element, ':required') || attribute(element, 'aria-required') === 'true') states.required = true;
  const isCheckable = element instanceof HTMLInputElement && ['checkbox', 'radio'].includes(element.type);
  const checked = isCheckable ? (element.indeterminate ? 'mixed' : element.checked) : threeStates(element, 'aria-checked');
  const pressed = threeStates(element, 'aria-pressed');
  if (checked !== undefined && pressed === undefined) states.checked = checked;
  if (pressed !== undefined) states.pressed = pressed;
  const selected = element instanceof HTMLOptionElement ? element.selected : threeStates(element, 'aria-selected');
  if (selected !== undefined) states.selected = selected === true;
  const details = localName(element) === 'summary' ? parentElement(element) : null;
  const expanded = details instanceof HTMLDetailsElement ? hasAttribute(details, 'open') : threeStates(element, 'aria-expanded');
  if (expanded !== undefined) states.expanded = expanded === true;
  const value = VALUED_ROLES.has(role) ? shownValue(element, role) : '';
  if (value) states.value = value;
  return states;
};

// What a field shows as its value. Values of passwords and other secrets are left out.
const shownValue = (element, role) => {
  if (element instanceof HTMLInputElement && ['button', 'submit', 'reset', 'image', 'file'].includes(element.type)) return '';
  const of = { first: null, seen: new Set(), by: 'labelledby', isHiddenRead: false, isInvisible: false, nodes: 0, characters: 0, depth: 0 };
  const value = collapsed((valueOf(element, role, of) ?? '').slice(0, 10 * MAX_VALUE)).trim();
  return value.slice(0, MAX_VALUE).toWellFormed();
};

// Where the image is in the window: `area` is the captured part of the page, or null for the window.
const viewOf = ({ area, leftEdge, image }) => ({
  x: area ? area.x - scrollX + leftEdge : visualViewport.offsetLeft,
  y: area ? area.y - scrollY : visualViewport.offsetTop,
  factor: image.width / (area ? area.width : visualViewport.width),
  width: image.width,
  height: image.height,
});

const clipping = newClipping();
const visiblePart = (element, { left, top, right, bottom }) => intersection({ left, top, right, bottom }, clipsOf(element, clipping).own);

// The elements of this document that the image shows, each with the element that has its box, that box, and the part of it that can
// be seen: an area of an image map has the box of its image.
const shownElements = function* (shown) {
  for (const element of trees().flatMap((tree) => selectIn(tree, OPERABLE))) {
    const role = roleOf(element);
    const carrier = element instanceof HTMLAreaElement ? imageOf(element) : element;
    if (!isOperable(element, role) || !carrier || !isVisible(carrier, { opacityProperty: true, visibilityProperty: true })) continue;
    const box = carrier === element ? boxOf(element) : areaBox(element, carrier);
    const part = intersection(visiblePart(carrier, box), shown);
    if (!hasNoArea(part)) yield { element, role, carrier, box, part };
  }
};

// The elements of this document. `view` and `place` are given for the document of a frame: where the image is in the window,
// and where the frame is. `found` and `size` are what other documents already have. With `tree`, the outline is made too. Values
// with one of the texts in `hidden` are left out. `points` are those of elements in a frame for which it is still to be found out
// whether something covers the frame.
const elements = ({ shown, view: given, place, found, size, tree, hidden }) => {
  hiddenTexts = hidden ?? [];
  const view = given ?? viewOf(shown);
  const at = place ?? { x: 0, y: 0, scaleX: 1, scaleY: 1, left: -1e9, top: -1e9, right: 1e9, bottom: 1e9 };
  const across = (x) => Math.min(view.width, Math.max(0, Math.round((Math.min(at.right, Math.max(at.left, at.x + x * at.scaleX)) - view.x) * view.factor)));
  const down = (y) => Math.min(view.height, Math.max(0, Math.round((Math.min(at.bottom, Math.max(at.top, at.y + y * at.scaleY)) - view.y) * view.factor)));
  const inImage = {
    left: (Math.max(at.left, view.x) - at.x) / at.scaleX, top: (Math.max(at.top, view.y) - at.y) / at.scaleY,
    right: (Math.min(at.right, view.x + view.width / view.factor) - at.x) / at.scaleX,
    bottom: (Math.min(at.bottom, view.y + view.height / view.factor) - at.y) / at.scaleY,
  };
  const all = [];
  const asked = [];
  const numbers = new Map();
  let characters = size;
  let isCut = false;
  for (const { element, role, carrier, box, part } of shownElements(inImage)) {
    const [left, right, top, bottom] = [across(box.left), across(box.right), down(box.top), down(box.bottom)];
    if (right <= left || bottom <= top) continue;
    if (found + all.length === MAX_ELEMENTS || characters > MAX_ELEMENT_CHARACTERS || nodesLeft < 0) {
      isCut = true;
      break;
    }
    const one = { role, name: nameOf(element, true), selector: selectorOf(element), box: { x: left, y: top, width: right - left, height: bottom - top } };
    const url = element instanceof HTMLAnchorElement ? webUrl(anchorUrl(element)) : element instanceof HTMLAreaElement ? webUrl(areaUrl(element)) : null;
    if (url) one.url = url;
    Object.assign(one, statesOf(element, role));
    characters += one.name.length + (one.selector ?? '').length + (url ?? '').length + (one.value ?? '').length;
    all.push(one);
    asked.push({ element, carrier, places: placesIn(carrier, part) });
    numbers.set(element, found + all.length);
  }
  const fronts = frontsOf(asked);
  asked.forEach(({ places }, index) => (all[index].covered_by = places ? fronts[index] : UNKNOWN));
  const points = place ? asked.map(({ carrier, places }, index) => (places && fronts[index] === null ? places.map((of) => pointOf(boxOf(carrier), of)) : null)) : [];
  // Names in the outline are read anew.
  if (tree) nodesLeft = MAX_NODES_OF_ALL;
  return { elements: all, isCut, view, size: characters, points, outline: tree ? outlineOf(numbers, tree) : null };
};

// Where the document of a frame is in the window, and which part of it can be seen; null if none of it. `place` is that of the
// document with the element of the frame.
const frameAt = (element, { view, place }) => {
  if (!(element instanceof HTMLElement) || !isVisible(element, { opacityProperty: true, visibilityProperty: true })) return { place: null, selector: null };
  const at = place ?? { x: 0, y: 0, scaleX: 1, scaleY: 1, left: -1e9, top: -1e9, right: 1e9, bottom: 1e9 };
  const box = boxOf(element);
  const style = styleOf(element);
  // The box is that after transformations, and what is inside of it is scaled like it.
  const [ownX, ownY] = [box.width / (element.offsetWidth || 1), box.height / (element.offsetHeight || 1)];
  const inner = (from, to, of) => from + contentInset(style, to) * of;
  const [left, top] = [inner(box.left, 'left', ownX), inner(box.top, 'top', ownY)];
  const [right, bottom] = [inner(box.right, 'right', -ownX), inner(box.bottom, 'bottom', -ownY)];
  const [scaleX, scaleY] = [ownX * at.scaleX, ownY * at.scaleY];
  const part = visiblePart(element, { left, top, right, bottom });
  const next = {
    x: at.x + left * at.scaleX, y: at.y + top * at.scaleY, scaleX, scaleY,
    left: Math.max(at.left, at.x + part.left * at.scaleX), top: Math.max(at.top, at.y + part.top * at.scaleY),
    right: Math.min(at.right, at.x + part.right * at.scaleX), bottom: Math.min(at.bottom, at.y + part.bottom * at.scaleY),
  };
  const isInImage =
    next.left < next.right && next.top < next.bottom && next.left < view.x + view.width / view.factor && next.right > view.x &&
    next.top < view.y + view.height / view.factor && next.bottom > view.y;
  return { place: isInImage ? next : null, selector: selectorOf(element) };
};

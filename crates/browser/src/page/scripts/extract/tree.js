// Reads the page as files. These scripts are one expression, which is sent only if files are asked for. It runs in an
// isolated world, but names in the document may still replace properties of the document and of forms by elements, so
// that only the getters and methods of the prototypes are used.
const getter = (prototype, name) => {
  const { get } = Object.getOwnPropertyDescriptor(prototype, name);
  return (of) => get.call(of);
};
const method = (prototype, name) => {
  const function_ = prototype[name];
  return (of, ...args) => function_.apply(of, args);
};

const rootOf = getter(Document.prototype, 'documentElement');
const bodyOf = getter(Document.prototype, 'body');
const doctypeOf = getter(Document.prototype, 'doctype');
const typeOf = getter(Node.prototype, 'nodeType');
const firstChild = getter(Node.prototype, 'firstChild');
const nextSibling = getter(Node.prototype, 'nextSibling');
const textContent = getter(Node.prototype, 'textContent');
const cloneNode = method(Node.prototype, 'cloneNode');
const localName = getter(Element.prototype, 'localName');
const shadowRoot = getter(Element.prototype, 'shadowRoot');
const outerHtml = getter(Element.prototype, 'outerHTML');
const getHtml = method(Element.prototype, 'getHTML');
const attribute = method(Element.prototype, 'getAttribute');
const selectIn = (tree, selector) => {
  const prototype = tree === document ? Document.prototype : tree instanceof ShadowRoot ? DocumentFragment.prototype : Element.prototype;
  return [...prototype.querySelectorAll.call(tree, selector)];
};
const innerText = getter(HTMLElement.prototype, 'innerText');
const anchorUrl = getter(HTMLAnchorElement.prototype, 'href');
const areaUrl = getter(HTMLAreaElement.prototype, 'href');
const shownSource = getter(HTMLImageElement.prototype, 'currentSrc');
const imageSource = getter(HTMLImageElement.prototype, 'src');
const assignedNodes = method(HTMLSlotElement.prototype, 'assignedNodes');
const codeOf = getter(CharacterData.prototype, 'data');
const boxOf = method(Element.prototype, 'getBoundingClientRect');
const isVisible = method(Element.prototype, 'checkVisibility');
const matchesSelector = method(Element.prototype, 'matches');
const rootNode = method(Node.prototype, 'getRootNode');
const parentElement = getter(Node.prototype, 'parentElement');
const closest = method(Element.prototype, 'closest');
const contains = method(Node.prototype, 'contains');
const firstElement = getter(Element.prototype, 'firstElementChild');
const previousSibling = getter(Element.prototype, 'previousElementSibling');
const nextSiblingElement = getter(Element.prototype, 'nextElementSibling');

const ELEMENT = 1;
const TEXT = 3;
const MAX_URL = 2048;

// Reads something of an element only once, however many others lead to it. The document does not change meanwhile.
const once = (read) => {
  const known = new Map();
  return (element) => {
    if (!known.has(element)) known.set(element, read(element));
    return known.get(element);
  };
};

const oneLine = (text, most) => text.slice(0, 10 * most).replace(/\s+/g, ' ').trim().slice(0, most);
const webUrl = (url) => (/^https?:\/\//i.test(url) && url.length <= MAX_URL ? url : null);

// The document and its open shadow trees.
const trees = () => {
  const all = [document];
  for (const tree of all) for (const element of selectIn(tree, '*')) if (shadowRoot(element)) all.push(shadowRoot(element));
  return all;
};
const childrenOf = (node) => {
  const tree = typeOf(node) === ELEMENT ? shadowRoot(node) : null;
  if (node instanceof HTMLSlotElement) {
    const assigned = assignedNodes(node, { flatten: true });
    if (assigned.length > 0) return assigned;
  }
  const children = [];
  for (let child = firstChild(tree ?? node); child; child = nextSibling(child)) children.push(child);
  return children;
};

// The ARIA role of an element: the one that it is given, or that of its kind by the HTML Accessibility API Mappings. What
// has neither is `generic`.

const hasAttribute = method(Element.prototype, 'hasAttribute');
const parentNode = getter(Node.prototype, 'parentNode');
const isEditable = getter(HTMLElement.prototype, 'isContentEditable');

const ROLES = new Set(
  ('alert alertdialog application article associationlist associationlistitemkey associationlistitemvalue banner blockquote button caption ' +
    'cell checkbox code columnheader combobox comment complementary contentinfo definition deletion dialog directory document emphasis feed ' +
    'figure form generic graphics-document graphics-object graphics-symbol grid gridcell group heading image img insertion link list ' +
    'listbox listitem log main mark marquee math menu menubar menuitem menuitemcheckbox menuitemradio meter navigation none note option ' +
    'paragraph presentation progressbar radio radiogroup region row rowgroup rowheader scrollbar search searchbox sectionfooter ' +
    'sectionheader separator slider spinbutton status strong subscript suggestion superscript switch tab table tablist tabpanel term ' +
    'textbox time timer toolbar tooltip tree treegrid treeitem').split(' '),
);
const isRole = (role) => ROLES.has(role) || /^doc-[a-z]{1,20}$/.test(role);

// Attributes that every element may have. One with a value makes an element more than decoration.
const GLOBAL = [
  'aria-atomic', 'aria-busy', 'aria-controls', 'aria-current', 'aria-describedby', 'aria-description', 'aria-details', 'aria-dropeffect',
  'aria-flowto', 'aria-grabbed', 'aria-keyshortcuts', 'aria-label', 'aria-labelledby', 'aria-live', 'aria-owns', 'aria-relevant',
  'aria-roledescription',
];

const INPUT_ROLES = {
  button: 'button', submit: 'button', reset: 'button', image: 'button', file: 'button', color: 'button',
  checkbox: 'checkbox', radio: 'radio', range: 'slider', number: 'spinbutton', search: 'searchbox',
};

const ELEMENT_ROLES = {
  address: 'group', article: 'article', aside: 'complementary', blockquote: 'blockquote', button: 'button', caption: 'caption', code: 'code',
  datalist: 'listbox', dd: 'definition', del: 'deletion', details: 'group', dfn: 'term', dialog: 'dialog', dt: 'term', em: 'emphasis',
  fieldset: 'group', figure: 'figure', h1: 'heading', h2: 'heading', h3: 'heading', h4: 'heading', h5: 'heading', h6: 'heading',
  hgroup: 'group', hr: 'separator', html: 'document', ins: 'insertion', main: 'main', mark: 'mark', math: 'math', menu: 'list',
  meter: 'meter', nav: 'navigation', ol: 'list', optgroup: 'group', option: 'option', output: 'status', p: 'paragraph',
  progress: 'progressbar', s: 'deletion', search: 'search', strong: 'strong', sub: 'subscript', sup: 'superscript', svg: 'img',
  table: 'table', tbody: 'rowgroup', textarea: 'textbox', tfoot: 'rowgroup', thead: 'rowgroup', time: 'time', tr: 'row', ul: 'list',
  audio: 'audio', video: 'video',
};

const isNamedByAuthor = (element) =>
  ['aria-label', 'aria-labelledby', 'title'].some((name) => (attribute(element, name) ?? '').trim() !== '');

const isFocusable = (element) =>
  hasAttribute(element, 'tabindex') ||
  matchesSelector(element, 'a[href], area[href], button:enabled, input:enabled, select:enabled, textarea:enabled, iframe, audio[controls], video[controls]') ||
  (element instanceof HTMLElement && isEditable(element) && hasAttribute(element, 'contenteditable'));

const inputRole = (input) => {
  const role = INPUT_ROLES[input.type] ?? 'textbox';
  if (role === 'checkbox' && hasAttribute(input, 'aria-pressed')) return 'button';
  const hasList = (role === 'textbox' || role === 'searchbox') && input.type !== 'password' && hasAttribute(input, 'list');
  return hasList && input.list ? 'combobox' : role;
};

// The role of a cell is that of the table around it.
const cellRole = (cell) => {
  const table = closest(cell, 'table, [role="grid" i], [role="treegrid" i]');
  const isGrid = table !== null && /^(tree)?grid$/i.test((attribute(table, 'role') ?? '').trim());
  if (localName(cell) === 'td') return isGrid ? 'gridcell' : 'cell';
  const scope = (attribute(cell, 'scope') ?? '').toLowerCase();
  if (scope === 'row' || scope === 'rowgroup') return 'rowheader';
  if (scope === 'col' || scope === 'colgroup') return 'columnheader';
  const row = parentElement(cell);
  const isAmongData = row !== null && selectIn(row, ':scope > td').length > 0;
  return isAmongData ? 'rowheader' : 'columnheader';
};

const implicitRole = (element) => {
  const name = localName(element);
  switch (name) {
    case 'a':
    case 'area':
      return hasAttribute(element, 'href') || hasAttribute(element, 'xlink:href') ? 'link' : 'generic';
    case 'input':
      return element instanceof HTMLInputElement ? inputRole(element) : 'generic';
    case 'select':
      return element instanceof HTMLSelectElement && (element.multiple || element.size > 1) ? 'listbox' : 'combobox';
    case 'summary':
      return localName(parentElement(element) ?? element) === 'details' ? 'button' : 'generic';
    case 'img':
      return attribute(element, 'alt') === '' && !isNamedByAuthor(element) ? 'none' : 'img';
    case 'header':
    case 'footer':
      if (closest(element, 'article, aside, main, nav, section') !== null) return 'generic';
      return name === 'header' ? 'banner' : 'contentinfo';
    case 'form':
      return isNamedByAuthor(element) ? 'form' : 'generic';
    case 'section':
      return isNamedByAuthor(element) ? 'region' : 'generic';
    case 'li': {
      const list = parentElement(element);
      return list !== null && matchesSelector(list, 'ul, ol, menu, [role="list" i]') ? 'listitem' : 'generic';
    }
    case 'td':
    case 'th':
      return cellRole(element);
    default:
      if (Object.hasOwn(ELEMENT_ROLES, name)) return ELEMENT_ROLES[name];
      return matchesSelector(element, '[contenteditable]:not([contenteditable="false" i])') ? 'textbox' : 'generic';
  }
};

// An item of no list is not presented as one.
const isInList = (element) => {
  for (let at = parentElement(element); at; at = parentElement(at)) {
    if (/^\s*listitem\b/i.test(attribute(at, 'role') ?? '')) return false;
    const role = roleOf(at);
    if (role !== 'generic' && role !== 'none') return role === 'list' || role === 'directory' || role === 'group';
  }
  return false;
};

const roleOf = (element) => {
  for (const role of (attribute(element, 'role') ?? '').slice(0, 1000).toLowerCase().split(/\s+/)) {
    if (!isRole(role) || (role === 'listitem' && !isInList(element))) continue;
    if (role !== 'none' && role !== 'presentation') return role === 'image' ? 'img' : role;
    // What can be operated, or has a name, is not presented as decoration.
    const isMore = isFocusable(element) || GLOBAL.some((name) => (attribute(element, name) ?? '').trim() !== '');
    return isMore ? implicitRole(element) : 'none';
  }
  return implicitRole(element);
};

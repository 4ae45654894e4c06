// Runs in an isolated world of its own, in which autoconsent is evaluated next: collects its messages, which are fetched
// from here, and hides dialogs that it does not know.
(() => {
  const MESSAGES = ['eval', 'cmpDetected', 'popupFound', 'optOutResult', 'autoconsentDone'];
  const MAX_MESSAGES = 100;
  const messages = [];

  // Called by autoconsent.
  globalThis.autoconsentSendMessage = async ({ type, id, code, cmp, result, isCosmetic }) => {
    if (MESSAGES.includes(type) && messages.length < MAX_MESSAGES) messages.push({ type, id, code, cmp, result, isCosmetic });
  };

  // The style element of autoconsent, in which it hides elements. A content security policy disables it, but not a
  // constructed style sheet with the same rules.
  const enforceStyles = () => {
    const style = document.querySelector('style#autoconsent-css-rules');
    if (!style?.textContent || style.sheet?.cssRules.length > 0) return;
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style.textContent);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    style.remove();
  };

  const MAX_ELEMENTS = 20000;
  const MAX_TEXT = 4000;
  const MAX_PARTS = 500;
  // What dialogs about consent are about, what their parts are called, and what their buttons say, in the languages of most
  // visitors.
  const SUBJECT = /\bcookies?\b|\bgdpr\b|\bdsgvo\b|\brgpd\b|\bciasteczk|\bcookie-|kakor|evästeitä|クッキー|куки/i;
  const NAME = /cookie|consent|gdpr|dsgvo|rgpd|(^|[-_ ])cmp([-_ ]|$)/i;
  const BUTTON = /accept|agree|allow|got it|understand|akzeptier|zustimm|einverstanden|verstanden|accepter|j'accepte|aceptar|acepto|accett|aceitar|akkoord|accepteer|godta|godkänn|hyväksy|akceptuj|souhlas|принять|同意/i;

  const nameOf = (element) => `${element.id} ${element.getAttribute('class') ?? ''} ${element.getAttribute('aria-label') ?? ''}`;
  const isShown = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && box.bottom > 0 && box.top < innerHeight && element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  };

  // How often elements are hidden: without a limit, an observer of the page and this one would undo each other's changes without
  // end.
  const MAX_HIDDEN = 1000;
  let hidden = 0;
  const undoings = new MutationObserver((records) => {
    for (const element of new Set(records.map(({ target }) => target))) {
      if (getComputedStyle(element).display !== 'none') hide(element);
    }
  });
  const hide = (element) => {
    hidden += 1;
    if (hidden > MAX_HIDDEN) return;
    element.style.setProperty('display', 'none', 'important');
    undoings.observe(element, { attributes: true, attributeFilter: ['style', 'class', 'id', 'hidden'] });
  };

  // All elements, with those of open shadow trees.
  const all = (root = document, found = []) => {
    for (const element of root.querySelectorAll('*')) {
      if (found.length >= MAX_ELEMENTS) break;
      found.push(element);
      if (element.shadowRoot) all(element.shadowRoot, found);
    }
    return found;
  };

  const isOverlay = (element) =>
    ['fixed', 'sticky'].includes(getComputedStyle(element).position) || element.matches('dialog[open], [role="dialog"], [role="alertdialog"], [aria-modal="true"]');

  // Is it a dialog about consent, and nothing else? Bars with links to other pages, forms and the content are not.
  const isBanner = (element) => {
    const text = element.innerText ?? '';
    if (text.length > MAX_TEXT || !SUBJECT.test(text)) return false;
    if (element.querySelector('main, article, nav, input[type="password"], input[type="email"], input[type="search"]')) return false;
    const named = [element, ...element.children].some((part) => NAME.test(nameOf(part)));
    const buttons = [...element.querySelectorAll('button, a, [role="button"], input[type="button"], input[type="submit"]')];
    return named || buttons.some((button) => BUTTON.test(button.innerText || button.value || ''));
  };

  // Hides what the selectors match, and dialogs about consent. Returns whether there was any.
  const hideDialogs = (selectors) => {
    const found = [];
    for (const selector of selectors) {
      try {
        found.push(...document.querySelectorAll(selector));
      } catch {
        // A selector for other browsers.
      }
    }
    const overlays = all().filter((element) => isShown(element) && isOverlay(element));
    // A container has no size if all of its parts are fixed.
    const showsPart = (element) => isShown(element) || [...element.querySelectorAll('*')].slice(0, MAX_PARTS).some(isShown);
    const dialogs = [...found.filter(showsPart), ...overlays.filter(isBanner)];
    if (dialogs.length === 0) return false;
    dialogs.forEach(hide);
    const isBackdrop = (element) => {
      const box = element.getBoundingClientRect();
      const covers = box.width >= innerWidth * 0.9 && box.height >= innerHeight * 0.9;
      return covers && (element.innerText ?? '').trim() === '' && element.querySelector('img, video, canvas, iframe') === null;
    };
    overlays.filter((element) => isShown(element) && isBackdrop(element)).forEach(hide);
    for (const element of [document.documentElement, document.body]) {
      if (element && getComputedStyle(element).overflowY === 'hidden') element.style.setProperty('overflow', 'visible', 'important');
    }
    return true;
  };

  globalThis.consent = {
    take: () => {
      enforceStyles();
      return messages.splice(0);
    },
    hideDialogs,
  };
})();

// The main content of a page: which part of the tree is the article, and what is left out of it.
//
// Each text between block elements is worth its sentences, and links count against it. Parts that are something else by
// their element, role or name, and lists of links to other articles, are worth nothing. The article is the smallest element
// with nearly all that is left, and what is worth something between the title and it.

const NODE_LIMIT = 200000;
const DEPTH_LIMIT = 150;
// The least characters of sentences that an article has.
const ENOUGH = 140;
const LEAST_AROUND_CODE = 20;
// Words in names of classes and ids. A name that also has one of the second kind is that of a part with more than it says.
const WORDS_LEFT_OUT = new Set(
  ('ad ads adv advert adverts advertisement advertising adsense dfp addthis addtoany affiliate also archive authorbox authorbio backlink backtotop banner biography bio blogroll ' +
  'bookmark bookmarks bottombar breadcrumb breadcrumbs button buttons buttonbar byline cart category categories citation comment comments commentlist commentform ' +
  'contentinfo consent cookie cookies copyright crumb crumbs dateline disclaimer discuss disqus donate dropdown fb filed footer footnav foot gdpr ' +
  'hashtag infobar lightbox linkbox livefyre login mailchimp masthead menu meta metadata modal more mostread nav navbar navi navigation newsletter next ' +
  'optanon outbrain overlay pager paging pagination paywall permalink pinterest plista popover popular popup postinfo postmeta postmetadata prev print printfriendly profile promo promotion rating ratings ' +
  'readmore recommend recommendation recommendations recommended recirculation register related relatedposts replies reply respond rss search share sharebar sharedaddy ' +
  'sharing shariff shoutbox sidebar signup skip skyscraper slideshow social socials sponsor sponsored subscribe subscription subnav suggestion suggestions syndication tabbar taboola tag tagcloud ' +
  'tags taglist taxonomy teaser teasers tool toolbar toolbox tooltip tools topbar trackback trackbacks trending vote voting widget widgets yarpp zergnet').split(' '),
);
const WORDS_KEPT = new Set('articlebody body contents main story text wrapper container column columns col layout has with no without'.split(' '));
// Words that name no article, however long the text is.
const WORDS_NEVER_MAIN = new Set('consent cookie cookies disclaimer gdpr'.split(' '));
const TAGS_LEFT_OUT = new Set(['nav', 'footer', 'aside', 'form', 'button', 'dialog', 'label', 'fieldset']);
const TAGS_NEVER_NAMED = new Set(['blockquote', 'pre', 'code', 'td', 'tr', 'tbody', 'th', 'dd', 'dt']);
const ROLES_LEFT_OUT = new Set(['navigation', 'contentinfo', 'complementary', 'search', 'menu', 'menubar', 'toolbar', 'dialog', 'alertdialog', 'banner', 'tablist', 'alert', 'form']);
const LABEL = /^(?:advertisement|advert|anzeige|werbung|publicidad|publicité|continue reading(?: below)?|story continues below|read more|(?:see|read) also|related(?: (?:articles?|stories|posts|content))?|weiterlesen|mehr zum thema|lesen sie auch|lire aussi|à lire aussi|lea también|foto|photo|image|bild|credit|fotos?|quelle|source|image copyright|image caption|copyright|©|\(c\)|share this|teilen|follow us|caption|close)(?:$|[\s:©]*(?:$|[:|©]))/i;
const REFERENCES = /^(?:see also|siehe auch|voir aussi|véase también|vedi anche|см\. также)\s*:/i;
const SENTENCE_END = /[.!?…。！？؟।։](?:["'”’»)\]]*)$/;
const SENTENCE_INSIDE = /[.!?…](?:["'”’»)\]]*)\s+\p{L}|[。！？]/u;

// Headings of lists that an article may end with. A text has none of them.
const APPENDIX = /^(?:see also|further reading|external links?|references|resources|bibliography|sources|links|siehe auch|weblinks|literatur|voir aussi|liens externes|véase también|enlaces externos|vedi anche|collegamenti esterni|см\. также|ссылки|関連項目|外部リンク|参见|外部链接)$/i;
const FORMULAS = new Set(['math', 'mjx-container']);

const wordsOf = (names) => names.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase().split(/[^a-z]+/);
const lettersOf = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '');
const sizeOf = (text) => text.length + 1.5 * (text.match(/[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/g)?.length ?? 0);

// A tree of the shown elements, with the texts between block elements as runs.
const outline = (top) => {
  let count = 0;
  const build = (element, parent, depth) => {
    const style = getComputedStyle(element);
    if (element !== top && (SKIPPED.has(localName(element)) || style.display === 'none' || style.visibility === 'hidden')) return null;
    if (attribute(element, 'aria-hidden') === 'true' && localName(element) !== 'body') return null;
    const made = { element, parent, tag: localName(element), kids: [], isInline: /^(?:inline$|contents|ruby)/.test(style.display), hasBlocks: false };
    count += 1;
    // A formula is a part of the text around it, or a block, whatever it is made of.
    if (FORMULAS.has(made.tag)) {
      made.isInline = !/^block/.test(style.display) && attribute(element, 'display') === null;
      made.kids.push({ text: textContent(element).slice(0, 1000), node: element });
      return made;
    }
    if (count > NODE_LIMIT || depth > DEPTH_LIMIT) return made;
    for (const child of childrenOf(element)) {
      if (typeOf(child) === TEXT) made.kids.push({ text: codeOf(child), node: child });
      else if (typeOf(child) === ELEMENT) {
        const inner = build(child, made, depth + 1);
        if (!inner) continue;
        made.kids.push(inner);
        made.hasBlocks ||= !inner.isInline || inner.hasBlocks;
      }
    }
    return made;
  };
  return build(top, null, 0);
};

// Parts that a server sends after the page, and that scripts of the page should have put in their places.
const MIN_LATE_PART = 2000;
const latePart = () => {
  const parts = selectIn(document, 'body > [hidden][id^="S:"]').slice(0, 100).filter((part) => textContent(part).length >= MIN_LATE_PART);
  return parts.sort((one, other) => textContent(other).length - textContent(one).length)[0] ?? null;
};

const mainContent = () => {
  const body = bodyOf(document);
  const shown = body && mainContentOf(body);
  if (shown || !body) return shown;
  const part = latePart();
  return part && mainContentOf(part);
};

const mainContentOf = (element) => {
  const root = outline(element);
  const runs = [];

  // Texts.
  const textOf = (made, run, inLink) => {
    if (made.node) {
      const text = made.text.replace(/\s+/g, ' ');
      run.text += text;
      if (inLink) run.linked += sizeOf(text.trim());
      return;
    }
    if (made.tag === 'br') run.text += '\n';
    else if (FORMULAS.has(made.tag)) run.hasFormula = true;
    const isLink = inLink || made.tag === 'a' && attribute(made.element, 'href') !== null;
    for (const kid of made.kids) textOf(kid, run, isLink);
  };
  const isTitleTag = (tag) => /^h[1-6]$/.test(tag);
  const TEXT_TAGS = new Set(['math', 'mjx-container', 'p', 'li', 'blockquote', 'pre', 'td', 'th', 'dd', 'dt', 'figcaption', 'caption', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6']);
  const scan = (made, inLink, tag) => {
    if (made.node) return;
    const own = TEXT_TAGS.has(made.tag) ? made.tag : tag;
    const isLink = inLink || made.tag === 'a' && attribute(made.element, 'href') !== null;
    let run = null;
    const flush = () => {
      if (!run) return;
      run.text = run.text.replace(/[^\S\n]+/g, ' ').trim();
      run.size = sizeOf(run.text);
      if (run.size > 0) {
        made.runs.push(run);
        runs.push(run);
      }
      run = null;
    };
    made.runs = [];
    for (const kid of made.kids) {
      if (kid.node || (kid.isInline && !kid.hasBlocks)) {
        run ??= { owner: made, nodes: [], text: '', linked: 0, tag: own };
        run.nodes.push(kid.node ?? kid.element);
        if (FORMULAS.has(made.tag)) run.hasFormula = true;
        textOf(kid, run, isLink);
      } else {
        flush();
        scan(kid, isLink, own);
      }
    }
    flush();
  };
  scan(root, false, 'div');

  // What each text is worth.
  const described = selectIn(document, 'meta[name="description" i], meta[property="og:description" i]').map((meta) => lettersOf(attribute(meta, 'content') ?? '').slice(0, 60)).filter((text) => text.length >= 30);
  const isDescription = (text) => text.length >= 40 && described.some((start) => lettersOf(text.slice(0, 200)).startsWith(start.slice(0, 40)));
  for (const run of runs) {
    const { size, text } = run;
    run.density = size > 0 ? Math.min(1, run.linked / size) : 0;
    run.isSentence = SENTENCE_END.test(text) || SENTENCE_INSIDE.test(text);
    run.isHeading = isTitleTag(run.tag);
    if (isDescription(text)) run.value = size * (1 - run.density);
    else if (run.isHeading) run.value = size >= 120 && run.isSentence && run.tag !== 'h1' ? size * (1 - run.density) : 0;
    else if (run.tag === 'pre') run.value = size;
    else if (run.density > 0.5) run.value = -Math.min(size, 100);
    else if (size >= 80 && run.isSentence) run.value = size * (1 - run.density);
    else if (size >= 40 && run.isSentence) run.value = 0.6 * size * (1 - run.density);
    else if (size >= 80) run.value = 0.3 * size * (1 - run.density);
    else run.value = 0;
  }

  // Totals of each element.
  const total = (made) => {
    made.size = 0;
    made.linked = 0;
    made.good = 0;
    made.code = 0;
    for (const run of made.runs ?? []) {
      if (run.tag === 'pre') made.code += run.size;
      made.size += run.size;
      made.linked += run.linked;
      made.good += Math.max(0, run.value);
    }
    for (const kid of made.kids) {
      if (kid.node || !kid.runs) continue;
      total(kid);
      made.size += kid.size;
      made.linked += kid.linked;
      made.good += kid.good;
      made.code += kid.code;
    }
  };
  total(root);

  // What is not content by its name.
  const namesOf = (made) => `${attribute(made.element, 'class') ?? ''} ${attribute(made.element, 'id') ?? ''}`.slice(0, 300);
  const isTagLeftOut = (made) => TAGS_LEFT_OUT.has(made.tag) || ROLES_LEFT_OUT.has((attribute(made.element, 'role') ?? '').toLowerCase());
  const namedAsOther = (made) => {
    if (isTagLeftOut(made)) return true;
    if (TAGS_NEVER_NAMED.has(made.tag) || (made.code > 0.5 * made.size && made.size > 0)) return false;
    if (isTitleTag(made.tag) || made.tag === 'body' || made.tag === 'article' || made.tag === 'main') return false;
    for (const name of namesOf(made).split(/\s+/)) {
      const words = wordsOf(name);
      if (words.some((word) => WORDS_LEFT_OUT.has(word)) && !words.some((word) => WORDS_KEPT.has(word))) return true;
    }
    return false;
  };
  const firstLinkedHeading = (made) => {
    for (const kid of made.kids) {
      if (kid.node || !kid.runs) continue;
      if (isTitleTag(kid.tag)) return kid.linked > 0.7 * kid.size && kid.size > 0;
      const inner = firstLinkedHeading(kid);
      if (inner !== null) return inner;
    }
    return null;
  };
  const signature = (made) => `${made.tag} ${(attribute(made.element, 'class') ?? '').trim().split(/\s+/)[0]}`;
  const isTeaser = (made) => made.size > 0 && made.size < 500 && (made.linked > 0.5 * made.size || (made.size < 400 && firstLinkedHeading(made) === true));
  const markTeasers = (made) => {
    const groups = new Map();
    for (const kid of made.kids) {
      if (kid.node || !kid.runs) continue;
      const name = signature(kid);
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(kid);
    }
    for (const group of groups.values()) {
      if ((group[0].tag === 'tr' && group[0].kids.length > 2) || isTitleTag(group[0].tag)) continue;
      const teasers = group.filter(isTeaser);
      if (teasers.length >= 3 && teasers.length >= 0.7 * group.length && group[0].tag !== 'p') for (const kid of teasers) kid.isOther = true;
    }
    for (const kid of made.kids) if (!kid.node && kid.runs && !kid.isOther) markTeasers(kid);
  };
  const allGood = root.good;
  const markNamed = (made, byTag) => {
    for (const kid of made.kids) {
      if (kid.node || !kid.runs || kid.isOther) continue;
      const isLess = kid.good < 0.5 * allGood || (!byTag && kid.good < allGood - ENOUGH && wordsOf(namesOf(kid)).some((word) => WORDS_NEVER_MAIN.has(word)));
      const isNamed = isLess && (byTag ? isTagLeftOut(kid) : namedAsOther(kid));
      if (isNamed) kid.isOther = true;
      else markNamed(kid, byTag);
    }
  };
  markTeasers(root);
  markNamed(root, false);

  // Totals without these.
  const retotal = (made) => {
    made.good = made.isOther ? 0 : made.runs.reduce((sum, run) => sum + Math.max(0, run.value), 0);
    if (made.isOther) return;
    for (const kid of made.kids) {
      if (kid.node || !kid.runs) continue;
      retotal(kid);
      made.good += kid.good;
    }
  };
  retotal(root);
  if (root.good < ENOUGH) {
    // The names are not what they seem.
    const unmark = (made) => {
      made.isOther = false;
      for (const kid of made.kids) if (!kid.node && kid.runs) unmark(kid);
    };
    unmark(root);
    total(root);
    markNamed(root, true);
    retotal(root);
  }
  if (root.good < ENOUGH) return null;

  // The smallest element with nearly all of it.
  let top = root;
  for (;;) {
    let best = null;
    for (const kid of top.kids) if (!kid.node && kid.runs && (best === null || kid.good > best.good)) best = kid;
    if (!best || best.good < 0.8 * top.good || best.tag === 'p' || best.tag === 'pre') break;
    top = best;
  }
  // Code alone is an example: what is said about it is around it.
  while (top.parent && top.size - top.code < LEAST_AROUND_CODE) top = top.parent;

  const title = oneLine(selectIn(document, 'title').slice(0, 1).map((element) => textContent(element)).join(''), 1000).toLowerCase();
  // The title of the document is often followed by that of the site.
  const isTitle = (run) => {
    const text = run.text.replace(/\s+/g, ' ').toLowerCase();
    const at = title.indexOf(text);
    if (run.tag !== 'h1' || at < 0) return run.tag === 'h1' && lettersOf(text) === lettersOf(title);
    const isEnd = (rest) => rest === '' || /^[|\-–—·:•»«~/(]/.test(rest);
    return isEnd(title.slice(at + text.length).trim()) && isEnd([...title.slice(0, at).trim()].reverse().join(''));
  };

  // Texts between the title and it, such as a summary.
  const isInside = (made, outer) => {
    for (let at = made; at; at = at.parent) if (at === outer) return true;
    return false;
  };
  const isOther = (made) => {
    for (let at = made; at; at = at.parent) if (at.isOther) return true;
    return false;
  };
  const core = top;
  const begin = runs.findIndex((run) => isInside(run.owner, core) && run.value > 0);
  const leads = new Set();
  const heading = runs.findLastIndex((run, at) => at < begin && run.tag === 'h1');
  runs.slice(heading < 0 ? begin : heading, begin).forEach((run) => {
    if (run.value > 0 && run.isSentence && !isOther(run.owner) && !isInside(run.owner, core)) leads.add(run);
  });
  runs.slice(0, begin).forEach((run) => {
    if (run.value > 0 && isDescription(run.text) && !isInside(run.owner, core)) leads.add(run);
  });
  // A heading that the title of the document does not have.
  const named = runs[heading];
  if (named && begin - heading <= 10 && !isTitle(named) && !isOther(named.owner) && !isInside(named.owner, core)) leads.add(named);
  // The heading of the part that has all of the article.
  const titling = runs[begin - 1]?.isHeading && runs[begin - 1].tag !== 'h1' && !isOther(runs[begin - 1].owner) && !isInside(runs[begin - 1].owner, core) ? runs[begin - 1] : null;
  if (titling) leads.add(titling);
  for (const run of leads) while (!isInside(run.owner, top)) top = top.parent;

  // What is left out within it.
  const removed = new Set();
  const inTop = [];
  const aroundLeads = new Set();
  const aroundCore = new Set();
  for (const run of leads) for (let at = run.owner; at; at = at.parent) aroundLeads.add(at);
  for (let at = core; at; at = at.parent) aroundCore.add(at);
  // Cells of a table, and items of a list that is not only of links, are not left out one by one.
  const TABLE_PARTS = new Set(['tr', 'td', 'th', 'tbody', 'thead', 'tfoot']);
  const hasNamedColumns = (made) => made.size > 0 && selectIn(made.element, 'th').length >= 2 && selectIn(made.element, 'td').length >= 4;
  // A heading that is a link to itself.
  const isOwnHeading = (made) => {
    if (made.size > 300 || selectIn(made.element, 'h1, h2, h3, h4, h5, h6').length !== 1) return false;
    const around = closest(made.element, 'a[href]');
    const anchors = around ? [around] : selectIn(made.element, 'a[href]');
    return anchors.length === 1 && (attribute(anchors[0], 'href') ?? '').startsWith('#');
  };
  // A picture with nothing but a caption.
  const hasOnlyCaptions = (made) => made.runs.every((run) => run.tag === 'figcaption') && made.kids.every((kid) => kid.node || !kid.runs || hasOnlyCaptions(kid));
  const isPicture = (made) => made.size < 500 && hasOnlyCaptions(made) && selectIn(made.element, 'figcaption').length === 1;
  const isPartOfContent = (made) => {
    if (made.tag === 'figure' || made.tag === 'figcaption' || isPicture(made) || TABLE_PARTS.has(made.tag) || hasNamedColumns(made) || isOwnHeading(made)) return true;
    return made.tag === 'li' && made.parent !== null && made.parent.linked <= 0.6 * made.parent.size;
  };
  // Several links in one line are what the author refers to; one is what the site does.
  const isReferences = (run) => REFERENCES.test(run.text) && run.nodes.filter((node) => typeOf(node) === ELEMENT && localName(node) === 'a').length >= 2;
  const prune = (made, isWithin) => {
    for (const run of made.runs) {
      run.isAppendix = made.isAppendix === true || made.tag === 'blockquote' || made.isQuoted === true;
      if (isWithin || leads.has(run)) inTop.push(run);
      else for (const node of run.nodes) removed.add(node);
    }
    for (const kid of made.kids) {
      if (kid.node || !kid.runs) continue;
      const within = isWithin || kid === core;
      const leading = aroundLeads.has(kid);
      if (!within && !leading && !aroundCore.has(kid)) {
        removed.add(kid.element);
        continue;
      }
      const isLinks = kid.linked > 0.6 * kid.size && kid.size > 0 && !kid.runs.some(isReferences) && kid.good === 0 && !isTitleTag(kid.tag) && (kid.tag !== 'p' || kid.size > 25) && !isPartOfContent(kid);
      kid.isAppendix = made.isAppendix === true || (kid.tag !== 'li' && inTop.slice(-2).some((run) => run.isHeading && run.text.length <= 300 && APPENDIX.test(run.text.replace(/\s*\[[^\]]*\]$/, ''))) && selectIn(kid.element, 'li').length > 0);
      const isQuoted = made.tag === 'blockquote' || made.isQuoted === true || (kid.isAppendix && !isTagLeftOut(kid));
      // A list of links may be what the text before it announces.
      const isAnnounced = (kid.tag === 'ul' || kid.tag === 'ol') && /[:：]$/.test(inTop.at(-1)?.text ?? '');
      kid.isQuoted = isQuoted || (isAnnounced && !kid.isOther);
      if (!leading && !isQuoted && (kid.isOther || (isLinks && !isAnnounced))) removed.add(kid.element);
      else prune(kid, within);
    }
  };
  prune(top, top === core);
  const order = new Map(runs.map((run, at) => [run, at]));
  inTop.sort((one, other) => order.get(one) - order.get(other));
  // What a text leaves out, but not what has structure.
  const spared = new Set();
  const leaveOut = (run, isSpared = false) => {
    for (const node of run.nodes) (isSpared ? spared : removed).add(node);
    run.isRemoved = !isSpared;
    run.isSpared = isSpared;
  };
  const STRUCTURED = new Set(['figcaption', 'caption', 'th', 'td', 'li', 'dd', 'dt', 'math', 'mjx-container']);
  // Lines about the article before it, and links after it.
  const isGood = (run) => run.value > 0;
  const first = inTop.findIndex(isGood);
  const last = inTop.findLastIndex(isGood);
  const seen = new Map();
  // A paragraph of the text that comes again, unlike one that is shown once more beside it.
  const isRefrain = (run) => run.tag === 'p' && seen.get(run.text).tag === 'p' && run.owner.parent === seen.get(run.text).owner.parent && run.owner !== seen.get(run.text).owner;
  inTop.forEach((run, at) => {
    run.isLate = at > last;
    if (at < first && run.tag !== 'li') leaveOut(run, (run.isHeading && (isInside(run.owner, core) || run === named || run === titling) && !isTitle(run)) || STRUCTURED.has(run.tag) || run.hasFormula === true || (at === first - 1 && isInside(run.owner, core) && /[:：]$/.test(run.text)));
    else if (at > last && (run.isHeading || run.tag !== 'li' && run.tag !== 'td' && run.tag !== 'p' || run.density > 0.5)) leaveOut(run, STRUCTURED.has(run.tag) || run.hasFormula === true || run.isAppendix || isReferences(run));
    else if (run.isAppendix && run.density > 0.5 && run.tag !== 'blockquote') leaveOut(run, true);
    else if (run.size < 120 && LABEL.test(run.text)) leaveOut(run, isReferences(run));
    else if (run.size >= 80 && seen.has(run.text) && !isRefrain(run)) leaveOut(run);
    if (!seen.has(run.text)) seen.set(run.text, run);
  });
  // Headings of what was left out.
  let next = null;
  for (const run of inTop.toReversed()) {
    const between = next ? order.get(next) - order.get(run) : Infinity;
    const isEmpty = run.isHeading && run.value <= 0 && between > 1 && (!next || (next.isHeading && next.tag <= run.tag));
    if (isEmpty && !run.isRemoved) leaveOut(run);
    // What is kept or spared at the end keeps its heading, and the line that announces it.
    const isTitling = run.isHeading || /[:：]$/.test(run.text);
    if (isTitling && run.isRemoved && run.isLate && next && between <= 2) {
      for (const node of run.nodes) removed.delete(node);
      leaveOut(run, true);
    }
    if (!run.isRemoved) next = run;
  }
  return { root: top.element, removed, spared };
};

// What is written below a picture. A text has no pictures.
const CAPTION_TAGS = new Set(['div', 'p', 'span', 'dd', 'small']);
const CAPTION_NAMES = /(?:^|[\s_-])(?:wp-)?caption(?:[\s_-]*(?:text|inner|body))?(?:$|\s)|(?:^|\s)(?:image|photo|media|picture|img)[\w]*[-_]+(?:caption|credit|copyright)/i;
const isCaption = (element) => {
  const name = localName(element);
  if (name === 'figure') return selectIn(element, 'table, pre, blockquote, code').length === 0;
  return name === 'figcaption' || (CAPTION_TAGS.has(name) && CAPTION_NAMES.test(attribute(element, 'class') ?? ''));
};

// The main content as plain text: a line for each line, and an empty line between blocks.
const plainText = ({ root, removed, spared }) => {
  const parts = [];
  let line = '';
  const flush = (gap) => {
    const text = line.split('\n').map((part) => part.replace(/\s+/g, ' ').trim()).join('\n').replace(/\n{3,}/g, '\n\n').trim();
    if (text) parts.push(text, gap);
    line = '';
  };
  const walk = (node, isShown, depth) => {
    if (removed.has(node) || spared.has(node) || depth > DEPTH_LIMIT) return;
    if (typeOf(node) === TEXT) {
      if (isShown) line += codeOf(node).replace(/[\s\u0000]+/g, ' ');
      return;
    }
    if (typeOf(node) !== ELEMENT) return;
    const name = localName(node);
    const style = getComputedStyle(node);
    if (SKIPPED.has(name) || style.display === 'none' || attribute(node, 'aria-hidden') === 'true' || isCaption(node)) return;
    if (name === 'br') {
      line += '\n';
      return;
    }
    const math = FORMULAS.has(name) ? formula(node) : null;
    if (math) {
      if (math.isBlock) flush('\n\n');
      if (math.tex && style.visibility === 'visible') line += `$${math.tex}$`;
      if (math.isBlock) flush('\n\n');
      return;
    }
    const shown = style.visibility === 'visible';
    if (name === 'pre') {
      flush('\n\n');
      const code = shown ? textContent(node).replace(/\u0000/g, '').replace(/^\n/, '').trimEnd() : '';
      if (code) parts.push(code, '\n\n');
      return;
    }
    const isInline = /^(?:inline|contents|ruby)/.test(style.display);
    const gap = name === 'li' || name === 'tr' ? '\n' : '\n\n';
    const isCell = name === 'td' || name === 'th';
    if (!isInline && !isCell) flush('\n\n');
    for (const child of childrenOf(node)) walk(child, shown, depth + 1);
    if (isCell) line += '\t';
    else if (!isInline) flush(gap);
    // The last line of a list or a table ends a block.
    if (gap !== '\n' && parts.at(-1) === '\n') parts[parts.length - 1] = gap;
  };
  walk(root, true, 0);
  flush('');
  return `${parts.join('').trim()}\n`;
};

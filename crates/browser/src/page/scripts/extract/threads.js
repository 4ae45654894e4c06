// Discussions: messages of several authors, one below the other. Each message is found by its beginning: a name and a time of the
// same kind, in either order. Messages are written as quotations, and answers within what they answer.

const MAX_MESSAGES = 1000;
const MAX_TIMES = 5000;
const MAX_ANSWERS = 8;
// The least characters of a discussion, and the most of a post below which its comments are written as well.
const LEAST_DISCUSSION = 60;
const MOST_POST = 1000;
// The beginning of a message in the list of blocks, once for each level. No text has this character.
const MESSAGE = '\uFDD1';
const TIMES = 'time, relative-time, [datetime], [title], [data-timestamp], [data-time], [class*="date" i], [class*="time" i], [class*="age" i]';
const DATE = /^\d{4}-\d{2}-\d{2}(?=$|[T ])/;
const DATED = /^(?=(?:\D*\d){5,14}\D*$).*\b(?:19|20)\d\d\b/;
const AGO = /^(?:about |over |almost )?(?:\d{1,3}|an?) ?(?:s|m|h|d|w|mo|y|sec(?:ond)?s?|min(?:ute)?s?|h(?:ou)?rs?|days?|weeks?|months?|years?)\.?(?: ago)?$|^(?:yesterday|today)\b/i;
const AUTHOR_NAME = /author|user|nick|name|poster|sender|member|profile|commenter/i;
const POINTS = /(?:^|[^\p{L}\p{N}])(-?\d[\d.,]{0,9}k? (?:points?|upvotes?|votes?|likes?))(?![\p{L}\p{N}])/iu;
const COMMENTS = '[class*="comment" i], [id*="comment" i], [class*="respon" i], [id*="disqus" i]';
const ACTIONS = new Set('action actions button buttons controls footer menu reply replies share toolbar tools vote votes voting'.split(' '));

// The text of an element with few parts, or null.
const smallText = (element, most, mostNodes = 16) => {
  let steps = 0;
  let text = '';
  const walk = (node) => {
    steps += 1;
    if (steps > mostNodes || text.length > 4 * most) return;
    if (typeOf(node) === TEXT) text += codeOf(node);
    else if (typeOf(node) === ELEMENT) for (let child = firstChild(node); child && steps <= mostNodes; child = nextSibling(child)) walk(child);
  };
  walk(element);
  const line = text.replace(/\s+/g, ' ').trim();
  return steps > mostNodes || line.length > most ? null : line;
};
// What an element says about a time: a day, or what is written. Null if it is no time.
const timeOf = (element) => {
  const text = smallText(element, 60);
  if (!text) return null;
  const sources = [element, ...selectIn(element, '[datetime], [title]').slice(0, 3)];
  const given = sources.flatMap((source) => ['datetime', 'title', 'data-time'].map((name) => (attribute(source, name) ?? '').slice(0, 100).trim()));
  const day = given.map((value) => DATE.exec(value)?.[0]).find(Boolean);
  if (day) return day;
  const written = given.find((value) => DATED.test(value));
  if (written) return written;
  return DATED.test(text) || AGO.test(text) || localName(element) === 'time' ? text : null;
};
const kindOfTime = (element) => `${localName(element)} ${(attribute(element, 'class') ?? '').trim().split(/\s+/)[0]}`;

// The times of a page by their kinds, the most frequent ones first.
const groupsOfTimes = () => {
  const groups = new Map();
  let last = null;
  for (const element of selectIn(document, TIMES).slice(0, MAX_TIMES)) {
    if (last && contains(last, element)) continue;
    const when = timeOf(element);
    if (!when) continue;
    last = element;
    const kind = kindOfTime(element);
    if (!groups.has(kind)) groups.set(kind, []);
    groups.get(kind).push({ element, when });
  }
  const all = [...groups.values()].filter((group) => group.length >= 2).map((group) => group.slice(0, MAX_MESSAGES));
  return all.sort((one, other) => other.length - one.length).slice(0, 12);
};

// The largest element around each time in which no other one is.
const unitsOf = (times) => {
  const counts = new Map();
  for (const { element } of times) {
    for (let at = element, up = 0; at && up < DEPTH_LIMIT; at = parentElement(at), up += 1) counts.set(at, (counts.get(at) ?? 0) + 1);
  }
  return times.map(({ element }) => {
    let at = element;
    for (let outer = parentElement(at); outer && counts.get(outer) === 1; outer = parentElement(at)) at = outer;
    return at;
  });
};

// The texts of a message before its time, and the first ones after it, with the elements that they are in. Null if there are too
// many before, or a heading.
const textsAround = (unit, time) => {
  const before = [];
  const after = [];
  let steps = 0;
  let place = before;
  let isTitled = false;
  const walk = (node) => {
    if (steps > 300 || isTitled || after.length >= 6) return;
    steps += 1;
    if (node === time) {
      place = after;
      return;
    }
    if (typeOf(node) === TEXT && codeOf(node).trim()) place.push({ text: oneLine(codeOf(node), 100), element: parentElement(node) });
    if (typeOf(node) !== ELEMENT || SKIPPED.has(localName(node)) || localName(node) === 'button') return;
    isTitled ||= place === before && /^h[1-6]$/.test(localName(node)) && !contains(node, time);
    for (let child = firstChild(node); child; child = nextSibling(child)) walk(child);
  };
  walk(unit);
  const length = before.reduce((sum, { text }) => sum + text.length, 0);
  return place === after && length <= 200 && !isTitled ? { before, after } : null;
};
const isNamedAsAuthor = (element) => attribute(element, 'email') !== null || AUTHOR_NAME.test(`${attribute(element, 'class') ?? ''} ${attribute(element, 'itemprop') ?? ''} ${attribute(element, 'rel') ?? ''}`.slice(0, 300));
const authorIn = (texts, unit, isLinkEnough) => {
  const isAuthor = (element) => {
    for (let at = element, up = 0; at && up < 4; at = parentElement(at), up += 1) {
      if (isNamedAsAuthor(at) || (isLinkEnough && localName(at) === 'a' && attribute(at, 'href') !== null)) return true;
      if (at === unit) return false;
    }
    return false;
  };
  const isName = ({ text, element }) => text.length <= 60 && /\p{L}/u.test(text) && text.split(' ').length <= 5 && !SENTENCE_END.test(text.replace(/\.$/, '')) && isAuthor(element);
  const at = texts.findIndex(isName);
  if (at < 0) return null;
  const account = texts.slice(at + 1, at + 4).find(({ text }) => /^@\S+$/.test(text));
  return { name: account ? `${texts[at].text} ${account.text}` : texts[at].text, element: (account ?? texts[at]).element, first: texts[at].element };
};
// The smallest element with both.
const around = (one, other) => {
  let at = one;
  while (at && !contains(at, other)) at = parentElement(at);
  return at;
};

// The line with the time: the largest element around it in which only short texts follow it in the same line.
const lineWith = (time, unit) => {
  let at = time;
  for (let outer = parentElement(at); outer && at !== unit && outer !== unit; outer = parentElement(at)) {
    const isRow = /flex$/.test(getComputedStyle(outer).display);
    let length = 0;
    let isSame = true;
    for (let next = nextSibling(at), step = 0; next && isSame; next = nextSibling(next), step += 1) {
      if (typeOf(next) !== TEXT && typeOf(next) !== ELEMENT) continue;
      const text = typeOf(next) === TEXT ? oneLine(codeOf(next), 81) : (smallText(next, 80) ?? '.'.repeat(81));
      length += text.length;
      isSame = length <= 80 && step < 20 && (typeOf(next) === TEXT || !text || isRow || isInline(getComputedStyle(next)));
    }
    if (!isSame) break;
    at = outer;
  }
  return at;
};
const nodesAfter = (line, unit) => {
  const nodes = [];
  for (let at = line; at && at !== unit && nodes.length < 500; at = parentElement(at)) {
    for (let next = nextSibling(at); next && nodes.length < 500; next = nextSibling(next)) if (typeOf(next) === TEXT || typeOf(next) === ELEMENT) nodes.push(next);
  }
  return nodes;
};
// Buttons and links to act on a message, such as Reply, which are no part of its text.
const actionsIn = (nodes) => {
  const found = [];
  const isButton = (element) => TAGS_LEFT_OUT.has(localName(element)) || ROLES_LEFT_OUT.has(attribute(element, 'role') ?? '') || attribute(element, 'role') === 'button';
  const isOfLinks = (element) => {
    const links = localName(element) === 'a' ? [element] : selectIn(element, 'a, button').slice(0, 20);
    return links.reduce((sum, link) => sum + sizeOfText(link).letters, 0) >= 0.8 * sizeOfText(element).letters;
  };
  const isNamed = (element) => wordsOf(namesOfElement(element)).some((word) => ACTIONS.has(word));
  const isAction = (element) => isButton(element) || (isNamed(element) && smallText(element, 300, 120) !== null && isOfLinks(element));
  for (const node of nodes) {
    if (typeOf(node) !== ELEMENT) continue;
    for (const element of [node, ...selectIn(node, '*').slice(0, 500)]) if (isAction(element)) found.push(element);
  }
  return found;
};

const readMessage = ({ element, when }, unit) => {
  const texts = unit === element ? null : textsAround(unit, element);
  const before = texts && authorIn(texts.before, unit, true);
  const author = texts && (before ?? authorIn(texts.after, unit, false));
  if (!author) return null;
  const both = before ? element : around(element, author.element);
  if (!both || both === unit) return null;
  const line = lineWith(both, unit);
  const body = nodesAfter(line, unit);
  const first = body.find((node) => textContent(node).trim());
  if (!first) return null;
  const isTitled = typeOf(first) === ELEMENT && (/^h[1-6]$/.test(localName(first)) || selectIn(first, 'h1, h2').length > 0);
  const isPermanent = (link) => attribute(link, 'rel') === 'bookmark' || /^(?:permalink|#\d{1,6})$/i.test(smallText(link, 20) ?? '');
  const anchor = closest(element, 'a[href]') ?? selectIn(element, 'a[href]')[0] ?? selectIn(unit, 'a[href]').slice(0, 50).find(isPermanent) ?? null;
  const url = anchor && anchor instanceof HTMLAnchorElement ? webUrl(anchorUrl(anchor)) : null;
  const points = POINTS.exec(smallText(line, 200) ?? '')?.[1] ?? null;
  const size = body.reduce((sum, node) => sum + textContent(node).replace(/\s+/g, ' ').trim().length, 0);
  return { unit, element, author: author.name, left: boxOf(author.first).left, when, url, points, body, size, isTitled, level: 0 };
};

// How deep each message is: below one that is less far in the tree, or less far to the right.
const setLevels = (messages) => {
  const depthOf = (element) => {
    let depth = 0;
    for (let at = parentElement(element); at && depth < 1000; at = parentElement(at)) depth += 1;
    return depth;
  };
  const open = [];
  for (const message of messages) {
    const depth = depthOf(message.element);
    const isAnswerTo = (other) => {
      const outer = parentElement(other.message.unit);
      const shift = message.left - other.message.left;
      return (depth > other.depth && outer !== null && contains(outer, message.unit)) || (shift >= 8 && shift <= 120);
    };
    while (open.length > 0 && !isAnswerTo(open.at(-1))) open.pop();
    message.level = Math.min(open.length, MAX_ANSWERS);
    open.push({ message, depth });
  }
};

// The discussion that a page has most of, or null.
const findThread = () => {
  let best = null;
  for (const times of groupsOfTimes()) {
    const units = unitsOf(times);
    const messages = times.map((time, at) => readMessage(time, units[at])).filter((message) => message !== null);
    const size = messages.reduce((sum, message) => sum + message.size, 0);
    // Lists of articles have titles.
    if (messages.filter(({ isTitled }) => isTitled).length > 0.5 * messages.length) continue;
    if (messages.length < 2 || messages.length < 0.5 * times.length || size < LEAST_DISCUSSION || size <= (best?.size ?? 0)) continue;
    best = { messages, size };
  }
  if (!best) return null;
  setLevels(best.messages);
  const outer = new Set();
  for (const { unit } of best.messages) for (let at = parentElement(unit), up = 0; at && up < DEPTH_LIMIT && !outer.has(at); at = parentElement(at), up += 1) outer.add(at);
  return { ...best, byUnit: new Map(best.messages.map((message) => [message.unit, message])), outer, actions: new Set(best.messages.flatMap(({ body }) => actionsIn(body))) };
};

// How the discussion is written: in the place of the main content that it is a part of, below a short post, or not at all.
const threadOf = (found) => {
  const thread = findThread();
  if (!thread) return null;
  const body = bodyOf(document);
  if (!found) return body && { ...thread, root: body, isBelow: false };
  const inside = thread.messages.filter(({ unit }) => contains(found.root, unit) && !isWithin(unit, found.removed));
  if (inside.length >= 2 && inside.length >= 0.5 * thread.messages.length) return { ...thread, root: found.root, isBelow: false };
  const whole = thread.messages.find(({ unit }) => contains(unit, found.root));
  const length = plainText(found).length;
  if (whole) {
    // A long article is more than the first one of its comments.
    const isComment = ({ unit }) => closest(unit, COMMENTS) !== null;
    const hasComments = !isComment(whole) && thread.messages.every((message) => message === whole || isComment(message));
    if (thread.size - whole.size < whole.size || (hasComments && length > MOST_POST)) return null;
    let root = found.root;
    for (let up = 0; root && up < DEPTH_LIMIT && !thread.messages.every(({ unit }) => contains(root, unit)); up += 1) root = parentElement(root);
    return root && contains(root, whole.unit) && root !== whole.unit ? { ...thread, root, isBelow: false } : null;
  }
  // They are not written where the page has them, so that those of a part that is not shown are left out here.
  const isSeen = ({ unit, body }) => [unit, ...body].some((node) => typeOf(node) === ELEMENT && isVisible(node, { visibilityProperty: true }));
  return inside.length === 0 && length <= MOST_POST && thread.size > length ? { ...thread, messages: thread.messages.filter(isSeen), root: found.root, isBelow: true } : null;
};

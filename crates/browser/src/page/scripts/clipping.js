// Which part of an element its ancestors leave visible: what `overflow`, `contain`, `clip` and `clip-path` do not cut off. Where a
// style is not understood, nothing counts as cut off. Expressions with this file define how they read elements: `styleOf`, `boxOf`,
// `localName`, `flatParent` and `matchesSelector`.

const EVERYWHERE = { left: -1e9, top: -1e9, right: 1e9, bottom: 1e9 };
const NOWHERE = { left: 1e9, top: 1e9, right: -1e9, bottom: -1e9 };
const MAX_SHAPE = 10000;
// Boxes of these types have no content of their own that could be cut off.
const WITHOUT_OVERFLOW = /^(?:none|inline|contents|ruby.*|inline-table|table(?:-(?!cell|caption).*)?)$/;

const intersection = (one, other) => ({
  left: Math.max(one.left, other.left),
  top: Math.max(one.top, other.top),
  right: Math.min(one.right, other.right),
  bottom: Math.min(one.bottom, other.bottom),
});
// Elements of frames have prototypes of their own.
const isHtmlBox = (element) => element.offsetWidth !== undefined;
const hasNoArea = ({ left, top, right, bottom }) => right <= left || bottom <= top;

// Elements in the top layer are drawn apart from their ancestors.
const TOP_LAYER = ':modal, :popover-open, :fullscreen';

// Is the element turned, mirrored or in perspective, so that its sides are not those of its box?
const isTurnedBy = ({ transform, rotate, scale, perspective, offsetPath }) => {
  const [, a, b, c, d] = /^matrix\(([^,]+), ([^,]+), ([^,]+), ([^,]+),/.exec(transform) ?? [];
  const isUpright = transform === 'none' || (Number(a) > 0 && Number(b) === 0 && Number(c) === 0 && Number(d) > 0);
  return !isUpright || rotate !== 'none' || perspective !== 'none' || (offsetPath ?? 'none') !== 'none' || scale.includes('-');
};

// Are fixed elements in it positioned in it, instead of in the window?
const holdsFixedElements = (style) =>
  ['transform', 'translate', 'rotate', 'scale', 'perspective', 'filter'].some((name) => style[name] !== 'none') || /paint|layout|strict|content/.test(style.contain);

// A length of a shape in pixels of the layout. It is no number where it is anything but pixels or a percentage.
const shapeLength = (text, side) => {
  const [, number, unit] = /^(-?[\d.]+(?:e-?\d+)?)(px|%)$/.exec(text ?? '') ?? [];
  return unit === '%' ? (side * Number(number)) / 100 : Number(number ?? NaN);
};

// A rectangle from distances to the left and upper edges of an element's border box.
const within = (element, box, isTurned, [left, top, right, bottom]) => {
  if (![left, top, right, bottom].every(Number.isFinite)) return EVERYWHERE;
  if (right <= left || bottom <= top) return NOWHERE;
  if (isTurned) return EVERYWHERE;
  const [across, down] = [box.width / (element.offsetWidth || 1), box.height / (element.offsetHeight || 1)];
  return { left: box.left + left * across, top: box.top + top * down, right: box.left + right * across, bottom: box.top + bottom * down };
};

const insetOf = (element, box, isTurned, text) => {
  const [width, height] = [element.offsetWidth, element.offsetHeight];
  const given = text.split(' round ')[0].trim().split(/\s+/);
  const [top, right = top, bottom = top, left = right] = given;
  const [x, y] = [shapeLength(left, width), shapeLength(top, height)];
  return within(element, box, isTurned, [x, y, width - shapeLength(right, width), height - shapeLength(bottom, height)]);
};

const polygonOf = (element, box, isTurned, text) => {
  const points = text.replace(/^(?:nonzero|evenodd),/, '').split(',').map((point) => point.trim().split(/\s+/));
  const across = points.map(([x]) => shapeLength(x, element.offsetWidth));
  const down = points.map(([, y]) => shapeLength(y, element.offsetHeight));
  const edge = (values, side) => values.reduce((one, other) => side(one, other));
  return within(element, box, isTurned, [edge(across, Math.min), edge(down, Math.min), edge(across, Math.max), edge(down, Math.max)]);
};

// What `clip-path` leaves of an element.
const clipPathOf = (element, box, { clipPath, display }, isTurned) => {
  if (clipPath === 'none' || clipPath.length > MAX_SHAPE || !isHtmlBox(element) || display === 'inline') return EVERYWHERE;
  const [, shape, text] = /^([a-z]+)\(([^()]*)\)$/.exec(clipPath) ?? [];
  switch (shape) {
    case 'inset':
      return insetOf(element, box, isTurned, text);
    case 'polygon':
      return polygonOf(element, box, isTurned, text);
    case 'circle':
    case 'ellipse':
      // One without a radius has no area.
      return /^0(?:px|%)(?:\s|$)/.test(text) || (shape === 'ellipse' && /^\S+ 0(?:px|%)(?:\s|$)/.test(text)) ? NOWHERE : EVERYWHERE;
    default:
      return EVERYWHERE;
  }
};

// What `clip` leaves of an element that is positioned out of the flow.
const clipOf = (element, box, { clip, position }, isTurned) => {
  const [, text] = /^rect\(([^()]*)\)$/.exec(clip) ?? [];
  if (!text || !isHtmlBox(element) || (position !== 'absolute' && position !== 'fixed')) return EVERYWHERE;
  const edges = text.split(/[\s,]+/);
  const edge = (at, otherwise) => (edges[at] === 'auto' ? otherwise : shapeLength(edges[at], NaN));
  return within(element, box, isTurned, [edge(3, 0), edge(0, 0), edge(1, element.offsetWidth), edge(2, element.offsetHeight)]);
};

// The axes on which an element cuts off its content, and those of them on which a user can scroll it.
const cutAxes = (element, style) => {
  // The overflow of the root and of the body is that of the window.
  if (!isHtmlBox(element) || WITHOUT_OVERFLOW.test(style.display) || /^(?:html|body)$/.test(localName(element))) return [];
  const isContained = /paint|strict|content/.test(style.contain);
  const cuts = (overflow) => isContained || /^(?:hidden|scroll|auto)$/.test(overflow) || (overflow === 'clip' && (style.overflowClipMargin ?? '0px') === '0px');
  return [style.overflowX, style.overflowY].map((overflow) => ({ isCut: cuts(overflow), isScrolled: /^(?:scroll|auto)$/.test(overflow) }));
};

// What an element leaves of its content. With `isReach`, what can be scrolled into view counts as visible.
const contentClip = (element, box, style, { own, isTurned, isReach }) => {
  const [across, down] = cutAxes(element, style);
  if (!across?.isCut && !down?.isCut) return own;
  const [ownX, ownY] = isTurned ? [0, 0] : [box.width / (element.offsetWidth || 1), box.height / (element.offsetHeight || 1)];
  const border = (side) => Number.parseFloat(style.getPropertyValue(`border-${side}-width`)) || 0;
  const inner = intersection(own, {
    left: across.isCut ? box.left + border('left') * ownX : EVERYWHERE.left,
    top: down.isCut ? box.top + border('top') * ownY : EVERYWHERE.top,
    right: across.isCut ? box.right - border('right') * ownX : EVERYWHERE.right,
    bottom: down.isCut ? box.bottom - border('bottom') * ownY : EVERYWHERE.bottom,
  });
  if (!isReach || hasNoArea(inner)) return inner;
  return {
    left: across.isScrolled ? EVERYWHERE.left : inner.left,
    top: down.isScrolled ? EVERYWHERE.top : inner.top,
    right: across.isScrolled ? EVERYWHERE.right : inner.right,
    bottom: down.isScrolled ? EVERYWHERE.bottom : inner.bottom,
  };
};

// What is left of an element itself, and of what is in it, by its position: in the flow, absolute or fixed.
const UNCUT = { own: EVERYWHERE, inFlow: EVERYWHERE, absolute: EVERYWHERE, fixed: EVERYWHERE, isTurned: false };
const clipsIn = (element, outer, { window, isReach }) => {
  const style = styleOf(element);
  const { position } = style;
  const isTurned = outer.isTurned || isTurnedBy(style);
  const isApart = matchesSelector(element, TOP_LAYER);
  const around = isApart ? window.fixed : position === 'fixed' ? outer.fixed : position === 'absolute' ? outer.absolute : outer.inFlow;
  const box = boxOf(element);
  const path = clipPathOf(element, box, style, isTurned);
  const own = intersection(intersection(around, path), clipOf(element, box, style, isTurned));
  const inFlow = contentClip(element, box, style, { own, isTurned, isReach });
  const holdsFixed = holdsFixedElements(style);
  const holdsAbsolute = holdsFixed || position !== 'static';
  // A path cuts off what is inside of the element wherever that is positioned.
  const elsewhere = (clip) => intersection(isApart ? window.fixed : clip, path);
  return { own, inFlow, absolute: holdsAbsolute ? inFlow : elsewhere(outer.absolute), fixed: holdsFixed ? inFlow : elsewhere(outer.fixed), isTurned };
};

// How the elements of a document are cut off, as long as its layout stays the same. `window` is what the window leaves of it.
const newClipping = (window = UNCUT, isReach = false) => ({ known: new Map(), window, isReach });
const clipsOf = (element, clipping) => {
  const { known, window } = clipping;
  const unknown = [];
  let at = element;
  for (; at && !known.has(at); at = flatParent(at)) unknown.push(at);
  let clips = at ? known.get(at) : window;
  for (const inner of unknown.reverse()) {
    clips = clipsIn(inner, clips, clipping);
    known.set(inner, clips);
  }
  return clips;
};

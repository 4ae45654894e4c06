// Areas of image maps. They have no boxes of their own: they are where the image is that shows their map.

const MAX_COORDINATES = 1000;

// The first visible image for each map, by its name.
let mapImages = null;
const imagesOfMaps = () => {
  if (mapImages) return mapImages;
  mapImages = new Map();
  for (const image of trees().flatMap((tree) => selectIn(tree, 'img[usemap]'))) {
    const name = (attribute(image, 'usemap') ?? '').replace(/^[^#]*#/, '');
    if (name && !mapImages.has(name) && isVisible(image, { opacityProperty: true, visibilityProperty: true })) mapImages.set(name, image);
  }
  return mapImages;
};

// The image that shows an area, or null.
const imageOf = (area) => {
  const map = closest(area, 'map');
  const name = map ? attribute(map, 'name') || attribute(map, 'id') : null;
  return (name && imagesOfMaps().get(name)) ?? null;
};

// Does clicking there follow a link of the map? The middle of a box need not be inside of its shape.
const isOnMap = (area, hit) => hit === imageOf(area) || contains(closest(area, 'map'), hit);

// How wide the border and the padding of an element are together at one side, in pixels of its layout.
const contentInset = (style, side) => {
  const pixels = (name) => Number.parseFloat(style.getPropertyValue(name)) || 0;
  return pixels(`border-${side}-width`) + pixels(`padding-${side}`);
};

// The edges of a shape, from the corner of the image's content. Those of the whole image are null.
const edgesOf = (area) => {
  const numbers = (attribute(area, 'coords') ?? '').slice(0, 10 * MAX_COORDINATES).split(/[\s,;]+/).slice(0, MAX_COORDINATES).map(Number.parseFloat);
  const values = numbers.filter(Number.isFinite);
  const shape = (attribute(area, 'shape') ?? '').trim().toLowerCase();
  if (shape === 'default') return null;
  if (shape === 'circle' || shape === 'circ') {
    const [x, y, radius] = values;
    return { left: x - radius, top: y - radius, right: x + radius, bottom: y + radius };
  }
  const isPolygon = shape === 'poly' || shape === 'polygon';
  const points = isPolygon ? values : values.slice(0, 4);
  const [across, down] = [0, 1].map((odd) => points.filter((_, at) => at % 2 === odd));
  return { left: Math.min(...across), top: Math.min(...down), right: Math.max(...across), bottom: Math.max(...down) };
};

// The box of an area in the window.
const areaBox = (area, image) => {
  const box = boxOf(image);
  const style = styleOf(image);
  const [ownX, ownY] = [box.width / (image.offsetWidth || 1), box.height / (image.offsetHeight || 1)];
  const edge = (side) => contentInset(style, side);
  const content = {
    left: box.left + edge('left') * ownX, top: box.top + edge('top') * ownY,
    right: box.right - edge('right') * ownX, bottom: box.bottom - edge('bottom') * ownY,
  };
  const edges = edgesOf(area);
  if (!edges) return content;
  const shape = {
    left: content.left + edges.left * ownX, top: content.top + edges.top * ownY,
    right: content.left + edges.right * ownX, bottom: content.top + edges.bottom * ownY,
  };
  return Object.values(shape).every(Number.isFinite) ? intersection(shape, content) : NOWHERE;
};

// Frames: the document of a frame of the same origin, and the address of a video.

const MAX_FRAMES = 20;
const frameDocument = getter(HTMLIFrameElement.prototype, 'contentDocument');
const frameSource = getter(HTMLIFrameElement.prototype, 'src');
const namespaceOf = getter(Element.prototype, 'namespaceURI');
// Elements of frames have prototypes of their own, so that they are told by their names.
const isHtml = (node, name) => localName(node) === name && namespaceOf(node) === 'http://www.w3.org/1999/xhtml';

// The body of a frame that a reader sees, or null.
const bodyOfFrame = (element) => {
  const box = boxOf(element);
  if (box.width < 50 || box.height < 20) return null;
  const names = wordsOf(`${namesOfElement(element)} ${attribute(element, 'title') ?? ''}`);
  if (names.some((word) => WORDS_LEFT_OUT.has(word))) return null;
  const inner = frameDocument(element);
  const body = inner ? bodyOf(inner) : null;
  return body && textContent(body).trim() ? body : null;
};
// The page of an embedded video or post, with the frame's title.
const linkOfFrame = (element) => {
  const source = frameSource(element) || attribute(element, 'data-src') || '';
  const video = /^(?:https?:)?\/\/(?:www\.)?youtube(?:-nocookie)?\.com\/embed\/([\w-]{6,20})/.exec(source)?.[1];
  const vimeo = /^(?:https?:)?\/\/player\.vimeo\.com\/video\/(\d{1,15})/.exec(source)?.[1];
  const post = /^(?:https?:)?\/\/platform\.(?:twitter|x)\.com\/embed\/[^?]*\?(?:.*&)?id=(\d{1,25})/.exec(source)?.[1];
  const url = video ? `https://www.youtube.com/watch?v=${video}` : vimeo ? `https://vimeo.com/${vimeo}` : post ? `https://x.com/i/status/${post}` : null;
  return url ? { url, title: oneLine(attribute(element, 'title') ?? '', 300) || (post ? 'Post' : 'Video') } : null;
};

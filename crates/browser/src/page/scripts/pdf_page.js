// Draws one page of the PDF at the address of the document, with PDF.js.

// Larger images in a PDF are left out: a few kilobytes can decode to gigabytes.
const MAX_IMAGE_PIXELS = 1 << 26;

// No image of a page is higher.
const MAX_HEIGHT = 16_384;

// A larger canvas is drawn with fewer pixels.
const MAX_CANVAS_PIXELS = 1 << 26;

const MAX_TITLE = 300;

const load = async () => {
  try {
    const response = await fetch(location.href, { cache: 'no-store' });
    return new Uint8Array(await response.arrayBuffer());
  } catch {
    return null;
  }
};

const titleOf = async (pdf) => {
  try {
    const { info } = await pdf.getMetadata();
    return typeof info?.Title === 'string' ? info.Title.slice(0, MAX_TITLE) : '';
  } catch {
    return '';
  }
};

// A canvas that is as wide as the widest window, in image pixels. What is further down than any image is not drawn.
const canvasFor = (page, width) => {
  const size = page.getViewport({ scale: 1 });
  const wanted = width / size.width;
  const pixels = width * Math.min(size.height * wanted, MAX_HEIGHT);
  const viewport = page.getViewport({ scale: wanted * Math.min(1, Math.sqrt(MAX_CANVAS_PIXELS / pixels)) });
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.round(viewport.width));
  canvas.height = Math.max(1, Math.round(Math.min(viewport.height, MAX_HEIGHT)));
  // The document is as high as the page, so that the image counts as cut.
  const isCut = viewport.height > MAX_HEIGHT;
  return { canvas, viewport, height: isCut ? `${(100 * size.height) / size.width}vw` : 'auto' };
};

const drawPage = async (page, { width, isTransparent }) => {
  const { canvas, viewport, height } = canvasFor(page, width);
  const background = isTransparent ? 'rgba(0, 0, 0, 0)' : 'rgb(255, 255, 255)';
  // For screens, PDF.js would wait for frames, of which none are drawn yet.
  await page.render({ canvasContext: canvas.getContext('2d'), viewport, background, intent: 'print' }).promise;
  document.body.style.minHeight = height;
  document.body.replaceChildren(canvas);
};

const draw = async (wanted) => {
  const data = await load();
  if (!data) return { problem: 'unloaded' };
  let pdf;
  try {
    const source = { data, isEvalSupported: false, useSystemFonts: true, maxImageSize: MAX_IMAGE_PIXELS, verbosity: 0 };
    pdf = await globalThis.pdfjsLib.getDocument(source).promise;
  } catch (error) {
    return { problem: error?.name === 'PasswordException' ? 'locked' : 'broken' };
  }
  const pages = pdf.numPages;
  if (wanted.number > pages) return { problem: 'missing', pages };
  try {
    await drawPage(await pdf.getPage(wanted.number), wanted);
  } catch {
    return { problem: 'broken' };
  }
  document.title = await titleOf(pdf);
  return {};
};

// Draws one page of the PDF at the address of the document, with PDF.js.

// Larger images in a PDF are left out: a few kilobytes can decode to gigabytes.
const MAX_IMAGE_PIXELS = 1 << 26;

// No image of a page is higher.
const MAX_HEIGHT = 16_384;

// A larger canvas is drawn with fewer pixels.
const MAX_CANVAS_PIXELS = 1 << 26;

const MAX_TITLE = 300;

// It is requested once, however often it is drawn. PDF.js takes its bytes away.
const load = async () => {
  try {
    globalThis.pdfBytes ??= await (await fetch(location.href, { cache: 'no-store' })).arrayBuffer();
    return new Uint8Array(globalThis.pdfBytes.slice(0));
  } catch {
    return null;
  }
};

// What gives PDF.js the tables of characters that it asks for by name. Fonts need them whose texts are in encodings of Chinese,
// Japanese or Korean. Names of tables that are not there are added to `missing`.
const readerOf = (tables, missing) =>
  class {
    async fetch({ name }) {
      if (!Object.hasOwn(tables, name)) {
        missing.add(name);
        throw new Error(name);
      }
      return { cMapData: Uint8Array.from(atob(tables[name]), (char) => char.charCodeAt(0)), isCompressed: true };
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

// Draws the page of a PDF that was opened.
const drawFrom = async (pdf, wanted, missing) => {
  const pages = pdf.numPages;
  if (wanted.number > pages) return { problem: 'missing', pages };
  try {
    await drawPage(await pdf.getPage(wanted.number), wanted);
  } catch {
    return { problem: 'broken' };
  }
  document.title = await titleOf(pdf);
  return { missing: [...missing] };
};

const draw = async (wanted) => {
  const missing = new Set();
  const CMapReaderFactory = readerOf(wanted.tables, missing);
  const data = await load();
  if (!data) return { problem: 'unloaded' };
  let pdf;
  try {
    const limits = { isEvalSupported: false, maxImageSize: MAX_IMAGE_PIXELS, verbosity: 0 };
    const source = { data, CMapReaderFactory, useSystemFonts: true, ...limits };
    pdf = await globalThis.pdfjsLib.getDocument(source).promise;
  } catch (error) {
    return { problem: error?.name === 'PasswordException' ? 'locked' : 'broken' };
  }
  try {
    return await drawFrom(pdf, wanted, missing);
  } finally {
    // It may be drawn again. What PDF.js keeps of it would add up.
    pdf.destroy().catch(() => {});
  }
};

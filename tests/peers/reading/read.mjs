// Reads pages with one of the tools from npm, for `script/bench reading`: node read.mjs TOOL KIND
//
// TOOL is `readability` or `defuddle`, and KIND is `text` or `markdown`, which only defuddle writes. Reads one page per line
// from standard input,
//   {"file":"…/page.html","url":"https://…"}
// whose file may be compressed with gzip,
// and answers each with a line, {"read":"…"} or {"error":"…"}. A page in which the tool finds no content has an empty text.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';

// The packages are installed in the working directory.
const require = createRequire(process.cwd() + '/');
const { JSDOM, VirtualConsole } = require('jsdom');
const { parseHTML } = require('linkedom');
const sniffEncoding = require('html-encoding-sniffer');

const [tool, kind] = process.argv.slice(2);

const BLOCKS =
  'address,article,aside,blockquote,br,dd,details,div,dl,dt,figcaption,figure,footer,h1,h2,h3,h4,h5,h6,header,hr,li,main,' +
  'nav,ol,p,pre,section,summary,table,td,th,tr,ul';

// The tools return HTML. Without line breaks, the last word of a block and the first of the next one would be one word.
const textOf = (html) => {
  const { body } = new JSDOM(html).window.document;
  for (const block of body.querySelectorAll(BLOCKS)) {
    block.before('\n');
    block.after('\n');
  }
  return body.textContent;
};

const readers = {
  async readability() {
    const { Readability } = require('@mozilla/readability');
    return (html, url) => {
      // Without a virtual console, the errors of style sheets would be written to the log.
      const { window } = new JSDOM(html, { url, virtualConsole: new VirtualConsole() });
      const content = new Readability(window.document).parse()?.content ?? '';
      window.close();
      return textOf(content);
    };
  },
  // With the parser that its own documentation names first, with which it is several times as fast as with jsdom.
  async defuddle() {
    // The package exports this file to programs that import it by name only.
    const { Defuddle } = await import(pathToFileURL(`${process.cwd()}/node_modules/defuddle/dist/node.js`));
    return async (html, url) => {
      const text = new TextDecoder(sniffEncoding(html, { defaultEncoding: 'utf-8' })).decode(html);
      const { content } = await Defuddle(parseHTML(text).document, url, { markdown: kind === 'markdown' });
      return kind === 'markdown' ? content : textOf(content);
    };
  },
};

if (!readers[tool] || !['text', 'markdown'].includes(kind)) {
  console.error(`unknown tool ${tool} or kind ${kind}`);
  process.exit(2);
}
const read = await readers[tool]();
// What a tool logs must not be between the answers.
console.log = console.info = console.debug = console.error;

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const { file, url } = JSON.parse(line);
    const content = await readFile(file);
    const html = file.endsWith('.gz') ? gunzipSync(content) : content;
    answer = { read: (await read(html, url)) ?? '' };
  } catch (error) {
    answer = { error: String(error?.message ?? error).slice(0, 500) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

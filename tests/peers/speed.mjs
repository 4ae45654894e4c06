// Captures pages with one other tool, as often and as many at a time as it is asked to: node speed.mjs TOOL
//
// Reads one JSON object a line from standard input,
//   {"id":1,"url":"http://…","full_page":false,"width":1280,"height":720,"file":null}
// and answers each, in the order in which they end, with a line when it has the image,
//   {"id":1,"image":{"width":1280,"height":720,"bytes":48213}}
// and another one when it has closed what it opened for the capture, and has written the image to `file` if there is one:
// {"id":1,"end":true} or {"id":1,"error":"…"}.
import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';

import { close, contenders } from './tools.mjs';

const capture = contenders[process.argv[2]];
if (!capture) {
  console.error(`unknown tool ${process.argv[2]}; known are ${Object.keys(contenders).join(', ')}`);
  process.exit(2);
}

const answer = (object) => process.stdout.write(`${JSON.stringify(object)}\n`);

// The size of a PNG is at a fixed place (RFC 2083, section 4.1.1).
const sizeOf = (png) => {
  const view = new DataView(png.buffer, png.byteOffset, png.byteLength);
  return { width: view.getUint32(16), height: view.getUint32(20), bytes: png.byteLength };
};

const answerTask = async ({ id, url, full_page, width, height, file }) => {
  const imaged = (image) => {
    answer({ id, image: sizeOf(image) });
    return image;
  };
  try {
    const image = await capture({ url, mode: full_page ? 'full_page' : 'viewport', width, height, imaged });
    if (file) await writeFile(file, image);
    answer({ id, end: true });
  } catch (error) {
    answer({ id, error: String(error?.message ?? error).split('\n')[0] });
  }
};

const open = new Set();
for await (const line of createInterface({ input: process.stdin })) {
  const task = answerTask(JSON.parse(line)).finally(() => open.delete(task));
  open.add(task);
}

await Promise.all(open);
await close();
process.exit(0);

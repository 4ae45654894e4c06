// Captures pages with other tools, for comparison: reads one JSON object a line from standard input,
//   {"contender":"playwright","url":"http://…","mode":"full_page","selector":null,"width":1280,"height":720,"file":"/tmp/x.png"}
// and answers each with one line: {"ms":123} or {"ms":123,"error":"…"}.
import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';

import { abandon, close, contenders } from './tools.mjs';

// Some tools wait for a page that does not answer as long as it takes.
const LONGEST_MS = 120_000;

for await (const line of createInterface({ input: process.stdin })) {
  const task = JSON.parse(line);
  const began = performance.now();
  const answer = {};
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no image within ${LONGEST_MS / 1000} s`)), LONGEST_MS);
  });
  try {
    const image = await Promise.race([contenders[task.contender](task), late]);
    answer.ms = performance.now() - began;
    await writeFile(task.file, image);
  } catch (error) {
    answer.ms ??= performance.now() - began;
    answer.error = String(error?.message ?? error).split('\n')[0];
    if (performance.now() - began >= LONGEST_MS) await abandon();
  } finally {
    clearTimeout(timer);
  }
  console.log(JSON.stringify(answer));
}

await close();
process.exit(0);

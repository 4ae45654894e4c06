// Captures pages with other tools, for comparison: reads one JSON object a line from standard input,
//   {"contender":"playwright","url":"http://…","mode":"full_page","selector":null,"width":1280,"height":720,"file":"/tmp/x.png"}
// and answers each with one line: {"ms":123} or {"ms":123,"error":"…"}.
import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';

import { close, contenders } from './tools.mjs';

for await (const line of createInterface({ input: process.stdin })) {
  const task = JSON.parse(line);
  const began = performance.now();
  const answer = {};
  try {
    const image = await contenders[task.contender](task);
    answer.ms = performance.now() - began;
    await writeFile(task.file, image);
  } catch (error) {
    answer.ms ??= performance.now() - began;
    answer.error = String(error?.message ?? error).split('\n')[0];
  }
  console.log(JSON.stringify(answer));
}

await close();
process.exit(0);

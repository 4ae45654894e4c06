/** One event of a stream. */
export interface ServerSentEvent {
  id: string;
  data: string;
}

/** An event of a grab is far smaller. */
const MAX_EVENT_CHARS = 1 << 20;

/** Parses a stream of Server-Sent Events (WHATWG HTML, 9.2.6). Call `push` with each chunk. */
export class EventParser {
  readonly #decoder = new TextDecoder();
  #text = "";
  #data: string[] = [];
  #size = 0;
  #id = "";
  #endedWithCr = false;

  /**
   * The events that a chunk completes.
   *
   * @throws RangeError if an event is larger than any event of a grab.
   */
  push(chunk: Uint8Array): ServerSentEvent[] {
    let text = this.#decoder.decode(chunk, { stream: true });
    // The two characters of a line end may come in two chunks.
    if (this.#endedWithCr && text.startsWith("\n")) {
      text = text.slice(1);
      this.#endedWithCr = false;
    }
    if (text !== "") this.#endedWithCr = text.endsWith("\r");
    const lines = (this.#text + text).split(/\r\n|\r|\n/);
    this.#text = lines.pop() ?? "";
    if (this.#text.length > MAX_EVENT_CHARS) throw new RangeError("an event is too large");
    const events: ServerSentEvent[] = [];
    for (const line of lines) {
      if (line === "") {
        if (this.#data.length > 0) events.push({ id: this.#id, data: this.#data.join("\n") });
        this.#data = [];
        this.#size = 0;
        continue;
      }
      const [, name, value] = /^([^:]*)(?:: ?)?(.*)$/s.exec(line) ?? [];
      if (name === "data") {
        this.#size += line.length;
        if (this.#size > MAX_EVENT_CHARS) throw new RangeError("an event is too large");
        this.#data.push(value ?? "");
      } else if (name === "id" && !value?.includes("\0")) {
        this.#id = value ?? "";
      }
    }
    return events;
  }
}

// Replaces WebSocket by one that fails to connect: the DevTools protocol cannot block sockets. Runs in the page's world.
(() => {
  const CLOSED = 3;
  globalThis.WebSocket = class WebSocket extends EventTarget {
    static CONNECTING = 0;
    static OPEN = 1;
    static CLOSING = 2;
    static CLOSED = CLOSED;
    CONNECTING = 0;
    OPEN = 1;
    CLOSING = 2;
    CLOSED = CLOSED;
    readyState = 0;
    bufferedAmount = 0;
    binaryType = 'blob';
    extensions = '';
    protocol = '';
    onopen = null;
    onmessage = null;
    onerror = null;
    onclose = null;

    constructor(url) {
      super();
      this.url = new URL(url, document.baseURI).href.replace(/^http/, 'ws');
      setTimeout(() => {
        this.readyState = CLOSED;
        for (const event of [new Event('error'), new CloseEvent('close', { code: 1006 })]) {
          this[`on${event.type}`]?.(event);
          this.dispatchEvent(event);
        }
      });
    }

    send() {
      if (this.readyState !== CLOSED) throw new DOMException('Still in CONNECTING state.', 'InvalidStateError');
    }

    close() {}
  };
})();

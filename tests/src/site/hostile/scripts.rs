//! Pages that attack with their own scripts and styles.

use super::Body::{Element, FullPage, Html, Script};
use super::ExpectedOutcome::{Failed, Green, GreenOrFailed, Image, ImageOrFailed};
use super::Page;

/// All pages, each with its expected outcome.
pub(super) const PAGES: &[Page] = &[
    // Dialogs.
    Page::new(
        "alerts",
        Script("alert(1); confirm(2); prompt(3); whenLoaded(() => { alert(4); setTimeout(() => alert(5)) })"),
        Green,
    ),
    Page::new("alerts-without-end", Script("for (;;) alert(1)"), Failed("dialog")),
    Page::new("alert-of-300-mb", Script("alert(megabytes(300))"), Green),
    Page::new("before-unload", Script("onbeforeunload = (event) => { event.preventDefault(); return 'stay' }"), Green),
    Page::new("print", Script("print(); whenLoaded(() => print())"), Green),
    // Windows.
    Page::new("popups", Script("for (let i = 0; i < 30; i++) open('/tiny', `w${i}`)"), Green),
    Page::new("closes-itself", Script("whenLoaded(() => close())"), GreenOrFailed),
    Page::new(
        "fullscreen",
        Script(
            "whenLoaded(() => { document.documentElement.requestFullscreen().catch(() => {});
             document.body.requestPointerLock() })",
        ),
        Green,
    ),
    // Loops.
    Page::new("busy", Script("for (;;) ;"), Failed("")).working(),
    Page::new("busy-later", Script("whenLoaded(() => setTimeout(() => { for (;;) ; }, 30))"), Failed("")).working(),
    Page::new(
        "busy-promises",
        Script("whenLoaded(() => { const again = () => Promise.resolve().then(again); again() })"),
        Failed(""),
    )
    .working(),
    Page::new(
        "busy-frames",
        Script(
            "const spin = () => { const end = performance.now() + 400; while (performance.now() < end) ;
             requestAnimationFrame(spin) }; spin()",
        ),
        GreenOrFailed,
    ),
    Page::new("busy-worker", Script("new Worker(URL.createObjectURL(new Blob(['for (;;) ;'])))"), Green),
    Page::new(
        "busy-workers",
        Script("for (let i = 0; i < 40; i++) new Worker(URL.createObjectURL(new Blob(['for (;;) ;'])))"),
        Green,
    ),
    Page::new("busy-shared-worker", Script("new SharedWorker(URL.createObjectURL(new Blob(['for (;;) ;'])))"), Green),
    Page::new("busy-frame-elsewhere", Script("add('iframe', { src: elsewhere('/hostile/busy') })"), GreenOrFailed)
        .working(),
    Page::new(
        "worker-swarm",
        Script(
            "for (let i = 0; i < 300;
             i++) new Worker(URL.createObjectURL(new Blob(['setInterval(() => {}, 1)'])))",
        ),
        Failed("workers"),
    ),
    Page::new(
        "busy-worker-swarm",
        Script("for (let i = 0; i < 500; i++) new Worker(URL.createObjectURL(new Blob(['for (;;) ;'])))"),
        Failed(""),
    ),
    Page::new(
        "timers-cleared",
        Script("setInterval(() => { for (let i = 0; i < 2000; i++) { clearTimeout(i); cancelAnimationFrame(i) } })"),
        Green,
    ),
    // Navigations.
    Page::new("reloads", Script("location.replace('?' + Math.random())"), Green),
    Page::new("reloads-later", Script("whenLoaded(() => location.reload())"), Green),
    Page::new("refreshes", Html("<meta http-equiv=refresh content=0>"), Green),
    // The previous history entry is the tab's own blank page.
    Page::new("goes-back", Script("whenLoaded(() => history.back())"), GreenOrFailed),
    Page::new(
        "to-and-fro",
        Script("location.hash = 1; setInterval(() => { history.back(); history.forward() }, 5)"),
        GreenOrFailed,
    ),
    Page::new(
        "push-state",
        Script(
            "setInterval(() => { for (let i = 0; i < 100;
             i++) history.pushState(null, '', '?' + Math.random()) })",
        ),
        Green,
    ),
    Page::new("long-address", Script("history.replaceState(null, '', '?' + 'a'.repeat(1.9e6))"), Green),
    Page::new("long-hash", Script("location.hash = 'a'.repeat(1.9e6)"), Green),
    Page::new("name-of-40-mb", Script("if (!name) { name = megabytes(40); location.replace('?') }"), Green),
    Page::new("frame-name-of-40-mb", Script("add('iframe', { name: megabytes(40), src: '/tiny' })"), Green),
    // URLs that are not http(s).
    Page::new("to-mailto", Script("location.href = 'mailto:a@b.example'"), Green),
    Page::new("to-custom-scheme", Script("whenLoaded(() => { location.href = 'grabd-test://open' })"), Green),
    Page::new("frame-to-tel", Html("<iframe src='tel:123' style='display:none'></iframe>"), Green),
    Page::new(
        "form-to-mailto",
        Script("const form = add('form', { action: 'mailto:a@b.example', method: 'post' }); form.submit()"),
        Green,
    ),
    Page::new("to-file", Script("location.href = 'file:///etc/passwd'"), Green),
    Page::new("to-chrome", Script("location.href = 'chrome://version'"), Green),
    Page::new("to-crash", Script("location.href = 'chrome://crash'"), Green),
    Page::new("to-view-source", Script("location.href = 'view-source:' + location.href"), Green),
    Page::new("to-data", Script("location.href = 'data:text/html,x'"), Green),
    Page::new(
        "to-blob",
        Script("location.href = URL.createObjectURL(new Blob(['x'], { type: 'text/html' }))"),
        Failed("not on the web"),
    ),
    Page::new(
        "saves-a-blob",
        Script(
            "whenLoaded(() => add('a', { href: URL.createObjectURL(new Blob([megabytes(8)])),
             download: 'x.bin' }).click())",
        ),
        Green,
    ),
    // Permissions.
    Page::new(
        "permissions",
        Script(
            "navigator.geolocation.getCurrentPosition(() => {}); Notification.requestPermission();
             navigator.mediaDevices?.getUserMedia({ audio: true, video: true }).catch(() => {});
             navigator.clipboard?.readText().catch(() => {}); navigator.clipboard?.writeText('x').catch(() => {});
             navigator.credentials?.get({ publicKey: { challenge: new Uint8Array(32) } }).catch(() => {});
             navigator.bluetooth?.requestDevice({ acceptAllDevices: true }).catch(() => {});
             navigator.usb?.requestDevice({ filters: [] }).catch(() => {});
             navigator.requestMIDIAccess?.({ sysex: true }).catch(() => {});
             navigator.storage?.persist?.().catch(() => {}); navigator.wakeLock?.request().catch(() => {});
             navigator.registerProtocolHandler?.('web+grabd', location.origin + '/?%s')",
        ),
        Green,
    ),
    // Floods.
    // Each message also goes to the browser's main process, which is then slow to answer (Chromium 156). On a busy machine,
    // the capture may reach its time limit.
    Page::new(
        "console",
        Script("setInterval(() => { for (let i = 0; i < 2000; i++) console.log('x'.repeat(1000), { i }) })"),
        GreenOrFailed,
    ),
    Page::new("fetches", Script("for (let i = 0; i < 10000; i++) fetch('/tiny?' + i).catch(() => {})"), GreenOrFailed),
    Page::new(
        "messages",
        Script("onmessage = () => { postMessage(1); postMessage(2) }; postMessage(0); setInterval(() => {}, 1)"),
        GreenOrFailed,
    ),
    Page::new(
        "data-address-of-300-mb",
        Script("add('img', { src: 'data:image/png;base64,' + megabytes(300), style: 'display:none' })"),
        Green,
    ),
    Page::new(
        "data-addresses",
        Script(
            "whenLoaded(() => { const data = megabytes(4); for (let i = 0; i < 100;
             i++) fetch(`data:text/plain,${i}${data}`).catch(() => {}) })",
        ),
        GreenOrFailed,
    ),
    Page::new("long-title", Script("document.title = megabytes(64)"), Green),
    // Size.
    Page::new("tall", FullPage("<div style='height:200000px'></div>"), Green),
    Page::new(
        "tall-and-wide-element",
        Element("add('div', { id: 'target', style: 'width:200000px;height:200000px' })"),
        Green,
    ),
    Page::new(
        "frames",
        Script("for (let i = 0; i < 10000; i++) add('iframe', { style: 'display:none' })"),
        GreenOrFailed,
    ),
    Page::new(
        "frames-of-many-sites",
        Script(
            "for (let i = 0; i < 300; i++) add('iframe', { src: elsewhere('/tiny', `site${i}`),
             style: 'display:none' })",
        ),
        GreenOrFailed,
    ),
    Page::new(
        "huge-document",
        Script(
            "const part = document.createElement('p'); for (let i = 0; i < 300000;
             i++) document.body.appendChild(part.cloneNode())",
        ),
        GreenOrFailed,
    ),
    Page::new(
        "deep-document",
        Script(
            "let at = document.body; for (let i = 0; i < 50000;
             i++) at = at.appendChild(document.createElement('span'))",
        ),
        GreenOrFailed,
    ),
    Page::new(
        "arrays-of-1500-mb",
        Script(
            "whenLoaded(() => { window.kept = []; for (let i = 0; i < 15;
             i++) kept.push(new Uint8Array(1e8).fill(1)) })",
        ),
        GreenOrFailed,
    ),
    Page::new(
        "canvas",
        Script(
            "const canvas = add('canvas', { width: 16000, height: 16000, style: 'display:none' });
             const draw = () => { const pen = canvas.getContext('2d'); pen.fillRect(0, 0, 16000, 16000);
             pen.getImageData(0, 0, 1, 1); requestAnimationFrame(draw) }; draw()",
        ),
        GreenOrFailed,
    ),
    Page::new(
        "shader",
        Script(
            "const gl = add('canvas', { width: 2000, height: 2000 }).getContext('webgl'); if (gl) {
             const shader = (kind, text) => { const made = gl.createShader(kind); gl.shaderSource(made, text);
             gl.compileShader(made); return made };
             const program = gl.createProgram(); gl.attachShader(program,
             shader(gl.VERTEX_SHADER, 'attribute vec2 p; void main() { gl_Position = vec4(p, 0, 1); }'));
             gl.attachShader(program, shader(gl.FRAGMENT_SHADER, 'precision highp float;
             void main() { float x = 0.; for (int i = 0; i < 100000000; i++) x = sin(x + gl_FragCoord.x);
             gl_FragColor = vec4(x); }'));
             gl.linkProgram(program); gl.useProgram(program); gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
             gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([-1, -1, 3, -1, -1, 3]), gl.STATIC_DRAW);
             gl.enableVertexAttribArray(0);
             gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0); gl.drawArrays(gl.TRIANGLES, 0, 3); gl.finish() }",
        ),
        ImageOrFailed,
    )
    .stalling(),
    Page::new(
        "filters",
        Script(
            "document.body.insertAdjacentHTML('beforeend', `<svg width=0 height=0><filter id=f>
             ${'<feMorphology operator=dilate radius=60 />'.repeat(100)}</filter></svg>
             <div style='position:fixed;inset:0;will-change:transform;filter:url(#f);background:red'></div>`)",
        ),
        ImageOrFailed,
    )
    .stalling(),
    Page::new(
        "animations",
        Html(
            "<style>@keyframes turn { to { transform: rotate(1turn) } } i { animation: turn 1s infinite;
             position: absolute }</style><script>for (let i = 0; i < 2000;
             i++) document.body.appendChild(document.createElement('i'))</script>",
        ),
        Green,
    ),
    Page::new(
        "writes",
        Script(
            "whenLoaded(() => { const again = () => { document.open();
             document.write('<style>html{background:rgb(29,122,62)}</style>'); document.close();
             setTimeout(again) }; setTimeout(again) })",
        ),
        Green,
    ),
    // Tampering with the APIs that a capture uses.
    Page::new("no-document-element", Script("whenLoaded(() => document.documentElement.remove())"), Image),
    Page::new(
        "tampered",
        Script(
            "const no = () => { throw 1 }; const never = () => new Promise(() => {});
             Promise.prototype.then = no; Promise.all = never; Promise.race = never; Array.prototype.filter = no;
             Array.prototype.map = no;
             Array.prototype[Symbol.iterator] = no; Object.prototype.changed = false;
             Object.prototype.height = 1e9; Object.prototype.toJSON = no;
             window.requestAnimationFrame = never; window.setTimeout = never; performance.now = () => NaN;
             window.MutationObserver = no;
             Object.defineProperty(document, 'fonts', { get: () => ({ ready: never() }) });
             Document.prototype.querySelector = never;
             Element.prototype.getBoundingClientRect = no; HTMLImageElement.prototype.decode = never;
             window.scrollTo = no; JSON.stringify = no",
        ),
        Green,
    ),
];

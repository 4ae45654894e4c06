//! Pages whose server takes part in the attack.

use super::Body::{At, Html, Script};
use super::ExpectedOutcome::{Blocked, Failed, Green, GreenOrFailed, Image};
use super::Page;

/// All pages, each with its expected outcome.
pub(super) const PAGES: &[Page] = &[
    // No document.
    Page::new("redirects-in-a-circle", At("/loop"), Failed("circle")),
    Page::new("no-content", At("/nocontent"), Failed("status 204")),
    Page::new("attachment", At("/download"), Failed("download")),
    Page::new(
        "link-to-an-attachment",
        Script("whenLoaded(() => add('a', { href: '/download', download: '' }).click())"),
        Green,
    ),
    Page::new("leads-to-an-attachment", Script("whenLoaded(() => { location.href = '/download' })"), Green),
    Page::new("basic-auth", At("/basic-auth"), Blocked("401")),
    // Over plain HTTP only a proxy may send this status, so the guard's proxy closes the connection of a site that
    // sends it.
    Page::new("proxy-auth", At("/sends/proxy-auth"), Failed("without an answer")),
    Page::new("image-with-basic-auth", Html("<img src=/basic-auth style=display:none>"), Green),
    Page::new("redirects-to-data", At("/redirect?to=data:text/html,x"), Failed("not on the web")),
    Page::new("redirects-to-file", At("/redirect?to=file:///etc/passwd"), Failed("not on the web")),
    Page::new("redirects-to-chrome", At("/redirect?to=chrome://crash"), Failed("not on the web")),
    Page::new("redirects-to-view-source", At("/redirect?to=view-source:http://127.0.0.2/"), Failed("without a page")),
    Page::new("redirects-to-mailto", At("/redirect?to=mailto:a@b.example"), Failed("without a page")),
    // Responses without an end.
    Page::new("never-answers", At("/hang"), Failed("in time")).waiting(),
    Page::new("trickles", At("/sends/trickle"), Green).waiting(),
    Page::new("image-never-answers", Html("<img src=/hang style=display:none>"), Green).waiting(),
    Page::new("image-trickles", Html("<img src=/sends/trickle-image style=display:none>"), Green).waiting(),
    Page::new("script-never-answers", Html("<script src=/hang></script>"), Green).waiting(),
    Page::new("style-never-answers", Html("<link rel=stylesheet href=/hang>"), Image).waiting(),
    Page::new(
        "font-never-answers",
        Html("<style>@font-face { font-family: x; src: url(/hang) } p { font-family: x }</style><p>&nbsp;"),
        Green,
    )
    .waiting(),
    Page::new("frame-never-answers", Html("<iframe src=/hang style='border:0;display:none'></iframe>"), Green)
        .waiting(),
    Page::new(
        "frame-elsewhere-never-answers",
        Script("add('iframe', { src: elsewhere('/hang'), style: 'display:none' })"),
        Green,
    )
    .waiting(),
    // Large responses.
    Page::new("endless-document", At("/sends/endless"), Failed("more than")),
    Page::new("document-of-1-gb", At("/sends/gigabyte"), Failed("more than")),
    Page::new("bomb", At("/sends/bomb"), Failed("more than")),
    // The image that never responds keeps the page from being captured before the fetch.
    Page::new(
        "fetch-of-a-bomb",
        Script("add('img', { src: '/hang' }); fetch('/sends/bomb').then((answer) => answer.text())"),
        Failed("more than"),
    ),
    Page::new("script-is-a-bomb", Script("add('script', { src: '/sends/bomb' })"), Failed("more than")),
    Page::new(
        "frame-elsewhere-is-a-bomb",
        Script("add('iframe', { src: elsewhere('/sends/bomb'), style: 'display:none' })"),
        Failed("more than"),
    ),
    Page::new(
        "worker-fetches-a-bomb",
        Script(
            "new Worker(URL.createObjectURL(new Blob([`fetch('${location.origin}/sends/bomb').then((answer) => answer.text())`])))",
        ),
        GreenOrFailed,
    ),
    Page::new(
        "fetch-of-1-gb",
        Script("add('img', { src: '/hang' }); fetch('/sends/gigabyte').then((answer) => answer.arrayBuffer())"),
        Failed("more than"),
    ),
    // Connections and workers that stay open.
    Page::new(
        "socket",
        Script(
            "const socket = new WebSocket(location.origin.replace('http', 'ws') + '/sends/socket');
             socket.onmessage = () => socket.send('x')",
        ),
        Green,
    ),
    Page::new(
        "socket-flood",
        Script("new WebSocket(location.origin.replace('http', 'ws') + '/sends/socket-flood')"),
        GreenOrFailed,
    ),
    Page::new(
        "service-worker",
        Script(
            "if (!navigator.serviceWorker.controller) { navigator.serviceWorker.oncontrollerchange = () => location.reload();
             navigator.serviceWorker.register('/hostile/service-worker.js') }",
        ),
        Green,
    ),
];

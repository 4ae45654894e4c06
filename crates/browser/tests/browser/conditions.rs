//! Pages that are waited for by their text, and pages that the caller does not accept.

use std::collections::BTreeMap;
use std::time::Duration;

use grabd_domain::capture::{CaptureRequest, OptionValue};
use grabd_domain::grabs::FailureReason;
use grabd_domain::render::{RenderError, RenderTask, Renderer as _};

use crate::rig::{Rig, request, task};
use crate::site::{Reply, Site, answer, html};

/// When a page changes too late for a capture that does not wait for it, however busy the machine is.
const TOO_LATE_MS: u32 = 60_000;

/// The messages of captures that fail.
async fn failure(rig: &Rig, request: CaptureRequest) -> String {
    let task = RenderTask { budget: Duration::from_secs(6), ..task(request) };
    match rig.chromium.render(task).await {
        Err(RenderError::Page { failure, .. }) => {
            assert_eq!(failure.reason, FailureReason::RenderFailed);
            failure.message
        }
        other => panic!("{:?}", other.map(|capture| capture.metadata)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn capture_waits_for_text_as_it_is_shown() {
    let page = |after_ms: u32| {
        html(format!(
            "<!doctype html><body style='margin:0;background:red'><p hidden>Total amount<p style='visibility:hidden'>Total
            amount</p><p>The orders of this month</p><div id=host></div><script>
            const tree = document.querySelector('#host').attachShadow({{ mode: 'open' }});
            setTimeout(() => {{
                document.body.style.background = 'lime';
                tree.innerHTML = '<p>The <b>to</b>tal\\n  amount</p>';
            }}, {after_ms})</script>"
        ))
    };
    let frame = |after_ms: u32| {
        html(format!(
            "<!doctype html><body style='margin:0;background:red'><p>The orders of this month</p>
            <iframe srcdoc='<p>wait</p>'></iframe><script>
            setTimeout(() => {{
                document.body.style.background = 'lime';
                document.querySelector('iframe').contentDocument.body.textContent = 'TOTAL AMOUNT';
            }}, {after_ms})</script>"
        ))
    };
    let pages = [
        ("/", page(9000)),
        ("/frame", frame(9000)),
        ("/late", page(TOO_LATE_MS)),
        ("/late-frame", frame(TOO_LATE_MS)),
        ("/never", html("<p hidden>Total amount</p><p>Sum")),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    let asked = |path: &str| CaptureRequest { wait_for_text: Some("Total  amount".into()), ..request(&site.url(path)) };
    for path in ["/", "/frame"] {
        assert_eq!(rig.capture(asked(path)).await.colour(600, 400), "lime", "{path}");
    }
    for path in ["/late", "/late-frame"] {
        assert_eq!(rig.grab(&site.url(path)).await.colour(600, 400), "red", "{path} without the option");
    }
    let message = failure(&rig, asked("/never")).await;
    assert_eq!(message, "`wait_for_text` \"Total  amount\" did not appear in time.");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unwanted_elements_and_texts_fail() {
    let page = "<!doctype html><p class=error>Internal <i>server</i><br>error</p><p class=hidden hidden>Maintenance</p>
        <div id=host></div><script>document.querySelector('#host').attachShadow({ mode: 'open' }).innerHTML =
            '<style>.x::after { content: \"Denied\" }</style><b class=inner>Access denied</b>'</script>";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let selector = |text: &str| CaptureRequest { fail_if_selector: Some(text.into()), ..request(&site.url("/")) };
    let text = |text: &str| CaptureRequest { fail_if_text: Some(text.into()), ..request(&site.url("/")) };
    for (request, message) in [
        (selector(".error"), "The page shows an element that matches `fail_if_selector` \".error\"."),
        (selector(".inner"), "The page shows an element that matches `fail_if_selector` \".inner\"."),
        (selector("p:"), "`fail_if_selector` \"p:\" is not a valid CSS selector."),
        (text("internal server ERROR"), "The page shows the text of `fail_if_text`, \"internal server ERROR\"."),
        (text("access denied"), "The page shows the text of `fail_if_text`, \"access denied\"."),
    ] {
        assert_eq!(failure(&rig, request.clone()).await, message);
        let full = CaptureRequest { full_page: Some(true), ..request };
        assert_eq!(failure(&rig, full).await, message, "of the full page");
    }
    for request in [selector(".hidden"), selector(".none"), text("Maintenance"), text("::after"), text("server errors")]
    {
        rig.capture(request).await;
    }
    // What the caller hides is not shown.
    let hidden = CaptureRequest { hide: Some(vec![".error".into()]), ..text("internal server error") };
    rig.capture(hidden).await;
    rig.chromium.shutdown().await;
}

/// Pages in which the text is, and whether it can be seen there.
const TEXTS: [(&str, &str, bool); 24] = [
    ("/plain", "<p>Total <b style='opacity:.5'>amount</b></p>", true),
    ("/below", "<p style='margin-top:3000px'>Total amount</p>", true),
    ("/scrolled", "<div style='height:40px;overflow:auto'><p style='height:400px'></p><p>Total amount</p></div>", true),
    ("/fixed", "<div style='height:0;overflow:hidden'><p style='position:fixed;top:0'>Total amount</p></div>", true),
    ("/upper", "<p style='text-transform:uppercase;width:1px'>Total amount</p>", true),
    ("/option", "<select><option>One<option>Total amount</select>", true),
    ("/contents", "<div style='display:contents'>Total <i style='display:contents'>amount</i></div>", true),
    ("/cell", "<table><tr><td>Total<td>amount</table>", true),
    ("/transparent", "<p style='opacity:0'>Total amount</p>", false),
    ("/within", "<div style='opacity:0'><p>Total <b>amount</b></p></div>", false),
    ("/half", "<p>Total <b style='opacity:0'>amount</b></p>", false),
    ("/clear", "<p style='color:transparent'>Total amount</p>", false),
    ("/alpha", "<p style='color:rgb(0 0 0 / 0)'>Total amount</p>", false),
    ("/fill", "<p style='-webkit-text-fill-color:transparent'>Total amount</p>", false),
    ("/shadow", "<p style='color:transparent;text-shadow:0 0 2px red'>Total amount</p>", true),
    ("/stroke", "<p style='color:transparent;-webkit-text-stroke:1px black'>Total amount</p>", true),
    (
        "/gradient",
        "<p style='background:linear-gradient(red,blue);background-clip:text;color:transparent'>Total <b>amount</b></p>",
        true,
    ),
    ("/closed", "<div style='height:0;overflow:hidden'><p>Total amount</p></div>", false),
    (
        "/slide",
        "<div style='width:100px;overflow:hidden'><p style='margin-left:200px;width:100px'>Total amount</p></div>",
        false,
    ),
    ("/outside", "<p style='position:absolute;left:-9999px'>Total amount</p>", false),
    ("/indent", "<h1 style='text-indent:-9999px;white-space:nowrap'>Total amount</h1>", false),
    ("/path", "<p style='clip-path:inset(50%)'>Total amount</p>", false),
    ("/clip", "<p style='position:absolute;clip:rect(0, 0, 0, 0)'>Total amount</p>", false),
    ("/frame", "<iframe style='opacity:0' srcdoc='<p>Total amount'></iframe>", false),
];

#[tokio::test(flavor = "multi_thread")]
async fn text_that_cannot_be_seen_is_not_shown() {
    let pages = TEXTS.map(|(path, page, _)| (path, html(format!("<!doctype html><body>{page}<p>Other text</p>"))));
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    for (path, _, is_seen) in TEXTS {
        let unwanted = CaptureRequest { fail_if_text: Some("total amount".into()), ..request(&site.url(path)) };
        match is_seen {
            true => {
                let message = failure(&rig, unwanted).await;
                assert_eq!(message, "The page shows the text of `fail_if_text`, \"total amount\".", "{path}");
            }
            false => drop(rig.capture(unwanted).await),
        }
    }
    // It is waited for until it can be seen.
    let wait = CaptureRequest { wait_for_text: Some("total amount".into()), ..request(&site.url("/transparent")) };
    assert_eq!(failure(&rig, wait).await, "`wait_for_text` \"total amount\" did not appear in time.");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn images_of_one_colour_fail_on_request() {
    let wide =
        "<!doctype html><style>body { margin: 0 } @media (max-width: 500px) { p, #plain { display: none } }</style>
        <p>text</p><div id=plain style='height:100px;background:lime'></div>";
    let blank = "<!doctype html><body style='background:lime'>";
    let site = Site::start(2, [("/", html(wide)), ("/blank", html(blank))]).await;
    let rig = Rig::start().await;
    let asked = |path: &str| CaptureRequest { fail_if_blank: Some(true), ..request(&site.url(path)) };
    let message = "All of the image has one colour, with which `fail_if_blank` fails.";
    for format in ["png", "jpeg", "webp"] {
        let blank = CaptureRequest { format: Some(format.into()), ..asked("/blank") };
        assert_eq!(failure(&rig, blank).await, message, "{format}");
        rig.capture(CaptureRequest { format: Some(format.into()), ..asked("/") }).await;
    }
    assert_eq!(rig.grab(&site.url("/blank")).await.colour(9, 9), "lime");
    let element = CaptureRequest { selector: Some("#plain".into()), ..asked("/") };
    assert_eq!(failure(&rig, element).await, message, "an element without content of its own");
    let size: BTreeMap<_, _> =
        [("width", 400), ("height", 300)].map(|(name, side)| (name.to_owned(), OptionValue::Integer(side))).into();
    let narrow = CaptureRequest { viewports: Some(vec![size]), ..asked("/") };
    assert_eq!(failure(&rig, narrow).await, message, "a further viewport");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn capture_waits_for_an_expression_in_the_world_of_the_page() {
    let page = |after_ms: u32| {
        html(format!(
            "<!doctype html><body style='margin:0;background:red'><p>The orders of this month</p><script>
            setTimeout(() => {{ globalThis.chart = {{ drawn: Promise.resolve(false) }} }}, 3000);
            setTimeout(() => {{
                chart.drawn = Promise.resolve(true);
                document.body.style.background = 'lime';
            }}, {after_ms})</script>"
        ))
    };
    let leaves =
        "<!doctype html><body style='background:red'><script>setTimeout(() => { location = '/next' }, 3000)</script>";
    let next = "<!doctype html><body style='background:lime'><script>ready = true</script>";
    let pages = [("/", page(9000)), ("/late", page(TOO_LATE_MS)), ("/leaves", html(leaves)), ("/next", html(next))];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    let asked = |path: &str, expression: &str| CaptureRequest {
        wait_for_expression: Some(expression.into()),
        ..request(&site.url(path))
    };
    assert_eq!(rig.capture(asked("/", "chart.drawn // at last")).await.colour(600, 400), "lime");
    assert_eq!(rig.grab(&site.url("/late")).await.colour(600, 400), "red", "without the option");
    assert_eq!(rig.capture(asked("/leaves", "globalThis.ready")).await.colour(600, 400), "lime", "another document");
    rig.capture(asked("/next", "(() => { window.calls = (window.calls ?? 0) + 1; return calls > 2 })()")).await;
    let late = "`wait_for_expression` did not become true in time.";
    for (expression, message) in
        [("false", late), ("1 +", "`wait_for_expression` failed: SyntaxError: Unexpected token ')'")]
    {
        assert_eq!(failure(&rig, asked("/next", expression)).await, message);
    }
    let thrown = format!("{late} The last time, it threw ReferenceError: missing is not defined.");
    let message = failure(&rig, asked("/next", "missing.value")).await;
    // On a busy machine, the time of the page may pass so slowly that what it threw is not known before the time limit.
    assert!([late, &thrown].contains(&&*message), "{message}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn captures_fail_on_requests_that_fail() {
    let site = Site::start(
        2,
        [
            ("/", html("<p>Orders</p><script>fetch('/api/orders?token=hidden').catch(() => {})</script>")),
            ("/api/orders", answer("503 Service Unavailable", "Content-Type: text/plain", "none")),
            ("/missing", html("<p>text<img src=/none>")),
            ("/frame", html("<p>text<iframe src=/missing></iframe>")),
            ("/moved", html("<p>text<img src='/to?/none'>")),
            ("/closed", html("<p>text<img src=/close>")),
            ("/close", Reply::Close),
            ("/gone", answer("410 Gone", "Content-Type: text/html", "<p>gone")),
            ("/leaves", html("<p>text<img src=/none><script>onload = () => { location = '/fine' }</script>")),
            ("/fine", html("<p>fine")),
            (
                "/aborts",
                html(
                    "<p>text<script>const abort = new AbortController();
                    fetch('/silent', { signal: abort.signal }).catch(() => {});
                    abort.abort()</script>",
                ),
            ),
            ("/silent", Reply::Silence),
            ("/chat", html("<p>text<script src='https://widget.intercom.io/widget/abc'></script>")),
        ],
    )
    .await;
    let rig = Rig::start().await;
    let asked = |path: &str, rules: &str| {
        let mut asked = request(&site.url(path));
        assert!(asked.set("fail_on_request", serde_json::from_str(rules).unwrap()), "{rules}");
        asked
    };
    let message = |path: &str, end: &str| {
        format!("The request of the page to \"{}\" {end}, with which `fail_on_request` fails.", site.url(path))
    };
    let missing = message("/none", "was answered with status 404");
    for (path, rules, expected) in [
        (
            "/",
            r#"[{"url": "*.js"}, {"url": "*/api/*", "status": "5xx"}]"#,
            message("/api/orders", "was answered with status 503"),
        ),
        ("/missing", r#"[{"url": "*/none", "status": "404"}]"#, missing.clone()),
        ("/frame", r#"[{"url": "*/none"}]"#, missing.clone()),
        ("/moved", r#"[{"url": "*/none", "status": "4xx"}]"#, missing),
        ("/closed", r#"[{"url": "*", "status": "failed"}]"#, message("/close", "failed")),
        ("/gone", r#"[{"url": "*"}]"#, message("/gone", "was answered with status 410")),
    ] {
        assert_eq!(failure(&rig, asked(path, rules)).await, expected, "{path}");
    }
    for (path, rules) in [
        ("/", r#"[{"url": "*/api/*", "status": "failed"}, {"url": "*/api/*", "status": "404"}, {"url": "*/api"}]"#),
        ("/leaves", r#"[{"url": "*"}]"#),
        ("/aborts", r#"[{"url": "*"}]"#),
    ] {
        rig.capture(asked(path, rules)).await;
    }
    let blocked = CaptureRequest { block_urls: Some(vec!["*/api/*".into()]), ..asked("/", r#"[{"url": "*"}]"#) };
    rig.capture(blocked).await;
    // What is on a list is refused by the proxy.
    let listed = CaptureRequest { block: Some(vec!["chats".into()]), ..asked("/chat", r#"[{"url": "*"}]"#) };
    let image = rig.capture(listed).await;
    assert_eq!(image.metadata.findings.blocked.map(|blocked| blocked.asked), Some(1));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn capture_waits_for_the_signal_of_the_page() {
    let page = |after_ms: u32, ready: &str| {
        html(format!(
            "<!doctype html><body style='margin:0;background:red'><p>The orders of this month</p><script>
            setTimeout(() => {{ document.body.style.background = 'lime'; {ready} }}, {after_ms})</script>"
        ))
    };
    let early = "<!doctype html><body style='background:lime'><p>text<script>
        document.dispatchEvent(new Event('grabReady'))</script>";
    let leaves = "<!doctype html><body style='background:red'><p>text<script>
        setTimeout(() => { location = '/early' }, 3000)</script>";
    // None of these is the signal.
    let never = "<!doctype html><p id=grabReady>text<script>dispatchEvent(new Event('grabready'))</script>";
    let throws = "<!doctype html><p>text<script>
        Object.defineProperty(window, 'grabReady', { get() { throw new Error('no') } })</script>";
    let site = Site::start(
        2,
        [
            ("/property", page(9000, "window.grabReady = true")),
            ("/window", page(9000, "dispatchEvent(new Event('grabReady'))")),
            ("/late", page(TOO_LATE_MS, "window.grabReady = true")),
            ("/document", page(9000, "document.dispatchEvent(new CustomEvent('grabReady', { bubbles: true }))")),
            ("/early", html(early)),
            ("/leaves", html(leaves)),
            ("/never", html(never)),
            ("/throws", html(throws)),
        ],
    )
    .await;
    let rig = Rig::start().await;
    let asked = |path: &str| CaptureRequest { wait_for_signal: Some(true), ..request(&site.url(path)) };
    for path in ["/property", "/window", "/document", "/early", "/leaves"] {
        assert_eq!(rig.capture(asked(path)).await.colour(600, 400), "lime", "{path}");
    }
    assert_eq!(rig.grab(&site.url("/late")).await.colour(600, 400), "red", "without the option");
    let message = "`wait_for_signal`: the page neither set `window.grabReady = true` nor dispatched the event `grabReady` in time.";
    for path in ["/never", "/throws"] {
        assert_eq!(failure(&rig, asked(path)).await, message, "{path}");
    }
    rig.chromium.shutdown().await;
}

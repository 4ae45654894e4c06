//! Ads and trackers are refused by filter lists, before a connection is made.

use std::sync::Arc;

use grabd_browser::FilterLists;
use grabd_domain::capture::CaptureRequest;
use grabd_domain::grabs::{BlockedRequests, Challenge, SettledBy};

use crate::rig::{Rig, request};
use crate::site::{Site, answer, html, svg};

/// Reads lists as at the start of the service.
fn lists(ads: &str, trackers: &str) -> Arc<FilterLists> {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [("ads.txt", ads), ("trackers.txt", trackers)] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let (lists, reports) = FilterLists::read(directory.path());
    assert!(reports.iter().all(|report| matches!(report.outcome, Some(Ok(_)))), "{reports:?}");
    Arc::new(lists)
}

fn blocking(url: &str, contents: &[&str]) -> CaptureRequest {
    let contents = contents.iter().map(|word| (*word).to_owned()).collect();
    CaptureRequest { block: Some(contents), ..request(url) }
}

#[tokio::test(flavor = "multi_thread")]
async fn listed_hosts_are_refused_and_counted() {
    let ads = Site::start(3, [("/ad.svg", svg("red"))]).await;
    let tracker = Site::start(4, [("/t.js", answer("200 OK", "", "document.body.style.background = 'red'"))]).await;
    // The tracker is loaded as a script that blocks the parser, so a delay would delay the load event.
    let page = format!(
        "<!doctype html><body style='margin:0;background:lime'><img src='{}' style='position:absolute;right:0;top:0'>
         <script src='{}'></script><p>Content of the page.",
        ads.url("/ad.svg"),
        tracker.url("/t.js"),
    );
    let site = Site::start(2, [("/", html(page))]).await;
    let lists = lists("||127.0.0.3^", "||127.0.0.4^");
    let rig = Rig::with(&[2, 3, 4], |options| options.lists = lists).await;
    let url = site.url("/");

    let plain = rig.grab(&url).await;
    assert_eq!((plain.colour(1230, 50), plain.colour(600, 600)), ("red", "red"));
    assert_eq!(plain.metadata.findings.blocked, None);
    assert_eq!((ads.all_hits(), tracker.all_hits()), (1, 1));

    let image = rig.capture(blocking(&url, &["ads"])).await;
    assert_eq!(
        (image.colour(1230, 50), ads.all_hits(), tracker.all_hits()),
        ("red", 1, 2),
        "only the tracker is loaded"
    );

    let image = rig.capture(blocking(&url, &["ads", "trackers"])).await;
    assert_eq!((image.colour(1230, 50), image.colour(600, 600)), ("lime", "lime"));
    assert_eq!((ads.all_hits(), tracker.all_hits()), (1, 2));
    let blocked = image.metadata.findings.blocked.unwrap();
    assert!(blocked.ads >= 1 && blocked.trackers >= 1 && blocked.guard == 0, "{blocked:?}");
    assert_eq!((image.metadata.blocked_requests, &*image.metadata.warnings), (0, &[][..]));
    let load_ms = image.metadata.timings.unwrap().load_ms.unwrap();
    assert!(load_ms < 1000, "the load event came after {load_ms} ms");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn main_documents_and_their_redirects_are_never_refused() {
    let landing = Site::start(4, [("/", html("<!doctype html><body style='background:lime'><p>x"))]).await;
    let click = Site::start(3, []).await;
    let site = Site::start(
        2,
        [
            ("/own", html("<!doctype html><body style='background:lime'><p>x<img src='/own.svg'>")),
            ("/own.svg", svg("lime")),
            ("/script", html("<script>location.href = '{query}'</script>")),
        ],
    )
    .await;
    let lists = lists("||127.0.0.2^\n||127.0.0.3^\n||127.0.0.4^", "||127.0.0.9^");
    let rig = Rig::with(&[2, 3, 4], |options| options.lists = lists).await;
    let own = rig.capture(blocking(&site.url("/own"), &["ads"])).await;
    assert_eq!((own.colour(600, 600), site.hits("/own.svg")), ("lime", 1));
    // Both the listed host in between and the listed host at the end are documents of the main frame.
    let through = click.url(&format!("/to?{}", landing.url("/")));
    for path in [site.url(&format!("/to?{through}")), site.url(&format!("/script?{through}"))] {
        let image = rig.capture(blocking(&path, &["ads"])).await;
        assert_eq!((image.colour(600, 600), image.metadata.final_url), ("lime", Some(landing.url("/"))), "{path}");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_are_blocked_by_their_url_and_requests_of_the_caller_are_counted() {
    let other = Site::start(3, [("/ads/frame", html("<body style='background:red'>")), ("/x.svg", svg("red"))]).await;
    let page = format!(
        "<!doctype html><body style='margin:0;background:lime'><p>Content of the page.
         <iframe src='{}' style='position:absolute;left:400px;top:200px;border:0'></iframe><img src='{}'>",
        other.url("/ads/frame"),
        other.url("/x.svg"),
    );
    let site = Site::start(2, [("/", html(page))]).await;
    let lists = lists("/ads/*$subdocument", "||127.0.0.9^");
    let rig = Rig::with(&[2, 3], |options| options.lists = lists).await;
    let asked = CaptureRequest { block_urls: Some(vec!["*/x.svg".to_owned()]), ..blocking(&site.url("/"), &["ads"]) };
    let image = rig.capture(asked).await;
    assert_eq!((other.hits("/ads/frame"), other.hits("/x.svg")), (0, 0));
    let blocked = BlockedRequests { ads: 1, asked: 1, ..BlockedRequests::default() };
    assert_eq!((image.metadata.findings.blocked, &*image.metadata.warnings), (Some(blocked), &[][..]));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn places_of_ads_are_hidden_and_the_page_moves_up() {
    // Each bar is 100 pixels high. The last is only added by a click, and is in an open shadow root.
    let page = "<!doctype html><body class=ads><style>body { margin: 0 } div, section, p { height: 100px; margin: 0 }
        .red { background: red } p { background: lime } #late { background: blue }</style>
        <div class='red top-banner'>Advertisement</div><p>Content</p>
        <section class=red data-ad-slot=1></section><p></p><div class=red id=sponsor style='display:block'></div><p></p>
        <div class='red kept'></div><button style='display:block;height:20px'>More</button><span></span><script>
        document.querySelector('button').onclick = () => {
          const root = document.querySelector('span').attachShadow({ mode: 'open' });
          root.innerHTML = '<div class=late-ad style=height:100px;background:red></div>' +
            '<div style=height:100px;background:blue></div>';
        };</script>";
    let site = Site::start(2, [("/", html(page))]).await;
    let ads = "##.ads\n##.top-banner\n##section[data-ad-slot]\n###sponsor\n##.late-ad\n##.kept\n##p:bad-pseudo(x)\n\
               127.0.0.2#@#.kept\n||127.0.0.9^";
    let lists = lists(ads, "||127.0.0.9^\n127.0.0.2##p");
    let rig = Rig::with(&[2], |options| options.lists = lists).await;
    let colours = |image: &crate::rig::DecodedImage| [50, 150, 250, 350, 470].map(|y| image.colour(600, y));
    let url = site.url("/");

    let plain = rig.grab(&url).await;
    assert_eq!(colours(&plain), ["red", "lime", "red", "lime", "red"]);
    let blocked = rig.capture(blocking(&url, &["ads"])).await;
    assert_eq!(colours(&blocked), ["lime", "lime", "lime", "red", "white"]);
    let clicked = CaptureRequest { click: Some(vec!["button".to_owned()]), ..blocking(&url, &["ads"]) };
    assert_eq!(colours(&rig.capture(clicked).await), ["lime", "lime", "lime", "red", "blue"]);
    let trackers = rig.capture(blocking(&url, &["trackers"])).await;
    assert_eq!(colours(&trackers)[..4], ["red", "red", "red", "red"]);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn places_of_ads_that_a_script_shows_again_stay_hidden() {
    let page = "<!doctype html><body style='margin:0'><div class=top-banner style='height:100px;background:red'></div>
        <p style='margin:0;height:100px;background:lime'>Content</p><script>const ad = document.querySelector('div');
        const show = () => { ad.style.setProperty('display', 'block', 'important'); requestAnimationFrame(show) };
        show()</script>";
    let site = Site::start(2, [("/", html(page))]).await;
    let lists = lists("##.top-banner", "||127.0.0.9^");
    let rig = Rig::with(&[2], |options| options.lists = lists).await;
    assert_eq!(rig.grab(&site.url("/")).await.colour(600, 50), "red");
    assert_eq!(rig.capture(blocking(&site.url("/"), &["ads"])).await.colour(600, 50), "lime");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_widgets_and_share_bars_are_left_out_without_lists_of_the_operator() {
    // Each bar is 100 pixels high. The first ones are added by the site's own copies of scripts.
    let page = "<!doctype html><style>body { margin: 0 } div { height: 100px; background: red } p { margin: 0; height: 100px;
        background: lime }</style><div id=intercom-container></div><p>Content</p><div class=addthis_toolbox></div><p></p>
        <div class=chat-of-our-own></div><script>setTimeout(() => {
          const late = document.createElement('div');
          late.className = 'crisp-client';
          document.body.prepend(late);
        }, 300)</script>";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let url = site.url("/");
    let colours = |image: &crate::rig::DecodedImage| [50, 150, 250, 350].map(|y| image.colour(600, y));
    assert_eq!(colours(&rig.grab(&url).await), ["red", "red", "lime", "red"]);
    let chats = rig.capture(blocking(&url, &["chats"])).await;
    assert_eq!(colours(&chats), ["lime", "red", "lime", "red"]);
    let both = rig.capture(blocking(&url, &["chats", "social"])).await;
    assert_eq!(colours(&both), ["lime", "lime", "red", "white"]);
    assert_eq!(both.metadata.findings.blocked, Some(BlockedRequests::default()));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn challenge_and_blank_are_reported() {
    let wall = "<!doctype html><title>x</title><div id=px-captcha></div><p>Press and hold.";
    let site = Site::start(
        2,
        [
            ("/wall", html(wall)),
            ("/marked", answer("403 Forbidden", "Content-Type: text/html\r\ncf-mitigated: challenge", "<p>No.")),
            ("/blank", html("<!doctype html><title>x</title>")),
            ("/page", html("<!doctype html><title>x</title><p>Content of the page.")),
        ],
    )
    .await;
    let rig = Rig::start().await;
    for (path, challenge) in [("/wall", Challenge::Perimeterx), ("/marked", Challenge::Cloudflare)] {
        let (_, metadata) = rig.fails(request(&site.url(path))).await;
        assert_eq!(metadata.findings.challenge, Some(challenge), "{path}");
        let allowed = CaptureRequest { allow_blocked: Some(true), ..request(&site.url(path)) };
        let findings = rig.capture(allowed).await.metadata.findings;
        assert_eq!((findings.challenge, findings.blank), (Some(challenge), Some(false)), "{path}");
    }
    for (path, blank) in [("/blank", true), ("/page", false)] {
        let findings = rig.grab(&site.url(path)).await.metadata.findings;
        assert_eq!((findings.blank, findings.challenge, findings.blocked), (Some(blank), None, None), "{path}");
    }
    rig.chromium.shutdown().await;
}

/// Documents may ask for a process of their own, whose requests the browser would report to another session.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_frames_that_ask_for_a_process_are_refused_and_awaited() {
    const FRAME: &str = "<p>Frame.<img src='/x.svg'><script>fetch('/x.svg').catch(() => {})</script>";
    const POLICIES: [&str; 3] =
        ["X-None: 1", "Origin-Agent-Cluster: ?1", "Document-Isolation-Policy: isolate-and-credentialless"];
    let document = |body: &str, policy: &str| answer("200 OK", &format!("Content-Type: text/html\r\n{policy}"), body);
    let rig = Rig::with(&[2, 3], |_| {}).await;
    for (of_page, of_frame) in POLICIES.iter().flat_map(|first| POLICIES.map(|second| (*first, second))) {
        let other = Site::start(3, [("/frame", document(FRAME, of_frame)), ("/x.svg", svg("red"))]).await;
        let page = format!("<!doctype html><p>Page.<iframe src='{}'></iframe>", other.url("/frame"));
        let site = Site::start(2, [("/", document(&page, of_page))]).await;
        let asked = CaptureRequest { block_urls: Some(vec!["*/x.svg".to_owned()]), ..request(&site.url("/")) };
        let image = rig.capture(asked).await;
        let seen = (other.hits("/frame"), other.hits("/x.svg"), image.metadata.settled_by);
        assert_eq!(seen, (1, 0, Some(SettledBy::Quiet)), "page: {of_page}, frame: {of_frame}");
    }
    rig.chromium.shutdown().await;
}

//! Pages that lead to an address that is not public. The canary on 127.0.0.3 must not receive a request.

use grabd_domain::grabs::FailureReason::SsrfDetected;

use crate::rig::Rig;
use crate::site::{Site, html, svg};

/// Ways for a document to navigate to a forbidden address. The query is the canary's URL.
const NAVIGATIONS: [(&str, &str); 4] = [
    ("/refresh", "<meta http-equiv=refresh content='0;url={query}'><p>x"),
    ("/script", "<script>location.replace('{query}')</script>"),
    ("/form", "<form method=post action='{query}'></form><script>document.forms[0].submit()</script>"),
    ("/frame", "<iframe srcdoc=\"<script>top.location.href='{query}'</script>\"></iframe>"),
];

/// A page with every usual kind of subresource, all requested from the canary.
const SUBRESOURCES: &str =
    "<!doctype html><body style='background:lime'><img src='{query}'><iframe src='{query}'></iframe>
    <link rel=stylesheet href='{query}'><script src='{query}'></script><script>fetch('{query}').catch(() => {});
    new WebSocket('{query}'.replace('http', 'ws'))</script>";

async fn start_sites() -> (Site, Site) {
    let pages = NAVIGATIONS.into_iter().chain([("/parts", SUBRESOURCES)]).map(|(path, body)| (path, html(body)));
    (Site::start(2, pages).await, Site::start(3, [("/", svg("red"))]).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn canary_is_never_requested() {
    let (site, canary) = start_sites().await;
    let rig = Rig::start().await;
    let target = canary.url("/");
    let paths = NAVIGATIONS.map(|(path, _)| path).into_iter().chain(["/to"]);
    for address in paths.map(|path| site.url(&format!("{path}?{target}"))).chain([target.clone()]) {
        let metadata = rig.fails_with(&address, SsrfDetected, "not public").await;
        assert!(metadata.blocked_requests >= 1, "{address}");
        assert_eq!(metadata.final_url, None, "a refused address must not be disclosed");
    }
    for host in ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "[::ffff:127.0.0.1]"] {
        rig.fails_with(&site.url(&format!("/to?http://{host}:8080/")), SsrfDetected, "not public").await;
    }
    let parts = rig.grab(&site.url(&format!("/parts?{target}"))).await;
    assert_eq!(parts.colour(900, 600), "lime");
    assert!(parts.metadata.blocked_requests >= 5, "{:?}", parts.metadata);
    rig.chromium.shutdown().await;
    assert_eq!(canary.all_hits(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn canary_is_requested_without_the_guard() {
    let (site, canary) = start_sites().await;
    let rig = Rig::with(&[2, 3], |_| {}).await;
    let target = canary.url("/");
    for path in NAVIGATIONS.map(|(path, _)| path).into_iter().chain(["/to"]) {
        let before = canary.all_hits();
        let image = rig.grab(&site.url(&format!("{path}?{target}"))).await;
        assert_eq!(image.metadata.final_url.as_deref(), Some(target.as_str()), "{path}");
        assert!(canary.all_hits() > before, "{path}");
    }
    let before = canary.all_hits();
    let parts = rig.grab(&site.url(&format!("/parts?{target}"))).await;
    assert_eq!(parts.metadata.blocked_requests, 0);
    assert!(canary.all_hits() >= before + 5);
    rig.chromium.shutdown().await;
}

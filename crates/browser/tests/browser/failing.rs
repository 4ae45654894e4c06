//! Pages that cannot be captured. They fail with a message, and an error page is never returned as an image.

use grabd_domain::grabs::FailureReason::{RenderBlocked, RenderFailed};

use crate::rig::Rig;
use crate::site::{Reply, Site, answer, html};

#[tokio::test(flavor = "multi_thread")]
async fn page_without_a_document_fails() {
    let pages = [
        ("/empty", answer("204 No Content", "", "")),
        ("/reset", answer("205 Reset Content", "", "")),
        (
            "/attached",
            answer("200 OK", "Content-Type: text/html\r\nContent-Disposition: attachment; filename=a.html", "<p>x"),
        ),
        ("/archive", answer("200 OK", "Content-Type: application/zip", "PK")),
        ("/close", Reply::Close),
        ("/loop", answer("302 Found", "Location: /loop", "")),
        ("/off", answer("302 Found", "Location: file:///etc/passwd", "")),
        ("/blank", html("<script>location.replace('about:blank')</script>")),
        ("/later", html("<script>location.replace('/close')</script>")),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    for (path, part) in [
        ("/empty", "status 204"),
        ("/reset", "status 205"),
        ("/attached", "download"),
        ("/archive", "download"),
        ("/close", "without an answer"),
        ("/loop", "circle"),
        ("/off", "not on the web"),
        ("/blank", "not on the web"),
        ("/later", "without an answer"),
    ] {
        rig.fails_with(&site.url(path), RenderFailed, part).await;
    }
    // TLS with a server that does not support it, and a closed port.
    let tls = site.url("/").replace("http:", "https:");
    rig.fails_with(&tls, RenderFailed, "broke the connection").await;
    let closed = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    rig.fails_with(&format!("http://{address}/"), RenderFailed, "refused the connection").await;
    rig.fails_with(&format!("https://{address}/"), RenderFailed, "refused the connection").await;
    rig.fails_with("http://no-such-name.test/", RenderFailed, "host name").await;

    // The browser still works.
    let metadata = rig.grab(&site.url("/no-such-page")).await.metadata;
    assert_eq!(metadata.http_status, Some(404));
    assert!(rig.chromium.health().restarts.is_empty());
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocking_site_fails_with_render_blocked() {
    let page =
        |status: &str, headers: &str| answer(status, &format!("Content-Type: text/html\r\n{headers}X: y"), "<p>no");
    let pages = [
        ("/401", page("401 Unauthorized", "")),
        ("/basic", page("401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n")),
        ("/403", page("403 Forbidden", "")),
        ("/429", page("429 Too Many Requests", "")),
        ("/503", page("503 Service Unavailable", "")),
        ("/challenge", page("200 OK", "CF-Mitigated: challenge\r\n")),
        ("/moment", html("<title>Just a moment...</title><script>window._cf_chl_opt = {}</script>")),
        ("/press", html("<div id=px-captcha style='height:9px'></div>")),
        ("/human", html("<p>Are you a person?</p><div class=h-captcha></div>")),
        // These are similar, but not challenges.
        ("/article", html("<title>Just a moment in time</title><p>x")),
        ("/login", html("<form><input name=user><input type=password><div class=h-captcha></div></form>")),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    for (path, status) in [("/401", 401), ("/basic", 401), ("/403", 403), ("/429", 429), ("/503", 503)] {
        let metadata = rig.fails_with(&site.url(path), RenderBlocked, &status.to_string()).await;
        assert_eq!((metadata.http_status, metadata.final_url), (Some(status), Some(site.url(path))));
    }
    for path in ["/challenge", "/moment", "/press", "/human"] {
        rig.fails_with(&site.url(path), RenderBlocked, "challenge").await;
    }
    for path in ["/article", "/login"] {
        assert_eq!(rig.grab(&site.url(path)).await.metadata.http_status, Some(200));
    }
    rig.chromium.shutdown().await;
}

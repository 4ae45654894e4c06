//! Sites that ask for no images, and whom their owners can write to.

use anyhow::Result;
use grabd_domain::credits::Balance;
use grabd_engine::clock::Clock;
use grabd_tests::harness::TestApp;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn site_that_opts_out_is_not_captured_and_nothing_is_charged() -> Result<()> {
    let app = TestApp::start(9, &[("abuse.respect_opt_out", "true")]).await?;
    // A redirect leads to such a page as well.
    let redirect = "/redirect?to=/robots-tag/noarchive";
    for path in ["/robots-tag/noimageindex", "/robots-tag/googlebot:%20all,%20grabd:%20none", redirect] {
        let refused = app.create_refused(json!({ "url": app.site.url(path) })).await?;
        assert_eq!(refused.summary(), (422, "render_blocked", "target"));
        assert!(refused.message.contains("X-Robots-Tag"), "{refused:?}");
    }
    let (status, grab) = app.create(json!({ "url": app.site.url("/robots-tag/noindex,%20nofollow") })).await?;
    assert_eq!(status, 200, "{grab}");
    // Such a document is not shown in a frame either.
    let frame = format!("<p>Content.<iframe src='{}'></iframe>", app.site.url("/robots-tag/noarchive"));
    let (status, grab) = app.create(json!({ "html": frame, "base_url": app.site.url("/") })).await?;
    assert_eq!((status, &grab["warnings"]), (200, &json!(["documents_denied:1"])), "{grab}");
    let balance = Balance::of(&app.service.store().credits().lots(app.team.team).await?, Clock::system().now());
    assert_eq!((balance.prepaid, balance.held), (7, 0));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn all_pages_link_to_the_contact_for_owners_of_sites() -> Result<()> {
    let page = async |app: &TestApp, path: &str| -> Result<String> {
        let request = app.client.get(format!("{}{path}", app.service.public_url())).header("accept", "text/html");
        Ok(request.send().await?.text().await?)
    };
    let app = TestApp::start_without_browser(0, &[("abuse.contact", "abuse@example.com")]).await?;
    for path in ["/", "/sign-in", "/docs", "/nowhere"] {
        let html = page(&app, path).await?;
        assert!(html.contains("<a href=\"mailto:abuse@example.com\">Report abuse</a>"), "{path}: {html}");
    }
    app.finish().await?;
    let app = TestApp::start_without_browser(0, &[]).await?;
    assert!(!page(&app, "/").await?.contains("Report abuse"));
    app.finish().await
}

//! Rules for the domains of captured pages.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Result;
use grabd_domain::credits::Balance;
use grabd_domain::domains::{Domain, DomainRule};
use grabd_engine::clock::Clock;
use grabd_tests::dns::Dns;
use grabd_tests::harness::TestApp;
use serde_json::{Value, json};

/// Upper limit of every wait.
const LIMIT: Duration = Duration::from_secs(10);

async fn create(app: &TestApp, url: &str, key: &str) -> Result<(u16, Value)> {
    let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(key).json(&json!({ "url": url }));
    let response = request.send().await?;
    Ok((response.status().as_u16(), response.json().await?))
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_domains_are_not_captured_and_redirects_to_them_are_not_charged() -> Result<()> {
    let dns = Dns::start(Ipv4Addr::new(127, 0, 0, 2)).await?;
    let settings = [("egress.dns", &*dns.address.to_string()), ("abuse.deny_domains", "denied.example.com")];
    let app = TestApp::start(9, &settings).await?;
    let port = app.site.url("/").rsplit(':').next().unwrap_or_default().trim_end_matches('/').to_owned();
    let of = |host: &str, path: &str| format!("http://{host}:{port}{path}");
    for host in ["denied.example.com", "www.denied.example.com", "DENIED.example.com."] {
        for key in [app.live(), app.test()] {
            let (status, body) = create(&app, &of(host, "/tiny"), key).await?;
            assert_eq!((status, &body["error"]["code"]), (400, &json!("bad_request")), "{host}: {body}");
            assert!(body["error"]["message"].as_str().is_some_and(|text| text.contains("`url`")), "{body}");
        }
    }
    let redirect = of("good.example.com", &format!("/redirect?to={}", of("denied.example.com", "/tiny")));
    let (status, body) = create(&app, &redirect, app.live()).await?;
    assert_eq!((status, &body["error"]["code"]), (422, &json!("render_blocked")), "{body}");
    let balance = Balance::of(&app.service.store().credits().lots(app.team.team).await?, Clock::system().now());
    assert_eq!((balance.prepaid, balance.held), (9, 0));
    assert_eq!(create(&app, &of("good.example.com", "/tiny"), app.live()).await?.0, 200);

    // A rule that a command stores applies within a second.
    let domain = Domain::parse("example.com")?;
    app.service.store().operator().set_domain_rule(domain, DomainRule::Deny, Clock::system().now()).await?;
    let denied = async {
        while create(&app, &of("good.example.com", "/tiny"), app.test()).await?.0 != 400 {}
        anyhow::Ok(())
    };
    tokio::time::timeout(LIMIT, denied).await??;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_documents_are_not_requested_in_frames_scripts_or_redirects() -> Result<()> {
    let dns = Dns::start(Ipv4Addr::new(127, 0, 0, 2)).await?;
    let settings = [("egress.dns", &*dns.address.to_string()), ("abuse.deny_domains", "denied.example.com")];
    let app = TestApp::start(9, &settings).await?;
    let port = app.site.url("/").rsplit(':').next().unwrap_or_default().trim_end_matches('/').to_owned();
    let of = |host: &str, path: &str| format!("http://{host}:{port}{path}");
    // The site counts by path, and nothing else requests this one.
    let denied = of("www.denied.example.com", "/robots-tag/all");
    let good = of("good.example.com", "/tiny");
    let capture = async |body: Value| -> Result<(u16, Value)> { app.create(body).await };

    let frame = format!("<p>Content.<iframe src='{denied}'></iframe>");
    let redirected = of("good.example.com", &format!("/redirect?to={denied}"));
    let through = format!("<p>Content.<iframe src='{redirected}'></iframe>");
    let script =
        format!("document.body.append(Object.assign(document.createElement('iframe'), {{ src: '{denied}' }}))");
    for (what, body) in [
        ("html", json!({ "html": frame, "base_url": good })),
        ("html with a redirect", json!({ "html": through, "base_url": good })),
        ("script", json!({ "url": good, "script": script })),
    ] {
        let (status, grab) = capture(body).await?;
        assert_eq!(status, 200, "{what}: {grab}");
        assert_eq!(grab["warnings"], json!(["documents_denied:1"]), "{what}: {grab}");
    }
    let leads_there = json!({ "html": format!("<p>x<script>location.href = '{denied}'</script>"), "base_url": good });
    for body in [leads_there, json!({ "url": redirected })] {
        let (status, error) = capture(body).await?;
        assert_eq!((status, &error["error"]["code"]), (422, &json!("render_blocked")), "{error}");
        assert!(error["error"]["message"].as_str().is_some_and(|text| text.contains("domain")), "{error}");
    }
    assert_eq!(app.site.hits("/robots-tag/all"), 0, "a denied document was requested");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_allowed_documents_are_requested_and_rules_of_operators_reach_the_next_capture() -> Result<()> {
    let dns = Dns::start(Ipv4Addr::new(127, 0, 0, 2)).await?;
    let app = TestApp::start(9, &[("egress.dns", &*dns.address.to_string())]).await?;
    let port = app.site.url("/").rsplit(':').next().unwrap_or_default().trim_end_matches('/').to_owned();
    let of = |host: &str, path: &str| format!("http://{host}:{port}{path}");
    let (good, other) = (of("www.example.com", "/tiny"), of("www.example.org", "/robots-tag/all"));
    let body = json!({ "html": format!("<p>Content.<iframe src='{other}'></iframe>"), "base_url": good });
    let (status, grab) = app.create(body.clone()).await?;
    assert_eq!((status, &grab["warnings"]), (200, &json!([])), "{grab}");
    assert_eq!(app.site.hits("/robots-tag/all"), 1);

    let domain = Domain::parse("example.com")?;
    app.service.store().operator().set_domain_rule(domain, DomainRule::Allow, Clock::system().now()).await?;
    let refused = async {
        while create(&app, &other, app.test()).await?.0 != 400 {}
        anyhow::Ok(())
    };
    tokio::time::timeout(LIMIT, refused).await??;
    let (status, grab) = app.create(body).await?;
    assert_eq!((status, &grab["warnings"]), (200, &json!(["documents_denied:1"])), "{grab}");
    assert_eq!(app.site.hits("/robots-tag/all"), 1);
    app.finish().await
}

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
    let balance = Balance::of(&app.service.store().lots(app.team.team).await?, Clock::system().now());
    assert_eq!((balance.prepaid, balance.held), (9, 0));
    assert_eq!(create(&app, &of("good.example.com", "/tiny"), app.live()).await?.0, 200);

    // A rule that a command stores applies within a second.
    let domain = Domain::parse("example.com")?;
    app.service.store().set_domain_rule(domain, DomainRule::Deny, Clock::system().now()).await?;
    let denied = async {
        while create(&app, &of("good.example.com", "/tiny"), app.test()).await?.0 != 400 {}
        anyhow::Ok(())
    };
    tokio::time::timeout(LIMIT, denied).await??;
    app.finish().await
}

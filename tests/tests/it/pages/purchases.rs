//! What people see before they buy.

use anyhow::{Context, Result};
use grabd_tests::mail_server::{MailServer, TlsMode};
use grabd_tests::stripe::{SECRET_KEY, WEBHOOK_SECRET};

use super::billing::BillingApp;
use super::mail::start_app_with_mail;
use super::team::team_of;
use super::verify_email::use_link;
use super::visitor::Visitor;

#[tokio::test(flavor = "multi_thread")]
async fn unverified_user_sees_why_they_cannot_buy_yet() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let settings = [
        ("billing.stripe_secret_key", SECRET_KEY),
        ("billing.stripe_webhook_secret", WEBHOOK_SECRET),
        ("service.support", "help@example.com"),
        ("service.terms", "https://example.com/terms"),
        ("service.privacy", "https://example.com/privacy"),
    ];
    let app = start_app_with_mail(&server, "", &settings).await?;
    let mut ada = Visitor::with_sign_up(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let page = ada.get(&format!("/teams/{team}/billing")).await?;
    let buttons = page.body.matches("aria-describedby=\"offer-").count();
    assert_eq!((buttons, page.body.matches("buy-reason\" disabled>Buy for $").count()), (3, 3), "{}", page.body);
    assert!(page.body.contains("id=\"buy-reason\">Verify your e-mail address"), "{}", page.body);
    let form_token = page.hidden_field("form_token")?;
    let form = [("form_token", &*form_token), ("package", "25k")];
    assert_eq!(ada.post(&format!("/teams/{team}/billing/checkout"), &form).await?.status, 403);
    // The annual plan has no button: support starts it. The terms are linked where people buy.
    assert!(page.body.contains("Annual plan: 25,000 credits"), "{}", page.body);
    for link in ["mailto:help@example.com", "https://example.com/terms", "https://example.com/privacy"] {
        assert!(page.body.matches(&format!("href=\"{link}\"")).count() >= 2, "{link}: {}", page.body);
    }
    // Nobody has captured anything, so there is no forecast.
    assert!(!page.body.contains("Lasts about"));

    let link = server.wait_for(0).await?.link()?;
    let link = link.strip_prefix(app.service.public_url()).context("a link of this service")?;
    assert_eq!(use_link(&mut ada, link, &[]).await?.status, 303);
    let page = ada.get(&format!("/teams/{team}/billing")).await?;
    assert!(!page.body.contains("buy-reason") && !page.body.contains("disabled>"), "{}", page.body);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_lead_to_the_packages() -> Result<()> {
    let billing_app = BillingApp::open().await?;
    let app = &billing_app.app;
    let mut ada = Visitor::new(app);
    let start = ada.get("/").await?.body;
    assert_eq!(start.matches("href=\"/sign-up?next=%2Fbilling\">Get ").count(), 3, "{start}");
    assert_eq!(ada.get("/billing").await?.location(), "/sign-in?next=%2Fbilling");
    let mut ada = Visitor::with_account(app, "ada@example.com").await?;
    let team = team_of(app, "ada@example.com", 0).await?;
    let start = ada.get("/").await?.body;
    assert_eq!(start.matches("href=\"/billing\">Get ").count(), 3, "{start}");
    assert_eq!(ada.get("/billing").await?.location(), format!("/teams/{team}/billing#buy"));
    billing_app.app.finish().await
}

//! Starting a purchase: requests to Stripe, and the handling of its responses.

use std::time::Instant;

use anyhow::Result;
use grabd_domain::Fault;
use grabd_domain::faults::Code;
use grabd_engine::billing::{can_buy, packages, start_checkout};
use grabd_tests::harness::TestApp;
use grabd_tests::stripe::{Reply, SECRET_KEY};

use super::BillingTest;

#[tokio::test(flavor = "multi_thread")]
async fn checkout_creates_a_session_with_the_listed_price() -> Result<()> {
    let billing = BillingTest::start().await?;
    assert!(can_buy(billing.core()));
    for package in packages(billing.core()) {
        let url = billing.buy(&package.name).await.expect("a session");
        assert!(url.starts_with("https://checkout.stripe.com/c/pay/cs_test_") && url.ends_with("#fid"), "{url}");
        let requests = billing.stripe.take_requests();
        let [request] = &requests[..] else { panic!("{requests:?}") };
        assert_eq!(request.authorization, format!("Bearer {SECRET_KEY}"));
        assert_eq!(request.version, "2024-11-20.acacia");
        let team = billing.app.team.team.to_string();
        let (credits, cents) = (package.credits.to_string(), package.price_cents.to_string());
        for (name, value) in [
            ("mode", "payment"),
            ("client_reference_id", &team),
            ("customer_email", "ann@example.com"),
            ("line_items[0][price_data][currency]", "usd"),
            ("line_items[0][price_data][unit_amount]", &cents),
            ("line_items[0][quantity]", "1"),
            ("adaptive_pricing[enabled]", "false"),
            ("metadata[team]", &team),
            ("metadata[package]", &package.name),
            ("metadata[credits]", &credits),
            ("metadata[price_cents]", &cents),
        ] {
            assert_eq!(request.form.get(name).map(String::as_str), Some(value), "{name}");
        }
    }
    for unknown in ["", "1M", "25K", "25k "] {
        assert_eq!(billing.buy(unknown).await, Err(Code::BadRequest), "{unknown:?}");
    }
    assert_eq!((billing.stripe.take_requests().len(), billing.stripe.sessions().len()), (0, 3));
    billing.app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn checkout_retries_once_and_creates_one_session() -> Result<()> {
    let billing = BillingTest::start().await?;
    for (replies, attempts, succeeds) in [
        (vec![Reply::Error(500)], 2, true),
        (vec![Reply::Error(500), Reply::Error(503)], 2, false),
        (vec![Reply::Error(400)], 1, false),
        (vec![Reply::Error(401)], 1, false),
        (vec![Reply::Error(402)], 1, false),
        (vec![Reply::Error(429)], 1, false),
        (vec![Reply::Malformed], 1, false),
        (vec![Reply::NoResponse], 2, true),
    ] {
        let before = billing.stripe.sessions().len();
        billing.stripe.reply_with(&replies);
        let began = Instant::now();
        let outcome = billing.buy("25k").await;
        assert!(began.elapsed().as_secs() < 15, "{replies:?}");
        assert_eq!(outcome.as_ref().err(), (!succeeds).then_some(&Code::InternalError), "{replies:?}");
        let requests = billing.stripe.take_requests();
        assert_eq!(requests.len(), attempts, "{replies:?}");
        assert!(requests.iter().all(|request| request.idempotency_key == requests[0].idempotency_key));
        assert_eq!(billing.stripe.sessions().len() - before, usize::from(succeeds), "{replies:?}");
    }
    let BillingTest { app, stripe } = billing;
    drop(stripe);
    let (team, back) = (app.team.team, "https://grabs.example.com/billing");
    let unreachable = start_checkout(app.service.core(), team, "ann@example.com", "25k", back, back).await;
    assert_eq!(unreachable.map_err(grabd_engine::Error::into_fault), Err(Fault::InternalError));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn checkout_is_disabled_without_stripe_keys() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let core = app.service.core();
    assert!(!can_buy(core) && packages(core).len() == 3);
    let (team, back) = (app.team.team, "https://grabs.example.com/billing");
    let refused = start_checkout(core, team, "ann@example.com", "25k", back, back)
        .await
        .map_err(|error| error.into_fault().code());
    assert_eq!(refused, Err(Code::BadRequest));
    let response = app.client.post(format!("{}/billing/stripe", app.base())).body("{}").send().await?;
    assert_eq!(response.status(), 404);
    app.finish().await
}

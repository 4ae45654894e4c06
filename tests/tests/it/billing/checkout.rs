//! A purchase begins: what Stripe is asked, and what is made of its answers.

use std::time::Instant;

use anyhow::Result;
use grabd_domain::Fault;
use grabd_domain::faults::Code;
use grabd_engine::billing::{can_buy, packages, start_checkout};
use grabd_tests::harness::Harness;
use grabd_tests::stripe::{Reply, SECRET_KEY};

use super::House;

#[tokio::test(flavor = "multi_thread")]
async fn the_price_is_ours_and_the_session_stripes() -> Result<()> {
    let house = House::start().await?;
    assert!(can_buy(house.core()));
    for package in packages(house.core()) {
        let url = house.buy(&package.name).await.expect("a session");
        assert!(url.starts_with("https://checkout.stripe.com/c/pay/cs_test_") && url.ends_with("#fid"), "{url}");
        let requests = house.stripe.take_requests();
        let [request] = &requests[..] else { panic!("{requests:?}") };
        assert_eq!(request.authorization, format!("Bearer {SECRET_KEY}"));
        assert_eq!(request.version, "2024-11-20.acacia");
        let team = house.harness.team.team.to_string();
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
        assert_eq!(house.buy(unknown).await, Err(Code::BadRequest), "{unknown:?}");
    }
    assert_eq!((house.stripe.take_requests().len(), house.stripe.sessions().len()), (0, 3));
    house.harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stripe_does_not_answer_is_asked_once_more_and_makes_one_session() -> Result<()> {
    let house = House::start().await?;
    for (replies, asked, begun) in [
        (vec![Reply::Error(500)], 2, true),
        (vec![Reply::Error(500), Reply::Error(503)], 2, false),
        (vec![Reply::Error(400)], 1, false),
        (vec![Reply::Error(401)], 1, false),
        (vec![Reply::Error(402)], 1, false),
        (vec![Reply::Error(429)], 1, false),
        (vec![Reply::Nonsense], 1, false),
        (vec![Reply::Silence], 2, true),
    ] {
        let before = house.stripe.sessions().len();
        house.stripe.replies(&replies);
        let began = Instant::now();
        let outcome = house.buy("25k").await;
        assert!(began.elapsed().as_secs() < 15, "{replies:?}");
        assert_eq!(outcome.as_ref().err(), (!begun).then_some(&Code::InternalError), "{replies:?}");
        let requests = house.stripe.take_requests();
        assert_eq!(requests.len(), asked, "{replies:?}");
        assert!(requests.iter().all(|request| request.idempotency_key == requests[0].idempotency_key));
        assert_eq!(house.stripe.sessions().len() - before, usize::from(begun), "{replies:?}");
    }
    let House { harness, stripe } = house;
    drop(stripe);
    let (team, back) = (harness.team.team, "https://grabs.example.com/billing");
    let nobody = start_checkout(harness.service.core(), team, "ann@example.com", "25k", back, back).await;
    assert_eq!(nobody, Err(Fault::InternalError));
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_keys_nothing_is_sold() -> Result<()> {
    let harness = Harness::start(0, &[]).await?;
    let core = harness.service.core();
    assert!(!can_buy(core) && packages(core).len() == 3);
    let (team, back) = (harness.team.team, "https://grabs.example.com/billing");
    let refused = start_checkout(core, team, "ann@example.com", "25k", back, back).await.map_err(|fault| fault.code());
    assert_eq!(refused, Err(Code::BadRequest));
    let told = harness.client.post(format!("{}/billing/stripe", harness.base())).body("{}").send().await?;
    assert_eq!(told.status(), 404);
    harness.finish().await
}

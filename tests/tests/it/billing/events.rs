//! Incoming events: only recent events with a valid signature count, and only if they match the purchase.

use std::time::Duration;

use anyhow::Result;
use grabd_domain::credits::EntryKind;
use grabd_tests::stripe::{WEBHOOK_SECRET, completed, disputed, event, hmac, refunded, signature};
use serde_json::{Value, json};

use super::{BillingTest, now};

const COMPLETED: &str = "checkout.session.completed";

#[tokio::test(flavor = "multi_thread")]
async fn events_without_a_recent_valid_signature_are_refused() -> Result<()> {
    let billing =
        BillingTest::start_with(&[("billing.stripe_webhook_secret", "whsec_the_next,whsec_of_the_stand_in")]).await?;
    let body = event(COMPLETED, &completed(&billing.session("25k").await?, true));
    let minutes = |count: u64| Duration::from_secs(60 * count);
    let signed = |at| signature(WEBHOOK_SECRET, at, &body);
    let valid = signed(now());
    let seconds = now().as_ms() / 1000;
    let invalid = [
        None,
        Some(String::new()),
        Some(signature("whsec_of_another", now(), &body)),
        Some(signature("", now(), &body)),
        Some(signed(now() - minutes(6))),
        Some(signed(now() + minutes(6))),
        Some(signature(WEBHOOK_SECRET, now(), &format!("{body} "))),
        Some(format!("t={seconds},v0={}", hmac(WEBHOOK_SECRET, seconds, &body))),
        Some(format!("t={},v1={}", seconds + 1, hmac(WEBHOOK_SECRET, seconds, &body))),
        Some(hmac(WEBHOOK_SECRET, seconds, &body)),
    ];
    for header in &invalid {
        let (status, answer) = billing.send(header.as_deref(), body.clone()).await?;
        let answer: Value = serde_json::from_str(&answer)?;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("bad_request")), "{header:?}");
    }
    let twice = billing.app.client.post(format!("{}/billing/stripe", billing.app.base()));
    let twice = twice.header("stripe-signature", &valid).header("stripe-signature", &valid).body(body.clone());
    assert_eq!(twice.send().await?.status(), 400);
    // Correctly signed, but too large or not an event.
    for body in [format!("{body}{}", " ".repeat(64 << 10)), "{}".to_owned(), "[".to_owned()] {
        let (status, answer) = billing.send(Some(&signature(WEBHOOK_SECRET, now(), &body)), body).await?;
        assert_eq!(status, 400, "{answer}");
    }
    let get = billing.app.client.get(format!("{}/billing/stripe", billing.app.base())).send().await?;
    assert_eq!((get.status().as_u16(), get.headers()["allow"].to_str()?), (405, "POST, OPTIONS"));
    assert_eq!(billing.entries(EntryKind::Grant).await?, []);
    // Oversized bodies are rejected before they are counted.
    assert_eq!(billing.event_count("refused").await?, u32::try_from(invalid.len())? + 1 + 2);

    // During a secret rotation, Stripe signs with both secrets, and one of them matches.
    let two = format!("{valid},v1={}", hmac("whsec_not_yet_known", seconds, &body));
    assert_eq!(billing.send(Some(&two), body.clone()).await?, (200, "granted".to_owned()));
    let next = signature("whsec_the_next", now() - minutes(4), &body);
    assert_eq!(billing.send(Some(&next), body.clone()).await?, (200, "repeated".to_owned()));
    billing.app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn inconsistent_events_grant_nothing() -> Result<()> {
    let billing = BillingTest::start().await?;
    let paid = completed(&billing.session("25k").await?, true);
    for (pointer, value, expected) in [
        ("/amount_total", json!(4_999), "unexpected"),
        ("/amount_total", json!(500_000), "unexpected"),
        ("/currency", json!("idr"), "unexpected"),
        ("/metadata/credits", json!("lots"), "unexpected"),
        ("/client_reference_id", json!("01993e1c-7b1a-7000-8000-0123456789ab"), "unexpected"),
        ("/metadata", json!({ "cart": "7" }), "foreign"),
        ("/payment_status", json!("no_payment_required"), "unpaid"),
    ] {
        let mut session = paid.clone();
        *session.pointer_mut(pointer).expect("a member") = value.clone();
        assert_eq!(billing.send_event(COMPLETED, &session).await?, expected, "{pointer} {value}");
    }
    let mut session = paid.clone();
    session["client_reference_id"] = json!("01993e1c-7b1a-7000-8000-0123456789ab");
    session["metadata"]["team"] = session["client_reference_id"].clone();
    assert_eq!(billing.send_event(COMPLETED, &session).await?, "unknown_team");
    for kind in ["checkout.session.expired", "checkout.session.async_payment_failed", "payment_intent.succeeded"] {
        assert_eq!(billing.send_event(kind, &paid).await?, "ignored");
    }
    assert_eq!(billing.entries(EntryKind::Grant).await?, []);
    assert_eq!(billing.send_event(COMPLETED, &paid).await?, "granted");
    // The same payment cannot grant other credits.
    let mut session = paid.clone();
    session["metadata"]["credits"] = json!("25001");
    assert_eq!(billing.send_event(COMPLETED, &session).await?, "unexpected");
    assert_eq!(billing.balance().await?.prepaid, 25_000);
    assert_eq!((billing.event_count("unexpected").await?, billing.event_count("unknown_team").await?), (6, 1));
    billing.app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn refund_removes_unspent_credits() -> Result<()> {
    let billing = BillingTest::start().await?;
    let (first, second) = (billing.session("25k").await?, billing.session("50k").await?);
    for session in [&first, &second] {
        assert_eq!(billing.send_event(COMPLETED, &completed(session, true)).await?, "granted");
    }
    billing.app.capture("/tiny", json!({})).await?;
    // Stripe reports the total refunded so far, and repeats events.
    for (cents, left) in [(1_000, 69_999), (1_000, 69_999), (2_500, 62_499), (5_000, 50_000), (5_000, 50_000)] {
        assert_eq!(billing.send_event("charge.refunded", &refunded(&first, cents)).await?, "refunded");
        assert_eq!(billing.balance().await?.prepaid, left, "{cents}");
    }
    let taken: Vec<i32> = billing.entries(EntryKind::Adjust).await?.iter().map(|entry| entry.amount).collect();
    assert_eq!(taken, [-12_499, -7_500, -5_000]);
    // A refunded purchase is not granted again.
    assert_eq!(billing.send_event(COMPLETED, &completed(&first, true)).await?, "repeated");
    assert_eq!(billing.balance().await?.prepaid, 50_000);
    billing.app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn refund_before_its_payment_grants_only_the_rest() -> Result<()> {
    let billing = BillingTest::start().await?;
    let session = billing.session("25k").await?;
    for cents in [1_000, 2_500, 1_000] {
        assert_eq!(billing.send_event("charge.refunded", &refunded(&session, cents)).await?, "remembered");
    }
    assert_eq!(billing.send_event(COMPLETED, &completed(&session, true)).await?, "granted");
    assert_eq!(billing.balance().await?.prepaid, 12_500);
    assert_eq!(billing.send_event("charge.refunded", &refunded(&session, 5_000)).await?, "refunded");
    assert_eq!(billing.send_event(COMPLETED, &completed(&session, true)).await?, "repeated");
    assert_eq!(billing.balance().await?.prepaid, 0);
    assert_eq!(billing.app.service.store().credits().verify_ledger().await?, []);
    billing.app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn dispute_takes_credits_until_it_is_won() -> Result<()> {
    let billing = BillingTest::start().await?;
    let (first, second) = (billing.session("25k").await?, billing.session("25k").await?);
    let (created, closed) = ("charge.dispute.created", "charge.dispute.closed");
    assert_eq!(billing.send_event(COMPLETED, &completed(&first, true)).await?, "granted");
    for _ in 0..2 {
        assert_eq!(billing.send_event(created, &disputed(&first, "needs_response")).await?, "disputed");
        assert_eq!(billing.balance().await?.prepaid, 0);
    }
    for _ in 0..2 {
        assert_eq!(billing.send_event(closed, &disputed(&first, "won")).await?, "dispute_won");
        assert_eq!(billing.balance().await?.prepaid, 25_000);
    }
    // The other order, and lost.
    assert_eq!(billing.send_event(closed, &disputed(&second, "lost")).await?, "remembered");
    assert_eq!(billing.send_event(COMPLETED, &completed(&second, true)).await?, "granted");
    assert_eq!(billing.send_event(created, &disputed(&second, "needs_response")).await?, "disputed");
    assert_eq!(billing.balance().await?.prepaid, 25_000);
    assert_eq!(billing.app.service.store().credits().verify_ledger().await?, []);
    billing.app.finish().await
}

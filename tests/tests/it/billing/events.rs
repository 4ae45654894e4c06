//! What comes in: only what Stripe has signed counts, and of that only what adds up.

use std::time::Duration;

use anyhow::Result;
use grabd_domain::credits::EntryKind;
use grabd_tests::stripe::{WEBHOOK_SECRET, completed, event, hmac, refunded, signature};
use serde_json::{Value, json};

use super::{House, now};

const COMPLETED: &str = "checkout.session.completed";

#[tokio::test(flavor = "multi_thread")]
async fn what_stripe_has_not_signed_just_now_is_refused() -> Result<()> {
    let house = House::start_with(&[("billing.stripe_webhook_secret", "whsec_the_next,whsec_of_the_stand_in")]).await?;
    let body = event(COMPLETED, &completed(&house.session("25k").await?, true));
    let minutes = |count: u64| Duration::from_secs(60 * count);
    let signed = |at| signature(WEBHOOK_SECRET, at, &body);
    let ours = signed(now());
    let seconds = now().as_ms() / 1000;
    let forged = [
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
    for header in &forged {
        let (status, answer) = house.send(header.as_deref(), body.clone()).await?;
        let answer: Value = serde_json::from_str(&answer)?;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("bad_request")), "{header:?}");
    }
    let twice = house.harness.client.post(format!("{}/billing/stripe", house.harness.base()));
    let twice = twice.header("stripe-signature", &ours).header("stripe-signature", &ours).body(body.clone());
    assert_eq!(twice.send().await?.status(), 400);
    // Signed as it may be, it is too much, or no event.
    for body in [format!("{body}{}", " ".repeat(64 << 10)), "{}".to_owned(), "[".to_owned()] {
        let (status, answer) = house.send(Some(&signature(WEBHOOK_SECRET, now(), &body)), body).await?;
        assert_eq!(status, 400, "{answer}");
    }
    let get = house.harness.client.get(format!("{}/billing/stripe", house.harness.base())).send().await?;
    assert_eq!((get.status().as_u16(), get.headers()["allow"].to_str()?), (405, "POST, OPTIONS"));
    assert_eq!(house.entries(EntryKind::Grant).await?, []);
    // What is too much is not looked at.
    assert_eq!(house.counted("refused").await?, u32::try_from(forged.len())? + 1 + 2);

    // While the secret is rotated, Stripe signs with both, and one of them fits.
    let two = format!("{ours},v1={}", hmac("whsec_not_yet_known", seconds, &body));
    assert_eq!(house.send(Some(&two), body.clone()).await?, (200, "granted".to_owned()));
    let next = signature("whsec_the_next", now() - minutes(4), &body);
    assert_eq!(house.send(Some(&next), body.clone()).await?, (200, "repeated".to_owned()));
    house.harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_add_up_grants_nothing() -> Result<()> {
    let house = House::start().await?;
    let paid = completed(&house.session("25k").await?, true);
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
        assert_eq!(house.tell(COMPLETED, &session).await?, expected, "{pointer} {value}");
    }
    let mut session = paid.clone();
    session["client_reference_id"] = json!("01993e1c-7b1a-7000-8000-0123456789ab");
    session["metadata"]["team"] = session["client_reference_id"].clone();
    assert_eq!(house.tell(COMPLETED, &session).await?, "unknown_team");
    for kind in ["checkout.session.expired", "checkout.session.async_payment_failed", "payment_intent.succeeded"] {
        assert_eq!(house.tell(kind, &paid).await?, "ignored");
    }
    assert_eq!(house.entries(EntryKind::Grant).await?, []);
    assert_eq!(house.tell(COMPLETED, &paid).await?, "granted");
    // The same payment does not grant something else.
    let mut session = paid.clone();
    session["metadata"]["credits"] = json!("25001");
    assert_eq!(house.tell(COMPLETED, &session).await?, "unexpected");
    assert_eq!(house.balance().await?.prepaid, 25_000);
    assert_eq!((house.counted("unexpected").await?, house.counted("unknown_team").await?), (6, 1));
    house.harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_paid_back_takes_what_is_left() -> Result<()> {
    let house = House::start().await?;
    let (first, second) = (house.session("25k").await?, house.session("50k").await?);
    assert_eq!(house.tell("charge.refunded", &refunded(&first, 5_000)).await?, "foreign");
    for session in [&first, &second] {
        assert_eq!(house.tell(COMPLETED, &completed(session, true)).await?, "granted");
    }
    house.harness.capture("/tiny", json!({})).await?;
    // Stripe tells what was paid back so far, and tells it again.
    for (cents, left) in [(1_000, 69_999), (1_000, 69_999), (2_500, 62_499), (5_000, 50_000), (5_000, 50_000)] {
        assert_eq!(house.tell("charge.refunded", &refunded(&first, cents)).await?, "refunded");
        assert_eq!(house.balance().await?.prepaid, left, "{cents}");
    }
    let taken: Vec<i32> = house.entries(EntryKind::Adjust).await?.iter().map(|entry| entry.amount).collect();
    assert_eq!(taken, [-12_499, -7_500, -5_000]);
    // A purchase that was paid back does not come again.
    assert_eq!(house.tell(COMPLETED, &completed(&first, true)).await?, "repeated");
    assert_eq!(house.balance().await?.prepaid, 50_000);
    house.harness.finish().await
}

//! Credits as they are sold: from the price list over Stripe's page to the ledger, and what must not grant any.

mod checkout;
mod events;
mod pages;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use grabd_domain::Timestamp;
use grabd_domain::credits::{Balance, EntryKind};
use grabd_domain::faults::Code;
use grabd_engine::Core;
use grabd_engine::billing::start_checkout;
use grabd_engine::clock::Clock;
use grabd_store::Entry;
use grabd_tests::harness::{ALLOWED, Harness};
use grabd_tests::stripe::{SECRET_KEY, Stripe, WEBHOOK_SECRET, event, signature};
use serde_json::Value;

#[path = "../../../../crates/store/tests/store/harness/cluster.rs"]
#[expect(clippy::unwrap_used, dead_code, reason = "it is the store's tests', who use all of it")]
mod cluster;

/// A service that sells through the stand-in.
struct House {
    harness: Harness,
    stripe: Stripe,
}

impl House {
    async fn start() -> Result<Self> {
        Self::start_with(&[]).await
    }

    async fn start_with(overlay: &[(&'static str, &str)]) -> Result<Self> {
        let stripe = Stripe::start(ALLOWED).await?;
        let url = stripe.url();
        let sold = [
            ("billing.stripe_secret_key", SECRET_KEY),
            ("billing.stripe_webhook_secret", WEBHOOK_SECRET),
            ("billing.stripe_api_base", &url),
        ];
        let harness = Harness::start(0, &[&sold, overlay].concat()).await?;
        Ok(Self { harness, stripe })
    }

    fn core(&self) -> &Core {
        self.harness.service.core()
    }

    async fn buy(&self, package: &str) -> Result<String, Code> {
        let (team, back) = (self.harness.team.team, "https://grabs.example.com/billing");
        let bought = start_checkout(self.core(), team, "ann@example.com", package, back, back).await;
        bought.map_err(|fault| fault.code())
    }

    /// The session of a purchase that was begun.
    async fn session(&self, package: &str) -> Result<Value> {
        let url = self.buy(package).await.map_err(|code| anyhow::anyhow!("{code:?}"))?;
        let sessions = self.stripe.sessions();
        sessions.into_iter().find(|session| session["url"] == url).context("no session has this address")
    }

    /// Sends a body with this signature; the status and the answer.
    async fn send(&self, signature: Option<&str>, body: impl Into<reqwest::Body>) -> Result<(u16, String)> {
        let mut request = self.harness.client.post(format!("{}/billing/stripe", self.harness.base())).body(body);
        if let Some(signature) = signature {
            request = request.header("stripe-signature", signature);
        }
        let answer = request.send().await?;
        Ok((answer.status().as_u16(), answer.text().await?))
    }

    /// Sends an event as Stripe does, which must be taken; what came of it.
    async fn tell(&self, kind: &str, object: &Value) -> Result<String> {
        let body = event(kind, object);
        let (status, answer) = self.send(Some(&signature(WEBHOOK_SECRET, now(), &body)), body).await?;
        ensure!(status == 200, "{status} {answer}");
        Ok(answer)
    }

    async fn balance(&self) -> Result<Balance> {
        Ok(Balance::of(&self.harness.service.store().lots(self.harness.team.team).await?, now()))
    }

    async fn entries(&self, kind: EntryKind) -> Result<Vec<Entry>> {
        let entries = self.harness.service.store().ledger(self.harness.team.team, None, 100).await?;
        Ok(entries.into_iter().filter(|entry| entry.kind == kind).collect())
    }

    /// How many events came to this, as monitoring reads it.
    async fn counted(&self, result: &str) -> Result<u32> {
        let metrics = format!("http://{}/metrics", self.harness.service.metrics());
        let text = self.harness.client.get(metrics).send().await?.text().await?;
        let name = format!("grabd_payment_events_total{{result=\"{result}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&name)).map_or(Ok(0), |count| Ok(count.parse()?))
    }
}

fn now() -> Timestamp {
    Clock::system().now()
}

/// Twenty at once, of both kinds that can tell of it, and then one of each again.
async fn sold_once(house: &House) -> Result<()> {
    use grabd_tests::stripe::{completed, payment_of};
    const KINDS: [&str; 2] = ["checkout.session.completed", "checkout.session.async_payment_succeeded"];
    let session = house.session("50k").await?;
    ensure!(house.tell(KINDS[0], &completed(&session, false)).await? == "unpaid");
    ensure!(house.entries(EntryKind::Grant).await?.is_empty());
    let paid = completed(&session, true);
    let told = try_join_all((0..20).map(|number| house.tell(KINDS[number % 2], &paid))).await?;
    let granted = told.iter().filter(|outcome| *outcome == "granted").count();
    let repeated = told.iter().filter(|outcome| *outcome == "repeated").count();
    ensure!((granted, repeated) == (1, 19), "{told:?}");
    for kind in KINDS {
        ensure!(house.tell(kind, &paid).await? == "repeated");
    }
    let grants = house.entries(EntryKind::Grant).await?;
    let [grant] = &grants[..] else { anyhow::bail!("{grants:?}") };
    ensure!(grant.amount == 50_000 && grant.reference == Some(format!("stripe:{}", payment_of(&session))), "{grant:?}");
    ensure!(house.balance().await?.prepaid == 50_000);
    ensure!((house.counted("granted").await?, house.counted("repeated").await?) == (1, 21));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_granted_once_on_sqlite() -> Result<()> {
    let house = House::start().await?;
    sold_once(&house).await?;
    // As the customer sees it.
    let (_, usage) = house.harness.get("/usage", house.harness.live()).await?;
    assert_eq!((&usage["credits"]["prepaid"], &usage["plan"]["name"]), (&50_000.into(), &"prepaid".into()));
    house.harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_granted_once_on_postgres() -> Result<()> {
    let database = cluster::PrivateDatabase::create().await;
    let url = database.url();
    let house = House::start_with(&[("database.url", &url)]).await?;
    sold_once(&house).await?;
    house.harness.finish().await?;
    database.drop_it().await;
    Ok(())
}

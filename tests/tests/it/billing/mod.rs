//! Purchases of credits: from the price list through Stripe Checkout to the ledger, and events that must not grant
//! credits.

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
use grabd_store::credits::Entry;
use grabd_tests::harness::{ALLOWED, TestApp};
use grabd_tests::stripe::{FakeStripe, SECRET_KEY, WEBHOOK_SECRET, event, signature};
use serde_json::Value;

#[path = "../../../../crates/store/tests/store/harness/cluster.rs"]
#[expect(clippy::unwrap_used, dead_code, reason = "shared with the tests of the store, which use all of it")]
pub(crate) mod cluster;

/// A service that sells credits through the fake Stripe.
struct BillingTest {
    app: TestApp,
    stripe: FakeStripe,
}

impl BillingTest {
    async fn start() -> Result<Self> {
        Self::start_with(&[]).await
    }

    async fn start_with(overlay: &[(&'static str, &str)]) -> Result<Self> {
        let stripe = FakeStripe::start(ALLOWED).await?;
        let url = stripe.url();
        let settings = [
            ("billing.stripe_secret_key", SECRET_KEY),
            ("billing.stripe_webhook_secret", WEBHOOK_SECRET),
            ("billing.stripe_api_base", &url),
        ];
        let app = TestApp::start(0, &[&settings, overlay].concat()).await?;
        Ok(Self { app, stripe })
    }

    fn core(&self) -> &Core {
        self.app.service.core()
    }

    async fn buy(&self, package: &str) -> Result<String, Code> {
        let (team, back) = (self.app.team.team, "https://grabs.example.com/billing");
        let result = start_checkout(self.core(), team, "ann@example.com", package, back, back).await;
        result.map_err(|error| error.into_fault().code())
    }

    /// Starts a purchase and returns its session.
    async fn session(&self, package: &str) -> Result<Value> {
        let url = self.buy(package).await.map_err(|code| anyhow::anyhow!("{code:?}"))?;
        let sessions = self.stripe.sessions();
        sessions.into_iter().find(|session| session["url"] == url).context("no session has this URL")
    }

    /// Sends a body with this signature. Returns status and response.
    async fn send(&self, signature: Option<&str>, body: impl Into<reqwest::Body>) -> Result<(u16, String)> {
        let mut request = self.app.client.post(format!("{}/billing/stripe", self.app.base())).body(body);
        if let Some(signature) = signature {
            request = request.header("stripe-signature", signature);
        }
        let answer = request.send().await?;
        Ok((answer.status().as_u16(), answer.text().await?))
    }

    /// Sends a signed event, which must be accepted. Returns the result.
    async fn send_event(&self, kind: &str, object: &Value) -> Result<String> {
        let body = event(kind, object);
        let (status, answer) = self.send(Some(&signature(WEBHOOK_SECRET, now(), &body)), body).await?;
        ensure!(status == 200, "{status} {answer}");
        Ok(answer)
    }

    async fn balance(&self) -> Result<Balance> {
        Ok(Balance::of(&self.app.service.store().credits().lots(self.app.team.team).await?, now()))
    }

    async fn entries(&self, kind: EntryKind) -> Result<Vec<Entry>> {
        let entries = self.app.service.store().credits().ledger(self.app.team.team, None, 100).await?;
        Ok(entries.into_iter().filter(|entry| entry.kind == kind).collect())
    }

    /// The number of events with this result, from the metrics.
    async fn event_count(&self, result: &str) -> Result<u32> {
        let metrics = format!("http://{}/metrics", self.app.service.metrics());
        let text = self.app.client.get(metrics).send().await?.text().await?;
        let name = format!("grabd_payment_events_total{{result=\"{result}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&name)).map_or(Ok(0), |count| Ok(count.parse()?))
    }
}

fn now() -> Timestamp {
    Clock::system().now()
}

/// Sends twenty concurrent events of both kinds that report a payment, and then one of each kind again.
async fn assert_granted_once(billing: &BillingTest) -> Result<()> {
    use grabd_tests::stripe::{completed, payment_id};
    const KINDS: [&str; 2] = ["checkout.session.completed", "checkout.session.async_payment_succeeded"];
    let session = billing.session("50k").await?;
    ensure!(billing.send_event(KINDS[0], &completed(&session, false)).await? == "unpaid");
    ensure!(billing.entries(EntryKind::Grant).await?.is_empty());
    let paid = completed(&session, true);
    let outcomes = try_join_all((0..20).map(|number| billing.send_event(KINDS[number % 2], &paid))).await?;
    let granted = outcomes.iter().filter(|outcome| *outcome == "granted").count();
    let repeated = outcomes.iter().filter(|outcome| *outcome == "repeated").count();
    ensure!((granted, repeated) == (1, 19), "{outcomes:?}");
    for kind in KINDS {
        ensure!(billing.send_event(kind, &paid).await? == "repeated");
    }
    let grants = billing.entries(EntryKind::Grant).await?;
    let [grant] = &grants[..] else { anyhow::bail!("{grants:?}") };
    ensure!(grant.amount == 50_000 && grant.reference == Some(format!("stripe:{}", payment_id(&session))), "{grant:?}");
    ensure!(billing.balance().await?.prepaid == 50_000);
    ensure!((billing.event_count("granted").await?, billing.event_count("repeated").await?) == (1, 21));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_payment_events_grant_once_on_sqlite() -> Result<()> {
    let billing = BillingTest::start().await?;
    assert_granted_once(&billing).await?;
    // The API shows the same.
    let (_, usage) = billing.app.get("/usage", billing.app.live()).await?;
    assert_eq!((&usage["credits"]["prepaid"], &usage["plan"]["name"]), (&50_000.into(), &"prepaid".into()));
    billing.app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_payment_events_grant_once_on_postgres() -> Result<()> {
    let database = cluster::PrivateDatabase::create_migrated().await;
    let url = database.url();
    let billing = BillingTest::start_with(&[("database.url", &url)]).await?;
    assert_granted_once(&billing).await?;
    billing.app.finish().await?;
    database.drop_database().await;
    Ok(())
}

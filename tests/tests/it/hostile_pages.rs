//! Hostile pages through the whole service: each has its expected outcome, failures cost nothing, the next page is
//! captured normally, and no resources leak.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use anyhow::Result;
use futures::future::try_join_all;
use grabd_tests::dns::Dns;
use grabd_tests::harness::TestApp;
use grabd_tests::scenario::{BrowserUsage, Browsers, CaptureOutcome, Customer, PLAIN};
use grabd_tests::site::hostile::{CaptureLoad, Page, pages};
use serde_json::json;
use tempfile::TempDir;

const CREDITS: u32 = 1000;

/// The number of tests among which the short pages are divided, so that each ends within two minutes on a busy machine.
const PARTS: usize = 6;

/// Time limit for a plain page after a hostile one. It normally takes a fraction of a second, but was seen to take eleven on a
/// busy machine.
const SOON: Duration = Duration::from_secs(20);

struct HostilePageTest {
    app: TestApp,
    customer: Customer,
    idle_usage: BrowserUsage,
    billed: u32,
    /// The parent of the browsers' run directory.
    run_dir: TempDir,
    _dns: Dns,
}

impl HostilePageTest {
    async fn open(overlay: &[(&'static str, &str)]) -> Result<Self> {
        let dns = Dns::start(Ipv4Addr::new(127, 0, 0, 2)).await?;
        let address = dns.address.to_string();
        let run_dir = tempfile::tempdir()?;
        // The browser may run as another user, who must be able to traverse the directory.
        fs::set_permissions(run_dir.path(), fs::Permissions::from_mode(0o711))?;
        let browsers = run_dir.path().join("browsers").display().to_string();
        let mut settings = vec![("egress.dns", address.as_str()), ("browser.run_dir", &browsers)];
        settings.extend(overlay);
        let app = TestApp::start(CREDITS, &settings).await?;
        let customer = Customer { client: app.client.clone(), base: app.base(), key: app.live().to_owned() };
        let mut test = Self { app, customer, idle_usage: BrowserUsage::default(), billed: 0, run_dir, _dns: dns };
        test.capture_plain("the start").await?;
        let idle_usage = test.browsers().measure_idle().await;
        test.idle_usage = idle_usage;
        Ok(test)
    }

    /// Captures the plain page, which must be quick and correct.
    async fn capture_plain(&mut self, after: &str) -> Result<()> {
        let seen = self.customer.capture(&self.app.site.url(PLAIN), json!({})).await?;
        anyhow::ensure!(seen.is_plain() && seen.took < SOON, "after {after}: {seen:?}");
        self.billed += 1;
        Ok(())
    }

    async fn capture(&self, page: &Page) -> Result<CaptureOutcome> {
        let seen = self.customer.capture_page(&self.app.site, page).await?;
        println!("{:<30} {seen}", page.name);
        anyhow::ensure!(seen.matches(page.expected), "{}: expected {:?}, got {seen}", page.name, page.expected);
        Ok(seen)
    }

    /// Checks what must hold after every page: only done grabs are billed, and the browser uses no more resources than
    /// before.
    async fn check_after(&mut self, seen: &[CaptureOutcome], after: &str) -> Result<()> {
        self.billed += u32::try_from(seen.iter().filter(|seen| seen.status == 200).count())?;
        self.capture_plain(after).await?;
        let (_, usage) = self.app.get("/usage", self.app.live()).await?;
        let credits = &usage["credits"];
        anyhow::ensure!(credits["total"] == json!(CREDITS - self.billed), "after {after}: {credits}");
        anyhow::ensure!(credits["held"] == json!(0), "after {after}: {credits}");
        let drift = self.app.service.store().credits().verify_ledger().await?;
        anyhow::ensure!(drift.is_empty(), "after {after}: {drift:?}");
        self.browsers()
            .wait_until_reduced_to(self.idle_usage)
            .await
            .map_err(|left| left.context(format!("after {after}")))
    }

    fn browsers(&self) -> Browsers<impl Fn() -> Vec<u32>> {
        Browsers { pids: || self.app.service.health().pids, run_dir: self.run_dir.path().join("browsers") }
    }

    async fn close(self) -> Result<()> {
        self.app.finish().await
    }

    async fn capture_in_turn(mut self, of: impl Fn(&Page) -> bool) -> Result<()> {
        for page in pages().filter(of) {
            let seen = self.capture(&page).await?;
            self.check_after(&[seen], page.name).await?;
        }
        self.close().await
    }

    async fn capture_concurrently(mut self, of: impl Fn(&Page) -> bool) -> Result<()> {
        let pages: Vec<Page> = pages().filter(of).collect();
        let seen = try_join_all(pages.iter().map(|page| self.capture(page))).await?;
        self.check_after(&seen, "all of them").await?;
        self.close().await
    }
}

/// Whether a page is short and belongs to this part.
fn short(page: &Page, part: usize) -> bool {
    page.load == CaptureLoad::Short
        && pages()
            .filter(|page| page.load == CaptureLoad::Short)
            .position(|is| is.name == page.name)
            .is_some_and(|at| at % PARTS == part)
}

#[tokio::test(flavor = "multi_thread")]
async fn short_pages_have_their_expected_outcome_part_1() -> Result<()> {
    HostilePageTest::open(&[]).await?.capture_in_turn(|page| short(page, 0)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn short_pages_have_their_expected_outcome_part_2() -> Result<()> {
    HostilePageTest::open(&[]).await?.capture_in_turn(|page| short(page, 1)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn short_pages_have_their_expected_outcome_part_3() -> Result<()> {
    HostilePageTest::open(&[]).await?.capture_in_turn(|page| short(page, 2)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn short_pages_have_their_expected_outcome_part_4() -> Result<()> {
    HostilePageTest::open(&[]).await?.capture_in_turn(|page| short(page, 3)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn short_pages_have_their_expected_outcome_part_5() -> Result<()> {
    HostilePageTest::open(&[]).await?.capture_in_turn(|page| short(page, 4)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn short_pages_have_their_expected_outcome_part_6() -> Result<()> {
    HostilePageTest::open(&[]).await?.capture_in_turn(|page| short(page, 5)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_pages_end_at_the_time_limit() -> Result<()> {
    // One slot per page, so that none waits for another.
    let test = HostilePageTest::open(&[("browser.slots", "16"), ("browser.settle_ms", "1000")]).await?;
    test.capture_concurrently(|page| page.load == CaptureLoad::Waiting).await
}

#[tokio::test(flavor = "multi_thread")]
async fn busy_pages_end_at_the_time_limit() -> Result<()> {
    let test = HostilePageTest::open(&[("browser.slots", "6")]).await?;
    test.capture_concurrently(|page| page.load == CaptureLoad::Working).await
}

#[tokio::test(flavor = "multi_thread")]
async fn stalling_pages_do_not_break_later_captures() -> Result<()> {
    let test = HostilePageTest::open(&[]).await?;
    test.capture_in_turn(|page| page.load == CaptureLoad::Stalling).await
}

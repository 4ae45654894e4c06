//! Pages that mean harm, through the whole service: each gets the answer it deserves, nobody pays for a failure, the
//! next page is captured as if nothing had been, and nothing stays behind.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use anyhow::Result;
use futures::future::try_join_all;
use grabd_tests::dns::Dns;
use grabd_tests::harness::Harness;
use grabd_tests::site::hostile::{Length, Page, pages};
use grabd_tests::trial::{Browsers, Customer, Leftovers, PLAIN, Seen};
use serde_json::json;
use tempfile::TempDir;

const CREDITS: u32 = 1000;

/// Tests among which the short pages are divided, each of which ends within two minutes also on a busy machine.
const PARTS: usize = 6;

/// A plain page after a hostile one takes a fraction of a second; this is no measurement.
const SOON: Duration = Duration::from_secs(10);

struct Scene {
    harness: Harness,
    customer: Customer,
    empty: Leftovers,
    billed: u32,
    /// Where the browsers have their directories.
    run_dir: TempDir,
    _dns: Dns,
}

impl Scene {
    async fn open(overlay: &[(&'static str, &str)]) -> Result<Self> {
        let dns = Dns::start(Ipv4Addr::new(127, 0, 0, 2)).await?;
        let address = dns.address.to_string();
        let run_dir = tempfile::tempdir()?;
        // The browser may be another user, who must get through.
        fs::set_permissions(run_dir.path(), fs::Permissions::from_mode(0o711))?;
        let browsers = run_dir.path().join("browsers").display().to_string();
        let mut settings = vec![("egress.dns", address.as_str()), ("browser.run_dir", &browsers)];
        settings.extend(overlay);
        let harness = Harness::start(CREDITS, &settings).await?;
        let customer =
            Customer { client: harness.client.clone(), base: harness.base(), key: harness.live().to_owned() };
        let mut scene = Self { harness, customer, empty: Leftovers::default(), billed: 0, run_dir, _dns: dns };
        scene.plain("the start").await?;
        let empty = scene.browsers().at_rest().await;
        scene.empty = empty;
        Ok(scene)
    }

    /// A plain page is captured, quickly and in its own colours.
    async fn plain(&mut self, after: &str) -> Result<()> {
        let seen = self.customer.capture(&self.harness.site.url(PLAIN), json!({})).await?;
        anyhow::ensure!(seen.is_plain() && seen.took < SOON, "after {after}: {seen:?}");
        self.billed += 1;
        Ok(())
    }

    async fn visit(&self, page: &Page) -> Result<Seen> {
        let seen = self.customer.visit(&self.harness.site, page).await?;
        println!("{:<30} {seen}", page.name);
        anyhow::ensure!(seen.is(page.answer), "{} deserves {:?}, and got {seen}", page.name, page.answer);
        Ok(seen)
    }

    /// What holds after every page: what was done is billed and nothing else, and the browser is as small as before.
    async fn settle(&mut self, seen: &[Seen], after: &str) -> Result<()> {
        self.billed += u32::try_from(seen.iter().filter(|seen| seen.status == 200).count())?;
        self.plain(after).await?;
        let (_, usage) = self.harness.get("/usage", self.harness.live()).await?;
        let credits = &usage["credits"];
        anyhow::ensure!(credits["total"] == json!(CREDITS - self.billed), "after {after}: {credits}");
        anyhow::ensure!(credits["held"] == json!(0), "after {after}: {credits}");
        let drift = self.harness.service.store().verify_ledger().await?;
        anyhow::ensure!(drift.is_empty(), "after {after}: {drift:?}");
        self.browsers().hold_no_more_than(self.empty).await.map_err(|left| left.context(format!("after {after}")))
    }

    fn browsers(&self) -> Browsers<impl Fn() -> Vec<u32>> {
        Browsers { pids: || self.harness.service.health().pids, run_dir: self.run_dir.path().join("browsers") }
    }

    async fn close(self) -> Result<()> {
        self.harness.finish().await
    }

    async fn one_after_another(mut self, of: impl Fn(&Page) -> bool) -> Result<()> {
        for page in pages().filter(of) {
            let seen = self.visit(&page).await?;
            self.settle(&[seen], page.name).await?;
        }
        self.close().await
    }

    async fn all_at_once(mut self, of: impl Fn(&Page) -> bool) -> Result<()> {
        let pages: Vec<Page> = pages().filter(of).collect();
        let seen = try_join_all(pages.iter().map(|page| self.visit(page))).await?;
        self.settle(&seen, "all of them").await?;
        self.close().await
    }
}

/// Divides the short ones among tests that run side by side.
fn short(page: &Page, part: usize) -> bool {
    page.length == Length::Short
        && pages()
            .filter(|page| page.length == Length::Short)
            .position(|is| is.name == page.name)
            .is_some_and(|at| at % PARTS == part)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_gets_its_answer_first_part() -> Result<()> {
    Scene::open(&[]).await?.one_after_another(|page| short(page, 0)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_gets_its_answer_second_part() -> Result<()> {
    Scene::open(&[]).await?.one_after_another(|page| short(page, 1)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_gets_its_answer_third_part() -> Result<()> {
    Scene::open(&[]).await?.one_after_another(|page| short(page, 2)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_gets_its_answer_fourth_part() -> Result<()> {
    Scene::open(&[]).await?.one_after_another(|page| short(page, 3)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_gets_its_answer_fifth_part() -> Result<()> {
    Scene::open(&[]).await?.one_after_another(|page| short(page, 4)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_gets_its_answer_sixth_part() -> Result<()> {
    Scene::open(&[]).await?.one_after_another(|page| short(page, 5)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn sites_that_keep_a_capture_waiting_end_with_its_time() -> Result<()> {
    // One for each: none waits for another.
    let scene = Scene::open(&[("browser.slots", "16"), ("browser.settle_ms", "1000")]).await?;
    scene.all_at_once(|page| page.length == Length::Waiting).await
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_never_yield_end_with_the_captures_time() -> Result<()> {
    let scene = Scene::open(&[("browser.slots", "6")]).await?;
    scene.all_at_once(|page| page.length == Length::Working).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_keeps_the_browser_from_drawing_costs_others_a_moment() -> Result<()> {
    let scene = Scene::open(&[]).await?;
    scene.one_after_another(|page| page.length == Length::Stalling).await
}

//! Creates grabs of all kinds for hours while simulated days pass, and shows whether the service's memory grows.
//!
//! After each round the memory is measured when no grab is in progress. Then a day passes by moving all stored times back,
//! so that the background work of the next round deletes what is too old.

mod chart;

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use grabd_tests::dns::Dns;
use grabd_tests::harness::ALLOWED;
use grabd_tests::scenario::{Customer, PLAIN};
use grabd_tests::site::Site;
use grabd_tests::site::hostile::{self, Page};
use serde_json::json;

use self::chart::Point;
use crate::resources::ResourceUsage;
use crate::service::Service;
use crate::tables::Tables;

/// The first part of the run, which does not count: caches and pools are full after it.
const WARM_UP: Duration = Duration::from_secs(20 * 60);
/// Length of a round, which is a simulated day.
const ROUND: Duration = Duration::from_secs(60);
/// Disposed contexts and replaced browsers are gone within this time.
const REST: Duration = Duration::from_secs(15);

/// What to do.
pub(crate) struct Plan {
    pub(crate) length: Duration,
    pub(crate) at_a_time: usize,
    /// Where the chart is written, as SVG.
    pub(crate) chart: Option<PathBuf>,
}

/// The grabs so far.
#[derive(Default)]
struct Grabs {
    all: usize,
    wrong: usize,
}

/// The service with everything that grabs need.
struct Soak {
    service: Service,
    customer: Customer,
    site: Site,
    pages: Vec<Page>,
    tables: Tables,
}

/// Creates grabs for the whole time. Prints the memory after each round, and the resources after the first part and at the
/// end.
pub(crate) async fn measure(plan: Plan) -> anyhow::Result<()> {
    anyhow::ensure!(plan.length > WARM_UP, "the first {} minutes do not count: take longer", WARM_UP.as_secs() / 60);
    let dns = Dns::start(Ipv4Addr::new(127, 0, 0, 2)).await?;
    // The browser may run as another user, who must be able to traverse the directory.
    let run_dir = tempfile::tempdir()?;
    fs::set_permissions(run_dir.path(), fs::Permissions::from_mode(0o711))?;
    let browsers = run_dir.path().join("browsers");
    let soak = Soak::start(&browsers, &dns).await?;

    let began = Instant::now();
    let (mut grabs, mut points) = (Grabs::default(), Vec::new());
    println!("{:>8}{:>10}{:>8}{:>14}{:>12}", "minute", "grabs", "wrong", "service MiB", "MiB in all");
    soak.rounds(plan.at_a_time, (began, began + WARM_UP), &mut grabs, &mut points).await?;
    let warm = at_rest(&soak.service, &browsers).await;
    let mut counted = Vec::new();
    soak.rounds(plan.at_a_time, (began, began + plan.length), &mut grabs, &mut counted).await?;
    let end = at_rest(&soak.service, &browsers).await;

    println!();
    ResourceUsage::print_header("at rest");
    warm.print("warmed up");
    end.print("the end");
    println!(
        "\nafter minute {} the service's memory grew by {:.2} MiB per 10,000 grabs (least squares over {} rounds)",
        WARM_UP.as_secs() / 60,
        chart::growth(&counted),
        counted.len()
    );
    match grabs.wrong {
        0 => println!("every outcome was the expected one"),
        wrong => println!("{wrong} outcomes were not the expected ones"),
    }
    points.append(&mut counted);
    if let Some(path) = &plan.chart {
        fs::write(path, chart::svg(&points)).with_context(|| format!("{} cannot be written", path.display()))?;
        println!("chart: {}", path.display());
    }
    soak.stop().await?;
    let left = fs::read_dir(&browsers).map_or(0, Iterator::count);
    anyhow::ensure!(left == 0, "{left} directories of browsers were left by the stopped service");
    Ok(())
}

/// Waits until grabs have left nothing to do, and measures.
async fn at_rest(service: &Service, browsers: &Path) -> ResourceUsage {
    tokio::time::sleep(REST).await;
    ResourceUsage::of(service.tree(), browsers)
}

impl Soak {
    async fn start(browsers: &Path, dns: &Dns) -> anyhow::Result<Self> {
        let site = Site::start(ALLOWED).await?;
        let (browsers, dns) = (browsers.display().to_string(), dns.address.to_string());
        let settings = [("GRABD_BROWSER__RUN_DIR", browsers.as_str()), ("GRABD_EGRESS__DNS", &dns)];
        let service = Service::start_with(&settings).await.context("the service")?;
        let (customer, pages) = (service.customer(), hostile::pages().collect());
        let tables = Tables::open(&service.database()).await?;
        Ok(Self { service, customer, site, pages, tables })
    }

    /// Rounds until the end of `times`, which are the beginning of the run and the end of this part.
    async fn rounds(
        &self,
        at_a_time: usize,
        (began, end): (Instant, Instant),
        grabs: &mut Grabs,
        points: &mut Vec<Point>,
    ) -> anyhow::Result<()> {
        while Instant::now() < end {
            let round_ends = Instant::now() + ROUND;
            let results = stream::iter(grabs.all..)
                .take_while(|_| std::future::ready(Instant::now() < round_ends))
                .map(|turn| self.grab(turn))
                .buffer_unordered(at_a_time.max(1));
            tokio::pin!(results);
            while let Some(wrong) = results.try_next().await? {
                grabs.all += 1;
                if let Some(wrong) = wrong {
                    grabs.wrong += 1;
                    println!("not the expected outcome: {wrong}");
                }
            }
            #[expect(clippy::cast_precision_loss, reason = "kilobytes of one process")]
            let point = Point {
                minutes: began.elapsed().as_secs_f64() / 60.0,
                grabs: grabs.all,
                service_mib: self.service.tree().own_rss_kib() as f64 / 1024.0,
                all_mib: self.service.tree().pss_mib(),
            };
            let Point { minutes, grabs: all, service_mib, all_mib } = &point;
            println!("{minutes:>8.0}{all:>10}{:>8}{service_mib:>14.1}{all_mib:>12.0}", grabs.wrong);
            points.push(point);
            self.tables.pass_a_day().await?;
        }
        Ok(())
    }

    /// One grab. Returns the outcome if it is not the expected one.
    async fn grab(&self, turn: usize) -> anyhow::Result<Option<String>> {
        match turn % 8 {
            0 | 1 | 4 => self.plain_page().await,
            2 | 6 => self.watched().await,
            5 => self.placeholder().await,
            _ => self.hostile_page(&self.pages[turn / 4 % self.pages.len()]).await,
        }
    }

    async fn plain_page(&self) -> anyhow::Result<Option<String>> {
        let outcome = self.customer.capture(&self.site.url(PLAIN), json!({})).await?;
        Ok((!outcome.is_plain()).then(|| format!("plain page: {outcome}")))
    }

    /// Creates a grab asynchronously, reads its events until it has ended, and downloads the image.
    async fn watched(&self) -> anyhow::Result<Option<String>> {
        let id = self.service.queue(&self.service.live_key, &self.site.url(PLAIN)).await?;
        let grab = self.service.events(&id).await?;
        let Some(image) = grab["image_url"].as_str() else { return Ok(Some(format!("watched grab: {grab}"))) };
        let empty = self.service.image(image).await?.is_empty();
        Ok(empty.then(|| "watched grab: the image is empty".to_owned()))
    }

    async fn placeholder(&self) -> anyhow::Result<Option<String>> {
        let grab = self.service.placeholder().await?;
        Ok((grab["status"] != "done").then(|| format!("placeholder: {grab}")))
    }

    async fn hostile_page(&self, page: &Page) -> anyhow::Result<Option<String>> {
        let outcome = self.customer.capture_page(&self.site, page).await?;
        Ok((!outcome.matches(page.expected)).then(|| format!("{}: {outcome}", page.name)))
    }

    async fn stop(self) -> anyhow::Result<()> {
        self.tables.close().await?;
        self.service.stop().await
    }
}

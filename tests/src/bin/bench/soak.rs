//! Captures plain and hostile pages for a long time, and shows whether the service's memory grows.

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

use crate::resources::ResourceUsage;
use crate::service::Service;

/// When the first comparison is made: caches and pools are full by then.
const SETTLED: Duration = Duration::from_secs(5 * 60);
const MINUTE: Duration = Duration::from_secs(60);
/// Disposed contexts and replaced browsers are gone within this time.
const REST: Duration = Duration::from_secs(15);
/// Plain pages before each hostile one.
const PLAIN_PER_HOSTILE: usize = 3;

/// What to do.
pub(crate) struct Plan {
    pub(crate) length: Duration,
    pub(crate) at_a_time: usize,
    /// Where the chart is written, as SVG.
    pub(crate) chart: Option<PathBuf>,
}

/// Memory at one time, while captures are in progress.
struct Point {
    minutes: f64,
    grabs: usize,
    service_mib: f64,
    all_mib: f64,
}

/// The customer's captures so far.
#[derive(Default)]
struct Captures {
    all: usize,
    wrong: usize,
    /// The last wrong result.
    last_wrong: String,
}

/// Captures for the whole time. Prints the resources while idle after five minutes and at the end.
pub(crate) async fn measure(plan: Plan) -> anyhow::Result<()> {
    anyhow::ensure!(plan.length > SETTLED, "the first five minutes are not counted, so take longer");
    let site = Site::start(ALLOWED).await?;
    let dns = Dns::start(Ipv4Addr::new(127, 0, 0, 2)).await?;
    // The browser may run as another user, who must be able to traverse the directory.
    let run_dir = tempfile::tempdir()?;
    fs::set_permissions(run_dir.path(), fs::Permissions::from_mode(0o711))?;
    let browsers = run_dir.path().join("browsers");
    let (browsers_text, dns_text) = (browsers.display().to_string(), dns.address.to_string());
    let settings = [("GRABD_BROWSER__RUN_DIR", browsers_text.as_str()), ("GRABD_EGRESS__DNS", &dns_text)];
    let service = Service::start_with(&settings).await.context("the service")?;

    let began = Instant::now();
    let (mut captures, mut points) = (Captures::default(), Vec::new());
    println!("{:>8}{:>10}{:>8}{:>14}{:>12}", "minute", "captures", "wrong", "service MiB", "MiB in all");
    capture_until(&service, &site, &plan, (began, began + SETTLED), (&mut captures, &mut points)).await?;
    let early = (at_rest(&service, &browsers).await, captures.all);
    capture_until(&service, &site, &plan, (began, began + plan.length), (&mut captures, &mut points)).await?;
    let late = (at_rest(&service, &browsers).await, captures.all);

    println!();
    ResourceUsage::print_header("at rest");
    early.0.print("minute 5");
    late.0.print("the end");
    #[expect(clippy::cast_precision_loss, reason = "a number of captures")]
    let growth = (late.0.service_mib - early.0.service_mib) / (late.1 - early.1).max(1) as f64 * 10_000.0;
    println!("\nthe service's memory at rest grew by {growth:.2} MiB per 10,000 captures");
    match captures.wrong {
        0 => println!("every outcome was the expected one"),
        wrong => println!("{wrong} outcomes were not the expected ones; the last: {}", captures.last_wrong),
    }
    if let Some(path) = &plan.chart {
        fs::write(path, chart(&points)).with_context(|| format!("{} cannot be written", path.display()))?;
        println!("chart: {}", path.display());
    }
    service.stop().await?;
    let left = fs::read_dir(&browsers).map_or(0, Iterator::count);
    anyhow::ensure!(left == 0, "{left} directories of browsers were left by the stopped service");
    Ok(())
}

/// Waits until captures have left nothing to do, and measures.
async fn at_rest(service: &Service, browsers: &Path) -> ResourceUsage {
    tokio::time::sleep(REST).await;
    ResourceUsage::of(service.tree(), browsers)
}

/// Captures pages in turn until the end of `times`, which are the beginning of the run and the end of this part.
async fn capture_until(
    service: &Service,
    site: &Site,
    plan: &Plan,
    (began, end): (Instant, Instant),
    (captures, points): (&mut Captures, &mut Vec<Point>),
) -> anyhow::Result<()> {
    let pages: Vec<Page> = hostile::pages().collect();
    let turns = (captures.all..).take_while(|_| Instant::now() < end);
    let customer = &service.customer();
    let results = stream::iter(turns)
        .map(|turn| capture_one(customer, site, &pages, turn))
        .buffer_unordered(plan.at_a_time.max(1));
    tokio::pin!(results);
    let mut next_point = began + MINUTE * (began.elapsed().as_secs() as u32 / 60 + 1);
    while let Some(wrong) = results.try_next().await? {
        captures.all += 1;
        if let Some(wrong) = wrong {
            captures.wrong += 1;
            captures.last_wrong = wrong;
        }
        if Instant::now() >= next_point {
            next_point += MINUTE;
            let point = Point {
                minutes: began.elapsed().as_secs_f64() / 60.0,
                grabs: captures.all,
                service_mib: service.tree().own_rss_kib() as f64 / 1024.0,
                all_mib: service.tree().pss_mib(),
            };
            let Point { minutes, grabs, service_mib, all_mib } = &point;
            println!("{minutes:>8.0}{grabs:>10}{:>8}{service_mib:>14.0}{all_mib:>12.0}", captures.wrong);
            points.push(point);
        }
    }
    Ok(())
}

/// One capture. Returns the outcome if it is not the expected one.
async fn capture_one(customer: &Customer, site: &Site, pages: &[Page], turn: usize) -> anyhow::Result<Option<String>> {
    let every = PLAIN_PER_HOSTILE + 1;
    if turn % every != PLAIN_PER_HOSTILE {
        let outcome = customer.capture(&site.url(PLAIN), json!({})).await?;
        return Ok((!outcome.is_plain()).then(|| format!("plain page: {outcome}")));
    }
    let page = &pages[turn / every % pages.len()];
    let outcome = customer.capture_page(site, page).await?;
    Ok((!outcome.matches(page.expected)).then(|| format!("{}: {outcome}", page.name)))
}

/// A line chart of the memory over time.
fn chart(points: &[Point]) -> String {
    const WIDTH: f64 = 800.0;
    const HEIGHT: f64 = 300.0;
    const MARGIN: f64 = 50.0;
    let end = points.last().map_or(1.0, |point| point.minutes);
    let top = points.iter().map(|point| point.all_mib).fold(1.0, f64::max) * 1.1;
    let x = |minutes: f64| MARGIN + minutes / end * (WIDTH - 2.0 * MARGIN);
    let y = |mib: f64| HEIGHT - MARGIN - mib / top * (HEIGHT - 2.0 * MARGIN);
    let line = |value: fn(&Point) -> f64| {
        let places: Vec<String> =
            points.iter().map(|point| format!("{:.1},{:.1}", x(point.minutes), y(value(point)))).collect();
        places.join(" ")
    };
    let (service, all) = (line(|point| point.service_mib), line(|point| point.all_mib));
    let (left, right, bottom) = (MARGIN, WIDTH - MARGIN, HEIGHT - MARGIN);
    let last = points.last().map_or(0, |point| point.grabs);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/>
<path d="M{left} {MARGIN}V{bottom}H{right}" fill="none" stroke="#888"/>
<text x="{left}" y="20">Memory in MiB over {end:.0} minutes and {last} captures</text>
<text x="{left}" y="38" fill="#06c">service and browsers</text>
<text x="180" y="38" fill="#c30">service alone</text>
<text x="5" y="{MARGIN}">{top:.0}</text>
<text x="5" y="{bottom}">0</text>
<text x="{right}" y="{label}" text-anchor="end">{end:.0} min</text>
<polyline points="{all}" fill="none" stroke="#06c" stroke-width="2"/>
<polyline points="{service}" fill="none" stroke="#c30" stroke-width="2"/>
</svg>
"##,
        label = bottom + 20.0,
    )
}

//! Soak test with hostile pages that reveals leaks: memory, processes, open files and directories before and after.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use grabd_tests::dns::Dns;
use grabd_tests::harness::ALLOWED;
use grabd_tests::scenario::{CaptureOutcome, PLAIN};
use grabd_tests::site::Site;
use grabd_tests::site::hostile::{self, ExpectedOutcome, Page};
use serde_json::json;

use crate::measure::Sample;
use crate::resources::ResourceUsage;
use crate::service::Service;

/// Disposed contexts and replaced browsers are gone within this time.
const REST: Duration = Duration::from_secs(15);

/// Grabs before the first measurement, so that one-time allocations are not counted.
const WARM_UP: usize = 10;

/// Results of the captures of one page.
#[derive(Default)]
struct Row {
    visits: usize,
    wrong: usize,
    took: Sample,
    last: String,
}

/// Captures `grabs` hostile pages, `at_a_time` concurrently, cycling through the table.
pub(crate) async fn measure(grabs: usize, at_a_time: usize, only: &[String]) -> anyhow::Result<()> {
    let site = Site::start(ALLOWED).await?;
    let dns = Dns::start(Ipv4Addr::new(127, 0, 0, 2)).await?;
    // The browser may run as another user, who must be able to traverse the directory.
    let run_dir = tempfile::tempdir()?;
    fs::set_permissions(run_dir.path(), fs::Permissions::from_mode(0o711))?;
    let browsers = run_dir.path().join("browsers");
    let (browsers_text, dns_text) = (browsers.display().to_string(), dns.address.to_string());
    let settings = [("GRABD_BROWSER__RUN_DIR", browsers_text.as_str()), ("GRABD_EGRESS__DNS", &dns_text)];
    let service = Service::start_with(&settings).await.context("the service")?;
    let customer = service.customer();
    let plain = site.url(PLAIN);
    for _ in 0..WARM_UP {
        customer.capture(&plain, json!({})).await?;
    }
    let before = ResourceUsage::of(service.tree(), &browsers);
    let pages: Vec<Page> =
        hostile::pages().filter(|page| only.is_empty() || only.iter().any(|name| name == page.name)).collect();
    anyhow::ensure!(!pages.is_empty(), "no such page");

    let began = Instant::now();
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut peak = 0.0_f64;
    let (customer, site) = (&customer, &site);
    let visits = stream::iter(pages.iter().cycle().take(grabs))
        .map(|page| async move { anyhow::Ok((page, customer.capture_page(site, page).await?)) })
        .buffer_unordered(at_a_time.max(1));
    tokio::pin!(visits);
    while let Some((page, outcome)) = visits.try_next().await? {
        record(rows.entry(page.name).or_default(), page.expected, &outcome);
        peak = peak.max(service.tree().pss_mib());
    }
    let took = began.elapsed();

    println!("{:<32}{:>7}{:>7}{:>10}{:>10}  last outcome", "page", "visits", "wrong", "p50 ms", "max ms");
    for page in &pages {
        if let Some(row) = rows.get_mut(page.name) {
            let (median, most) = (row.took.quantile(0.5), row.took.quantile(1.0));
            println!("{:<32}{:>7}{:>7}{median:>10.0}{most:>10.0}  {}", page.name, row.visits, row.wrong, row.last);
        }
    }
    let wrong: usize = rows.values().map(|row| row.wrong).sum();
    println!(
        "\n{grabs} grabs in {:.0} s, {at_a_time} at a time; {wrong} wrong outcomes; peak {peak:.0} MiB",
        took.as_secs_f64()
    );

    tokio::time::sleep(REST).await;
    let mut next = Sample::default();
    for _ in 0..WARM_UP {
        let outcome = customer.capture(&plain, json!({})).await?;
        anyhow::ensure!(outcome.is_plain(), "a plain page afterwards: {outcome}");
        next.add(outcome.took);
    }
    println!("plain pages afterwards: p50 {:.0} ms, max {:.0} ms\n", next.quantile(0.5), next.quantile(1.0));
    ResourceUsage::print_header("");
    before.print("before");
    ResourceUsage::of(service.tree(), &browsers).print("after");
    service.stop().await?;
    println!("{:<10}{:>62}", "stopped", fs::read_dir(&browsers).map_or(0, Iterator::count));
    Ok(())
}

fn record(row: &mut Row, expected: ExpectedOutcome, outcome: &CaptureOutcome) {
    let wrong = !outcome.matches(expected);
    row.visits += 1;
    row.took.add(outcome.took);
    // Prefer the last wrong result.
    if wrong || row.wrong == 0 {
        row.last = outcome.to_string();
    }
    row.wrong += usize::from(wrong);
}

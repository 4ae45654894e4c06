//! What hostile customers leave in the database: rows and bytes of each table after days of simulated abuse.
//!
//! The days pass by moving all stored times back, since the service deletes only by times that the database's clock
//! confirms.

mod attack;

use std::time::{Duration, Instant};

use grabd_tests::harness::{ALLOWED, TestApp};
use grabd_tests::mail_server::{MailServer, TlsMode};
use grabd_tests::receiver::Receiver;

use crate::tables::{self, Size, Tables};
use attack::Attack;

/// Days whose sizes are printed, besides the last one.
const SHOWN: [u32; 4] = [1, 2, 4, 7];
/// Background work runs every ten seconds: a table that did not shrink for this time is as small as it gets.
const QUIET: Duration = Duration::from_secs(25);
/// Time between two looks at the tables.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Longest wait for the background work of one day.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// Simulates `days` of abuse, each with `rounds` of everything that strangers can do, and prints the tables.
pub(crate) async fn measure(days: u32, rounds: u32) -> anyhow::Result<()> {
    let (mail, receiver) = (MailServer::start(TlsMode::None).await?, Receiver::start(ALLOWED).await?);
    let url = mail.url("");
    let settings = [
        ("accounts.sign_up", "true"),
        ("mail.smtp_url", &*url),
        ("mail.from", "grabd <grabd@example.com>"),
        ("webhooks.allow_http", "true"),
        ("http.trusted_proxies", "127.0.0.1/32"),
        ("oauth.registrations_per_hour", "1000000"),
        ("limits.async_queue", "1000"),
        // Otherwise accounts that were never verified are kept for longer than the simulation lasts.
        ("retention.unverified_days", "2"),
    ];
    let app = TestApp::start(1_000_000, &settings).await?;
    let tables = Tables::open(&app.data_dir().join("grabd.db")).await?;
    let mut attack = Attack::new(&app, &receiver);
    println!("{days} days with {rounds} rounds of abuse each; all limits per minute and hour are raised");
    let mut shown = Vec::new();
    for day in 1..=days {
        let began = Instant::now();
        let done = attack.day(day, rounds).await?;
        let attacked = began.elapsed();
        let full = tables.sizes().await?;
        tables.pass_a_day().await?;
        let left = settle(&tables).await?;
        println!(
            "day {day}: {done} requests in {attacked:.0?}; {} rows, {} after the background work of {:.0?}",
            total(&full),
            total(&left),
            began.elapsed() - attacked
        );
        if SHOWN.contains(&day) || day == days {
            shown.push((day, left));
        }
    }
    tables::print(&shown);
    tables.close().await?;
    drop(attack);
    app.finish().await
}

/// Waits until the background work has nothing more to delete. Returns what is left.
async fn settle(tables: &Tables) -> anyhow::Result<Vec<Size>> {
    let began = Instant::now();
    let (mut left, mut since) = (tables.sizes().await?, Instant::now());
    while since.elapsed() < QUIET {
        anyhow::ensure!(began.elapsed() < LONGEST, "the background work did not end within {LONGEST:?}");
        tokio::time::sleep(LOOK_EVERY).await;
        let now = tables.sizes().await?;
        if total(&now) != total(&left) {
            since = Instant::now();
        }
        left = now;
    }
    Ok(left)
}

fn total(sizes: &[Size]) -> i64 {
    sizes.iter().map(|size| size.rows).sum()
}

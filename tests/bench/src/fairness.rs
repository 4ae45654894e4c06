//! How long a single grab waits behind another team's flood.

use std::time::Instant;

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_tests::harness::ALLOWED;
use grabd_tests::site::Site;

use crate::service::Service;

/// Concurrent create requests.
const AT_ONCE: usize = 32;
const SINGLE: &str = "/colour/1/2/3";

/// Prints how many pages of the flood were opened before the page of the single grab, and how long that took.
pub(crate) async fn measure(queued: u32) -> anyhow::Result<()> {
    let site = Site::start(ALLOWED).await?;
    let slots = 4;
    let (limit, claimed) = (queued.to_string(), slots.to_string());
    let settings = [("GRABD_LIMITS__ASYNC_QUEUE", limit.as_str()), ("GRABD_BROWSER__SLOTS", claimed.as_str())];
    let service = Service::start_with(&settings).await?;
    let store = service.store().await?;
    let single = accounts::create_team(&store, "single", 1, Clock::system().now()).await?;
    store.close().await;

    let began = Instant::now();
    let url = site.url("/tiny");
    let flood = stream::iter(0..queued).map(|_| service.queue(&service.live_key, &url));
    flood.buffer_unordered(AT_ONCE).try_for_each(async |_| Ok(())).await?;
    let took = began.elapsed();
    println!("{queued} grabs queued in {took:.1?}, {:.0}/s", f64::from(queued) / took.as_secs_f64());

    let before = site.total_hits();
    let began = Instant::now();
    service.queue(single.live.expose(), &site.url(SINGLE)).await?;
    site.wait_for_hits(SINGLE, 1).await;
    let waited = began.elapsed();
    let order = site.order();
    let at = order.iter().position(|path| path == SINGLE).context("the single grab's page")?;
    let first = order.get(before..at).unwrap_or_default().iter().filter(|path| *path == "/tiny").count();
    println!(
        "the other team's single grab: {first} pages of the flood went first (at most {slots} slots + 2 teams), \
         {waited:.0?} to its page; {} of the flood were rendered until then",
        site.hits("/tiny")
    );
    service.stop().await
}

//! The control: without a guard, every page hits its canary. Otherwise the other tests would prove nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use futures::stream::{self, StreamExt, TryStreamExt};
use grabd_tests::hostile::channels::CHANNELS;
use grabd_tests::hostile::unguarded::UnguardedBrowser;
use grabd_tests::hostile::{Channel, HostileSite};

use super::channels::{AT_A_TIME, pages};

/// Time limit for the canaries of a page. Only reached if one is missed.
const WAIT_LIMIT: Duration = Duration::from_secs(8);

#[tokio::test(flavor = "multi_thread")]
async fn every_channel_reaches_its_canary_without_a_guard() -> Result<()> {
    // Web pages cannot load files even without a guard, so their control requests the same contents over HTTP.
    let hostile = HostileSite::start(CHANNELS, "@site@/files").await?;
    let browser = UnguardedBrowser::start().await?;
    let visits = stream::iter(pages(CHANNELS)).map(async |channels| {
        let names: Vec<_> = channels.iter().map(|channel| channel.name).collect();
        let expected: Vec<_> = channels.iter().filter(|c| c.no_control.is_none()).map(|c| c.name).collect();
        let tab = browser.open(&hostile.url(&names)).await?;
        let missing = hostile.canaries.missing(&expected, WAIT_LIMIT).await;
        browser.close(&tab).await?;
        Ok::<_, anyhow::Error>(missing)
    });
    let missing: Vec<_> = visits.buffer_unordered(AT_A_TIME).try_concat().await?;
    browser.stop().await?;

    let hit: BTreeSet<_> = hostile.canaries.hits().into_keys().collect();
    let (no_control, controlled): (Vec<&Channel>, Vec<&Channel>) =
        CHANNELS.iter().partition(|channel| channel.no_control.is_some());
    let unexpected: Vec<_> = no_control.iter().filter(|c| hit.contains(c.name)).map(|c| c.name).collect();
    println!("{} channels, {} of {} that can hit their canary did", CHANNELS.len(), hit.len(), controlled.len());
    println!("without a control: {}", names_and_reasons(&no_control));
    println!("hit although the table says that they cannot: {unexpected:?}");
    assert!(missing.is_empty(), "not hit: {missing:?}");
    Ok(())
}

fn names_and_reasons(channels: &[&Channel]) -> String {
    let reasons = channels.iter().map(|c| format!("{} ({})", c.name, c.no_control.unwrap_or_default()));
    reasons.collect::<Vec<_>>().join(", ")
}

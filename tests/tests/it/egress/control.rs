//! Every hostile page hits its canary when nobody hinders it; otherwise the other tests would prove nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use futures::stream::{self, StreamExt, TryStreamExt};
use grabd_tests::hostile::channels::CHANNELS;
use grabd_tests::hostile::unguarded::Unguarded;
use grabd_tests::hostile::{Channel, Hostile};

use super::channels::{AT_A_TIME, pages};

/// How long a page's canaries are waited for. It is only spent when one is missed.
const PATIENCE: Duration = Duration::from_secs(8);

#[tokio::test(flavor = "multi_thread")]
async fn every_hostile_page_works_without_a_guard() -> Result<()> {
    // Files are not loaded from the web even then: their control asks for the same contents over http.
    let hostile = Hostile::start(CHANNELS, "@site@/files").await?;
    let browser = Unguarded::start().await?;
    let visits = stream::iter(pages(CHANNELS)).map(async |channels| {
        let names: Vec<_> = channels.iter().map(|channel| channel.name).collect();
        let expected: Vec<_> = channels.iter().filter(|c| c.uncontrolled.is_none()).map(|c| c.name).collect();
        let tab = browser.open(&hostile.url(&names)).await?;
        let missing = hostile.canaries.missing(&expected, PATIENCE).await;
        browser.close(&tab).await?;
        Ok::<_, anyhow::Error>(missing)
    });
    let missing: Vec<_> = visits.buffer_unordered(AT_A_TIME).try_concat().await?;
    browser.stop().await?;

    let hit: BTreeSet<_> = hostile.canaries.hits().into_keys().collect();
    let (uncontrolled, controlled): (Vec<&Channel>, Vec<&Channel>) =
        CHANNELS.iter().partition(|channel| channel.uncontrolled.is_some());
    let surprises: Vec<_> = uncontrolled.iter().filter(|c| hit.contains(c.name)).map(|c| c.name).collect();
    println!("{} channels, {} of {} that can hit their canary did", CHANNELS.len(), hit.len(), controlled.len());
    println!("without a control: {}", names_and_reasons(&uncontrolled));
    println!("hit although the table says that they cannot: {surprises:?}");
    assert!(missing.is_empty(), "not hit: {missing:?}");
    Ok(())
}

fn names_and_reasons(channels: &[&Channel]) -> String {
    let reasons = channels.iter().map(|c| format!("{} ({})", c.name, c.uncontrolled.unwrap_or_default()));
    reasons.collect::<Vec<_>>().join(", ")
}

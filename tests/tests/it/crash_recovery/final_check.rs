//! Checks everything once all customers have finished.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use grabd_store::Store;
use grabd_tests::leftovers::{files_below, processes_in};
use grabd_tests::pixels::Colour;
use grabd_tests::site::behaviour::GREEN;
use serde_json::Value;
use tokio::time::interval;

use super::crash_test::{CrashTest, Team};
use super::customer::{image_path, is_given_up};
use super::database::TestDatabase;
use super::service::ServiceProcess;

impl CrashTest {
    /// Checks all rules that must hold at the end.
    pub(crate) async fn check_final_state(&self, service: ServiceProcess) -> Result<()> {
        let mut images = BTreeSet::new();
        let (mut ids, mut given_up, mut all) = (BTreeSet::new(), 0, 0);
        let database = TestDatabase::open(&self.dirs).await?;
        let grabs_with_webhooks = database.grabs_with_webhooks().await?;
        database.close().await?;
        let mut ends = BTreeSet::new();
        for (number, team) in self.teams.iter().enumerate() {
            let mut done = 0;
            for grab in self.grabs(team).await? {
                all += 1;
                let id = grab["id"].as_str().context("an id")?.to_owned();
                if grabs_with_webhooks.contains(&id) {
                    let event = if grab["status"] == "done" { "grab.done" } else { "grab.failed" };
                    ends.insert((format!("/{number}"), id.clone(), event));
                }
                match grab["status"].as_str() {
                    Some("done") if self.deleted().contains(&id) => {
                        ensure!(grab["image_url"].is_null(), "a deleted image is shown: {grab}");
                        done += 1;
                        ids.insert(id);
                    }
                    Some("done") => {
                        let path = grab["image_url"].as_str().and_then(image_path).context("an image_url")?;
                        let target = grab["target_url"].as_str().context("a target_url")?;
                        self.check_image(path, colour_of(target)?).await?;
                        images.insert(path.to_owned());
                        done += 1;
                        ids.insert(id);
                    }
                    Some("failed") if grab["error_message"].as_str().is_some_and(is_given_up) => {
                        given_up += 1;
                        self.acknowledged().retain(|_, acknowledged| *acknowledged != id);
                    }
                    Some("failed") => drop(ids.insert(id)),
                    status => bail!("the grab did not end: {status:?} {grab}"),
                }
            }
            let (free, held) = self.credits(team).await?;
            ensure!(held == 0, "{held} credits are still held");
            ensure!(free + done == i64::from(team.granted), "{free} left and {done} done of {} granted", team.granted);
            ensure!(done >= i64::from(team.seen_done.load(Ordering::SeqCst)), "a done grab is missing");
        }
        // A grab that was given up released its key, and its customer may or may not have retried.
        let acknowledged: BTreeSet<String> = self.acknowledged().values().cloned().collect();
        let lost: Vec<_> = acknowledged.difference(&ids).collect();
        ensure!(lost.is_empty(), "acknowledged grabs are missing: {lost:?}");
        let unacknowledged: Vec<_> = ids.difference(&acknowledged).collect();
        ensure!(unacknowledged.is_empty(), "grabs without an acknowledged create: {unacknowledged:?}");

        self.stop(service).await?;
        self.check_ledger().await?;
        let scheduled = self.finish_scheduled_work().await?;
        self.check_ledger().await?;
        self.check_messages(&ends)?;
        let files = files_below(&self.dirs.images())?;
        let (orphans, gone): (Vec<_>, Vec<_>) =
            (files.difference(&images).collect(), images.difference(&files).collect());
        ensure!(files == images, "files without a grab: {orphans:?}, images without a file: {gone:?}");
        let left = processes_in(&self.dirs.run_dir());
        ensure!(left.is_empty(), "browser processes remain: {left:?}");
        let directories: Vec<_> = std::fs::read_dir(self.dirs.run_dir()).into_iter().flatten().flatten().collect();
        ensure!(directories.is_empty(), "browser directories remain: {directories:?}");
        println!(
            "{all} grabs: {} with an image, {given_up} given up; {scheduled} images were left to delete",
            images.len()
        );
        Ok(())
    }

    async fn check_ledger(&self) -> Result<()> {
        let store = Store::open(&self.dirs.database_url()).await?;
        let drift = store.credits().verify_ledger().await?;
        store.close().await;
        ensure!(drift.is_empty(), "the ledger does not balance: {drift:?}");
        Ok(())
    }

    /// Waits until this many images are stored.
    pub(crate) async fn wait_for_stored_images(&self, count: usize) -> Result<()> {
        let mut ticks = interval(Duration::from_millis(20));
        while files_below(&self.dirs.images())?.len() < count {
            ticks.tick().await;
        }
        Ok(())
    }

    /// Starts the service after everything is due, so that it deletes the images without a grab and delivers the
    /// remaining messages. Returns the number of images to delete.
    async fn finish_scheduled_work(&self) -> Result<i64> {
        let database = TestDatabase::open(&self.dirs).await?;
        let scheduled = database.make_everything_due().await?;
        let service = self.start("").await?;
        database.wait_for_scheduled_work().await?;
        database.close().await?;
        self.stop(service).await?;
        Ok(scheduled)
    }

    /// All grabs of a team.
    async fn grabs(&self, team: &Team) -> Result<Vec<Value>> {
        let mut grabs: Vec<Value> = Vec::new();
        loop {
            let after = grabs.last().and_then(|grab| grab["id"].as_str());
            let after = after.map_or_else(String::new, |id| format!("&starting_after={id}"));
            let (status, _, page) = self
                .json(|client, base| client.get(format!("{base}/grabs?limit=100{after}")).bearer_auth(&team.key))
                .await?;
            ensure!(status == 200, "the list request returned {status} {page}");
            grabs.extend(page["data"].as_array().context("data")?.iter().cloned());
            if page["has_more"] == false {
                return Ok(grabs);
            }
        }
    }
}

/// The colour of a page, by its URL.
fn colour_of(target: &str) -> Result<Colour> {
    let Some((_, colour)) = target.split_once("/colour/") else { return Ok(GREEN) };
    let channels: Vec<u8> = colour
        .split(['/', '?'])
        .take(3)
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(|| target.to_owned())?;
    Ok([channels[0], channels[1], channels[2]])
}

//! Looks at everything once it is quiet.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use grabd_store::Store;
use grabd_tests::pixels::Colour;
use grabd_tests::remains::{files_below, processes_in};
use grabd_tests::site::behaviour::GREEN;
use serde_json::Value;
use tokio::time::interval;

use super::customer::{image_path, is_given_up};
use super::life::Life;
use super::tables::Tables;
use super::world::{Team, World};

impl World {
    /// Every rule that must hold when every customer has gone home.
    pub(crate) async fn judge(&self, life: Life) -> Result<()> {
        let mut pictures = BTreeSet::new();
        let (mut ids, mut given_up, mut all) = (BTreeSet::new(), 0, 0);
        let tables = Tables::open(&self.home).await?;
        let told_of = tables.told_of().await?;
        tables.close().await?;
        let mut ends = BTreeSet::new();
        for (number, team) in self.teams.iter().enumerate() {
            let mut done = 0;
            for grab in self.grabs(team).await? {
                all += 1;
                let id = grab["id"].as_str().context("an id")?.to_owned();
                if told_of.contains(&id) {
                    let event = if grab["status"] == "done" { "grab.done" } else { "grab.failed" };
                    ends.insert((format!("/{number}"), id.clone(), event));
                }
                match grab["status"].as_str() {
                    Some("done") if self.deleted().contains(&id) => {
                        ensure!(grab["image_url"].is_null(), "a deleted picture is shown: {grab}");
                        done += 1;
                        ids.insert(id);
                    }
                    Some("done") => {
                        let path = grab["image_url"].as_str().and_then(image_path).context("an image_url")?;
                        let target = grab["target_url"].as_str().context("a target_url")?;
                        self.shows(path, colour_of(target)?).await?;
                        pictures.insert(path.to_owned());
                        done += 1;
                        ids.insert(id);
                    }
                    Some("failed") if grab["error_message"].as_str().is_some_and(is_given_up) => {
                        given_up += 1;
                        self.acknowledged().retain(|_, acknowledged| *acknowledged != id);
                    }
                    Some("failed") => drop(ids.insert(id)),
                    status => bail!("a grab that never ends: {status:?} {grab}"),
                }
            }
            let (free, held) = self.credits(team).await?;
            ensure!(held == 0, "{held} credits are held for nobody");
            ensure!(free + done == i64::from(team.granted), "{free} left and {done} done of {} granted", team.granted);
            ensure!(done >= i64::from(team.seen_done.load(Ordering::SeqCst)), "a done grab is gone");
        }
        // What was given up freed its key, and its customer may have asked again or not.
        let acknowledged: BTreeSet<String> = self.acknowledged().values().cloned().collect();
        let lost: Vec<_> = acknowledged.difference(&ids).collect();
        ensure!(lost.is_empty(), "acknowledged creates are gone: {lost:?}");
        let twice: Vec<_> = ids.difference(&acknowledged).collect();
        ensure!(twice.is_empty(), "grabs that nobody was told of, although everybody asked until they were: {twice:?}");

        self.stop(life).await?;
        self.books_balance().await?;
        let owed = self.settles_what_it_owes().await?;
        self.books_balance().await?;
        self.judge_messages(&ends)?;
        let files = files_below(&self.home.images())?;
        let (orphans, gone): (Vec<_>, Vec<_>) =
            (files.difference(&pictures).collect(), pictures.difference(&files).collect());
        ensure!(files == pictures, "files without a grab: {orphans:?}, pictures without a file: {gone:?}");
        let left = processes_in(&self.home.run_dir());
        ensure!(left.is_empty(), "browsers outlive the service: {left:?}");
        let directories: Vec<_> = std::fs::read_dir(self.home.run_dir()).into_iter().flatten().flatten().collect();
        ensure!(directories.is_empty(), "browsers leave directories behind: {directories:?}");
        println!(
            "{all} grabs: {} with a picture, {given_up} given up; {owed} pictures were left to delete",
            pictures.len()
        );
        Ok(())
    }

    async fn books_balance(&self) -> Result<()> {
        let store = Store::open(&self.home.database_url()).await?;
        let drift = store.verify_ledger().await?;
        store.close().await;
        ensure!(drift.is_empty(), "the books do not balance: {drift:?}");
        Ok(())
    }

    /// Waits until this many pictures are stored, whoever's they are.
    pub(crate) async fn pictures_lie_there(&self, count: usize) -> Result<()> {
        let mut look = interval(Duration::from_millis(20));
        while files_below(&self.home.images())?.len() < count {
            look.tick().await;
        }
        Ok(())
    }

    /// A life long after all others deletes the pictures that are nobody's, whose number is the answer, and delivers the
    /// messages that are still owed.
    async fn settles_what_it_owes(&self) -> Result<i64> {
        let tables = Tables::open(&self.home).await?;
        let owed = tables.time_passes().await?;
        let life = self.begin("").await?;
        tables.nothing_is_owed().await?;
        tables.close().await?;
        self.stop(life).await?;
        Ok(owed)
    }

    /// Every grab of a team.
    async fn grabs(&self, team: &Team) -> Result<Vec<Value>> {
        let mut grabs: Vec<Value> = Vec::new();
        loop {
            let after = grabs.last().and_then(|grab| grab["id"].as_str());
            let after = after.map_or_else(String::new, |id| format!("&starting_after={id}"));
            let (status, _, page) = self
                .json(|client, base| client.get(format!("{base}/grabs?limit=100{after}")).bearer_auth(&team.key))
                .await?;
            ensure!(status == 200, "a list is answered {status} {page}");
            grabs.extend(page["data"].as_array().context("data")?.iter().cloned());
            if page["has_more"] == false {
                return Ok(grabs);
            }
        }
    }
}

/// The colour of a page, by its address.
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

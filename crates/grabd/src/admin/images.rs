//! `grabd admin images …`.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Subcommand;
use futures::{StreamExt, TryStreamExt};
use grabd_domain::grabs::ImageKey;
use grabd_images::{Images, Location};
use grabd_store::Store;
use grabd_store::image_places::StoredImage;
use serde_json::json;

use super::output::CommandOutput;
use crate::config::Config;
use crate::wiring;

/// Images that are marked, copied and unmarked together.
const BATCH: u32 = 100;
/// Images that are copied at the same time.
const CONCURRENT: usize = 4;
/// Time limit of storing one file.
const FILE_LIMIT: Duration = Duration::from_secs(120);
/// How often the progress is shown.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

const STEPS: &str = "The steps are: 1. Set images.url to the new place, and images.fallback_url to the old one. 2. \
                     Restart the service. 3. Run this command with the new place. 4. Empty images.fallback_url and restart.";
const AGAIN: &str = "nothing is lost; correct the cause and run the command again, which continues";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Move all images from `images.fallback_url` to `images.url`, while the service runs with both. If the command is
    /// interrupted, run it again: it continues.
    Move {
        /// The new place, which must be `images.url`: file:///path or s3://bucket/prefix.
        #[arg(long, value_name = "URL")]
        to: String,
    },
    /// Let the service start without a place that has no images any more, or whose images are given up.
    Forget {
        /// The place, as the service names it.
        url: String,
    },
}

pub(super) async fn run(config: &Config, store: &Store, command: &Command) -> anyhow::Result<CommandOutput> {
    match command {
        Command::Move { to } => move_all(config, store, to).await,
        Command::Forget { url } => forget(store, url).await,
    }
}

async fn forget(store: &Store, url: &str) -> anyhow::Result<CommandOutput> {
    let recorded = store.images().image_places().await?;
    if recorded.first.as_deref().is_none_or(|first| first != url) && !recorded.others.iter().any(|other| other == url) {
        let all: Vec<String> = recorded.first.into_iter().chain(recorded.others).collect();
        bail!("{url} is not recorded; recorded are: {}", all.join(", "));
    }
    store.images().forget_image_place(url).await?;
    Ok(CommandOutput::ok(format!("The service will start without {url}."), json!({ "forgotten": url })))
}

/// What was moved.
#[derive(Default)]
struct Moved {
    images: u64,
    bytes: u64,
    /// Images that are in neither place.
    missing: u64,
}

async fn move_all(config: &Config, store: &Store, to: &str) -> anyhow::Result<CommandOutput> {
    let to = Location::parse(to).with_context(|| format!("--to must be {}; got {to}", Location::ALLOWED))?;
    let places = wiring::image_places(config);
    ensure!(
        wiring::place_name(config, &to) == wiring::place_name(config, &wiring::images_location(config)),
        "images.url is {}, not {to}. {STEPS}",
        wiring::images_location(config)
    );
    let Some(from) = config.images.fallback() else { bail!("images.fallback_url is empty. {STEPS}") };
    // Otherwise the service would store new images in the old place, and delete them there only.
    ensure!(
        store.images().image_places().await? == places,
        "the service was last started with other places for images: restart it with these settings first. {STEPS}"
    );
    let images = Images::attach(&wiring::image_options(config)?, "move-").context("the places cannot be used")?;
    wiring::check_images(config, &images).await?;

    // Copies of images that were deleted while an earlier run copied them.
    let interrupted = store.images().moving_images().await?;
    for key in &interrupted {
        discard_if_deleted(store, &images, key).await.context(AGAIN)?;
    }
    store.images().unmark_moving_images(interrupted).await?;

    let total = store.images().count_stored_images().await?;
    let (mut moved, mut examined, mut after) = (Moved::default(), 0, None);
    let mut reported = Instant::now();
    loop {
        let page = store.images().stored_images(after, BATCH).await?;
        let Some(last) = page.last else { break };
        let keys: Vec<ImageKey> = page.images.iter().map(|image| image.key.clone()).collect();
        store.images().mark_moving_images(keys.clone()).await?;
        let copies = futures::stream::iter(&page.images).map(|image| move_one(store, &images, image));
        let results: Vec<Option<u64>> = copies.buffer_unordered(CONCURRENT).try_collect().await.context(AGAIN)?;
        store.images().unmark_moving_images(keys).await?;
        for bytes in results {
            match bytes {
                Some(0) => {}
                Some(bytes) => {
                    moved.images += 1;
                    moved.bytes += bytes;
                }
                None => moved.missing += 1,
            }
        }
        examined += u64::try_from(page.images.len()).unwrap_or(0);
        after = Some(last);
        if reported.elapsed() >= REPORT_INTERVAL {
            reported = Instant::now();
            eprintln!("{examined} of {} images examined, {} moved", total.max(examined), moved.images);
        }
    }
    store.images().forget_image_place(&wiring::place_name(config, &from)).await?;
    Ok(report(&moved, &from, &to))
}

fn report(Moved { images, bytes, missing }: &Moved, from: &Location, to: &Location) -> CommandOutput {
    let mut text = format!(
        "Moved {images} images ({} MB) to {to}. No image is left in {from}.\nEmpty images.fallback_url and restart the \
         service.",
        bytes / 1_000_000
    );
    if *missing > 0 {
        text += &format!("\n{missing} images are in neither place; their URLs answer 404.");
    }
    let json = json!({ "images": images, "bytes": bytes, "missing": missing, "to": to.to_string() });
    CommandOutput { text, json, success: *missing == 0 }
}

/// Moves an image. Returns the bytes, 0 if it was moved before or deleted meanwhile; `None` if it is in neither place.
async fn move_one(store: &Store, images: &Images, image: &StoredImage) -> anyhow::Result<Option<u64>> {
    let StoredImage { key, attachments } = image;
    let pulled = images.pull(key, attachments, FILE_LIMIT).await?;
    if !discard_if_deleted(store, images, key).await? {
        return Ok(Some(0));
    }
    match pulled {
        Some(bytes) => {
            images.delete_from_fallback(key).await?;
            Ok(Some(bytes))
        }
        None if images.image(key).size().await?.is_some() => Ok(Some(0)),
        // It may have been deleted just now.
        None => Ok(store.grabs().find_image(key).await?.is_none().then_some(0)),
    }
}

/// Deletes what was copied of an image that was deleted meanwhile. Returns whether the image still exists: then the
/// service deletes it, in both places.
async fn discard_if_deleted(store: &Store, images: &Images, key: &ImageKey) -> anyhow::Result<bool> {
    let exists = store.grabs().find_image(key).await?.is_some();
    if !exists {
        images.delete(key).await?;
    }
    Ok(exists)
}

//! Customers create grabs, wait for them, and check the results at once.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use grabd_tests::pixels::{self, Colour, EXACT};
use grabd_tests::site::behaviour::GREEN;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::crash_test::{CrashTest, Team};
use super::random::Rng;

/// Pause of a customer after a refusal. It limits the load.
const PACE: Duration = Duration::from_millis(100);

/// How often a deletion is sent until it succeeds.
const MAX_DELETIONS: u32 = 50;

/// Messages of failures caused by a slow machine.
const TOO_LATE: [&str; 5] = [
    "timed out",
    "could not be rendered within",
    "did not answer in time",
    "did not finish within",
    "The page did not respond",
];

/// A page and its expected result.
#[derive(Debug)]
pub(crate) enum Page {
    /// A page of one colour that responds after this many milliseconds.
    Colour(Colour, u64),
    /// Always responds 403.
    Refuses,
    /// Responds 403 once, then shows a green page.
    RefusesOnce(String),
}

impl Page {
    fn of(rng: &mut Rng, allow_refusal: bool) -> Self {
        if rng.one_in(10) && allow_refusal {
            return Self::Refuses;
        }
        let [red, green, blue, ..] = rng.next().to_le_bytes();
        Self::Colour([red, green, blue], if rng.one_in(4) { 400 } else { 0 })
    }

    fn path(&self) -> String {
        match self {
            Self::Colour([red, green, blue], after) => format!("/colour/{red}/{green}/{blue}?after={after}"),
            Self::Refuses => "/status/403".to_owned(),
            Self::RefusesOnce(name) => format!("/refuses-once/{name}"),
        }
    }
}

impl CrashTest {
    /// Creates one grab after another until `stop`.
    pub(crate) async fn customer(&self, mut rng: Rng, stop: &CancellationToken) -> Result<()> {
        while !stop.is_cancelled() {
            let team = rng.pick(&self.teams);
            let page = Page::of(&mut rng, self.pages_refuse.load(Ordering::SeqCst));
            let key = format!("key-{}", self.keys.fetch_add(1, Ordering::SeqCst));
            let (early, late) = (rng.one_in(10), rng.one_in(10));
            let grabbed = match rng.one_in(2) {
                true => self.synchronous(team, &page, &key).await,
                false => self.queued(team, &page, &key, early).await,
            };
            if late {
                let id = self.acknowledged().get(&key).cloned();
                if let Some(id) = id {
                    self.delete(team, &id).await.with_context(|| key.clone())?;
                }
            }
            let is_refused = !grabbed.with_context(|| format!("{key}: {page:?}"))?;
            if is_refused {
                sleep(PACE).await;
            }
        }
        Ok(())
    }

    /// A synchronous grab. Returns `false` if it is refused.
    async fn synchronous(&self, team: &Team, page: &Page, key: &str) -> Result<bool> {
        loop {
            let (status, grab_id, body) = self.create(team, page, key, "").await?;
            let code = body["error"]["code"].as_str().unwrap_or_default();
            match (status, code) {
                (200, _) => {
                    self.acknowledge(key, body["id"].as_str())?;
                    self.check_done(team, &body, page).await?;
                    return Ok(true);
                }
                // The grab was given up, which costs nothing. The key keeps returning this.
                (500, "internal_error") if grab_id.is_some() => return Ok(false),
                // The first request with this key is, or may be, still in progress. The key prevents a second grab.
                (409, "idempotency_conflict") | (500, "internal_error") => sleep(PACE).await,
                // Too many grabs of the process before wait for a slot. Nothing was stored.
                (429, "rate_limit_exceeded") => sleep(PACE).await,
                (402, "credits_exhausted") => return Ok(false),
                (422 | 500, "render_blocked" | "render_failed") => {
                    self.acknowledge(key, grab_id.as_deref())?;
                    self.check_failed(page, body["error"]["message"].as_str())?;
                    return Ok(true);
                }
                _ => bail!("a synchronous create returned {status} {body}"),
            }
        }
    }

    /// An asynchronous grab, which may be deleted before it ends. Returns `false` if it is refused.
    async fn queued(&self, team: &Team, page: &Page, key: &str, deletes: bool) -> Result<bool> {
        loop {
            let (status, _, body) = self.create(team, page, key, "?async=true").await?;
            match (status, body["error"]["code"].as_str().unwrap_or_default()) {
                (202, _) => {
                    let id = body["id"].as_str().context("an id")?;
                    self.acknowledge(key, Some(id))?;
                    if deletes {
                        self.delete(team, id).await?;
                    }
                    self.follow(team, id, page).await?;
                    return Ok(true);
                }
                (500, "internal_error") => sleep(PACE).await,
                (402, "credits_exhausted") | (429, "queue_limit_exceeded") => return Ok(false),
                _ => bail!("an asynchronous create returned {status} {body}"),
            }
        }
    }

    /// Creates an asynchronous grab, which must be accepted. Returns its id.
    pub(crate) async fn asynchronous(&self, team: &Team, page: &Page, key: &str) -> Result<String> {
        let (status, _, body) = self.create(team, page, key, "?async=true").await?;
        ensure!(status == 202, "{status} {body}");
        let id = body["id"].as_str().context("an id")?;
        self.acknowledge(key, Some(id))?;
        Ok(id.to_owned())
    }

    /// Deletes the image of a grab, whether or not the grab has ended.
    async fn delete(&self, team: &Team, id: &str) -> Result<()> {
        self.deleted().insert(id.to_owned());
        // A slow machine may not answer in time, which is an error of the service. Deletions may be repeated.
        for _ in 0..MAX_DELETIONS {
            let deleted = self
                .send_until_answered(|client, base| client.delete(format!("{base}/grabs/{id}")).bearer_auth(&team.key))
                .await?;
            match deleted.status().as_u16() {
                204 => return Ok(()),
                500 => sleep(PACE).await,
                status => bail!("the deletion returned {status}"),
            }
        }
        bail!("the deletion returned 500 {MAX_DELETIONS} times")
    }

    async fn create(&self, team: &Team, page: &Page, key: &str, query: &str) -> Result<(u16, Option<String>, Value)> {
        let body = json!({ "url": self.site.url(&page.path()), "width": 320, "height": 240 });
        self.json(|client, base| {
            let request = client.post(format!("{base}/grabs{query}")).bearer_auth(&team.key);
            request.header("idempotency-key", key).json(&body)
        })
        .await
    }

    /// Waits for the end of a grab, across restarts.
    pub(crate) async fn follow(&self, team: &Team, id: &str, page: &Page) -> Result<()> {
        loop {
            let (status, _, grab) = self
                .json(|client, base| {
                    client.get(format!("{base}/grabs/{id}")).bearer_auth(&team.key).header("prefer", "wait=5")
                })
                .await?;
            ensure!(status == 200, "reading an acknowledged grab returned {status} {grab}");
            match grab["status"].as_str() {
                Some("done") => return self.check_done(team, &grab, page).await,
                Some("failed") => return self.check_failed(page, grab["error_message"].as_str()),
                Some("pending" | "processing") => {}
                other => bail!("unexpected status {other:?}"),
            }
        }
    }

    /// Checks that the image exists as soon as the grab is done, and shows the right page.
    async fn check_done(&self, team: &Team, grab: &Value, page: &Page) -> Result<()> {
        team.seen_done.fetch_add(1, Ordering::SeqCst);
        self.ended.send_modify(|ended| *ended += 1);
        if grab["id"].as_str().is_some_and(|id| self.deleted().contains(id)) {
            ensure!(grab["image_url"].is_null(), "a deleted image is shown: {grab}");
            ensure!(!matches!(page, Page::Refuses), "a page that refuses was charged: {grab}");
            return Ok(());
        }
        let path = grab["image_url"].as_str().and_then(image_path).context("a done grab has an image_url")?;
        let colour = match page {
            Page::Colour(colour, _) => *colour,
            Page::RefusesOnce(_) => GREEN,
            Page::Refuses => bail!("a page that refuses was charged: {grab}"),
        };
        self.check_image(path, colour).await
    }

    /// Downloads an image and checks its colour.
    pub(crate) async fn check_image(&self, path: &str, colour: Colour) -> Result<()> {
        let image = loop {
            // The path of an image does not depend on the service process, but its origin does.
            let response = self
                .send_until_answered(|client, base| client.get(format!("{}/{path}", base.trim_end_matches("/v1"))))
                .await?;
            let status = response.status();
            ensure!(status == 200, "the image of a done grab, {path}, returned {status}");
            if let Ok(image) = response.bytes().await {
                break image;
            }
        };
        let image = image::load_from_memory(&image).with_context(|| format!("{path} is not an image"))?.to_rgb8();
        let (width, height) = image.dimensions();
        let whole = pixels::Patch { x: 0, y: 0, width, height, colour };
        ensure!(pixels::shows(&image, whole, EXACT), "{path} does not show the colour {colour:?}");
        Ok(())
    }

    fn check_failed(&self, page: &Page, message: Option<&str>) -> Result<()> {
        self.ended.send_modify(|ended| *ended += 1);
        let message = message.context("no error message")?;
        // Excused failures, which are never charged: three lost attempts, or a slow machine.
        let is_excused = is_given_up(message)
            || TOO_LATE.iter().any(|late| message.contains(late))
            || (message.contains("crashed the browser") && self.browsers_die.load(Ordering::SeqCst));
        match page {
            Page::Colour(..) | Page::RefusesOnce(_) => ensure!(is_excused, "a page failed unexpectedly: {message}"),
            Page::Refuses => {
                ensure!(is_excused || message.contains("refused"), "a page that refuses failed with: {message}");
            }
        }
        Ok(())
    }

    fn acknowledge(&self, key: &str, id: Option<&str>) -> Result<()> {
        let id = id.context("no grab id in the response")?.to_owned();
        let before = self.acknowledged().insert(key.to_owned(), id.clone());
        ensure!(before.as_ref().is_none_or(|before| *before == id), "{key} made two grabs: {before:?} and {id}");
        Ok(())
    }
}

/// Whether the grab failed because its attempts were lost.
pub(crate) fn is_given_up(message: &str) -> bool {
    message.contains("on our side")
}

/// The path of an image URL, from `i/`.
pub(crate) fn image_path(url: &str) -> Option<&str> {
    url.find("/i/").map(|at| &url[at + 1..])
}

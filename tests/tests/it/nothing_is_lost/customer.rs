//! Customers: they ask, wait, and look at once at what they get.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use grabd_tests::pixels::{self, Colour, EXACT};
use grabd_tests::site::behaviour::GREEN;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::chance::Chance;
use super::world::{Team, World};

/// What a refused customer waits before asking for something else. It paces the load and decides nothing.
const PACE: Duration = Duration::from_millis(100);

/// What is said of a page that came too late, or of a browser that took too long over it.
const TOO_LATE: [&str; 4] =
    ["timed out", "could not be rendered within", "did not answer in time", "The page did not respond"];

/// A page and what is known of it.
#[derive(Debug)]
pub(crate) enum Page {
    /// Of one colour, and this many milliseconds late.
    Colour(Colour, u64),
    /// Refuses for good.
    Refuses,
    /// Refuses once, and is green then.
    RefusesOnce(String),
}

impl Page {
    fn of(chance: &mut Chance, may_refuse: bool) -> Self {
        if chance.one_in(10) && may_refuse {
            return Self::Refuses;
        }
        let [red, green, blue, ..] = chance.next().to_le_bytes();
        Self::Colour([red, green, blue], if chance.one_in(4) { 400 } else { 0 })
    }

    fn path(&self) -> String {
        match self {
            Self::Colour([red, green, blue], after) => format!("/colour/{red}/{green}/{blue}?after={after}"),
            Self::Refuses => "/status/403".to_owned(),
            Self::RefusesOnce(name) => format!("/refuses-once/{name}"),
        }
    }
}

impl World {
    /// Asks for one grab after the other until `stop`.
    pub(crate) async fn customer(&self, mut chance: Chance, stop: &CancellationToken) -> Result<()> {
        while !stop.is_cancelled() {
            let team = chance.pick(&self.teams);
            let page = Page::of(&mut chance, self.pages_refuse.load(Ordering::SeqCst));
            let key = format!("key-{}", self.keys.fetch_add(1, Ordering::SeqCst));
            let (early, late) = (chance.one_in(10), chance.one_in(10));
            let grabbed = match chance.one_in(2) {
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

    /// A grab whose caller holds the line; `false` when it is refused.
    async fn synchronous(&self, team: &Team, page: &Page, key: &str) -> Result<bool> {
        loop {
            let (status, named, body) = self.create(team, page, key, "").await?;
            let code = body["error"]["code"].as_str().unwrap_or_default();
            match (status, code) {
                (200, _) => {
                    self.acknowledge(key, body["id"].as_str())?;
                    self.ends_well(team, &body, page).await?;
                    return Ok(true);
                }
                // It was given up, which costs nothing; the key goes on to say so.
                (500, "internal_error") if named.is_some() => return Ok(false),
                // The first try of this key is still under way; or it may be: the key keeps it from happening twice.
                (409, "idempotency_conflict") | (500, "internal_error") => sleep(PACE).await,
                (402, "credits_exhausted") => return Ok(false),
                (422 | 500, "render_blocked" | "render_failed") => {
                    self.acknowledge(key, named.as_deref())?;
                    self.ends_badly(page, body["error"]["message"].as_str())?;
                    return Ok(true);
                }
                _ => bail!("a synchronous create was answered {status} {body}"),
            }
        }
    }

    /// A grab whose caller asks again, and who may have no use for its picture any more by then.
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
                _ => bail!("an asynchronous create was answered {status} {body}"),
            }
        }
    }

    /// A grab that must be accepted; its id.
    pub(crate) async fn asynchronous(&self, team: &Team, page: &Page, key: &str) -> Result<String> {
        let (status, _, body) = self.create(team, page, key, "?async=true").await?;
        ensure!(status == 202, "{status} {body}");
        let id = body["id"].as_str().context("an id")?;
        self.acknowledge(key, Some(id))?;
        Ok(id.to_owned())
    }

    /// Has the picture of a grab deleted, that of one which has not ended too.
    async fn delete(&self, team: &Team, id: &str) -> Result<()> {
        self.deleted().insert(id.to_owned());
        let deleted =
            self.answer(|client, base| client.delete(format!("{base}/grabs/{id}")).bearer_auth(&team.key)).await?;
        let status = deleted.status().as_u16();
        ensure!(status == 204, "a deletion is answered {status}");
        Ok(())
    }

    async fn create(&self, team: &Team, page: &Page, key: &str, query: &str) -> Result<(u16, Option<String>, Value)> {
        let wanted = json!({ "url": self.site.url(&page.path()), "width": 320, "height": 240 });
        self.json(|client, base| {
            let request = client.post(format!("{base}/grabs{query}")).bearer_auth(&team.key);
            request.header("idempotency-key", key).json(&wanted)
        })
        .await
    }

    /// Waits for the end of a grab, over as many lives as it takes.
    pub(crate) async fn follow(&self, team: &Team, id: &str, page: &Page) -> Result<()> {
        loop {
            let (status, _, grab) = self
                .json(|client, base| {
                    client.get(format!("{base}/grabs/{id}")).bearer_auth(&team.key).header("prefer", "wait=5")
                })
                .await?;
            ensure!(status == 200, "an acknowledged grab is answered {status} {grab}");
            match grab["status"].as_str() {
                Some("done") => return self.ends_well(team, &grab, page).await,
                Some("failed") => return self.ends_badly(page, grab["error_message"].as_str()),
                Some("pending" | "processing") => {}
                other => bail!("a status {other:?}"),
            }
        }
    }

    /// The picture is there the moment the grab is done, and of the right page.
    async fn ends_well(&self, team: &Team, grab: &Value, page: &Page) -> Result<()> {
        team.seen_done.fetch_add(1, Ordering::SeqCst);
        self.ended.send_modify(|ended| *ended += 1);
        if grab["id"].as_str().is_some_and(|id| self.deleted().contains(id)) {
            ensure!(grab["image_url"].is_null(), "a deleted picture is shown: {grab}");
            ensure!(!matches!(page, Page::Refuses), "a page that refuses was charged: {grab}");
            return Ok(());
        }
        let path = grab["image_url"].as_str().and_then(image_path).context("a done grab has an image_url")?;
        let colour = match page {
            Page::Colour(colour, _) => *colour,
            Page::RefusesOnce(_) => GREEN,
            Page::Refuses => bail!("a page that refuses was charged: {grab}"),
        };
        self.shows(path, colour).await
    }

    /// Fetches a picture and looks at it.
    pub(crate) async fn shows(&self, path: &str, colour: Colour) -> Result<()> {
        let image = loop {
            // Where pictures lie does not depend on the life; where they are reached does.
            let response =
                self.answer(|client, base| client.get(format!("{}/{path}", base.trim_end_matches("/v1")))).await?;
            let status = response.status();
            ensure!(status == 200, "the picture of a done grab, {path}, is answered {status}");
            if let Ok(image) = response.bytes().await {
                break image;
            }
        };
        let picture = image::load_from_memory(&image).with_context(|| format!("{path} is no picture"))?.to_rgb8();
        let (width, height) = picture.dimensions();
        let whole = pixels::Patch { x: 0, y: 0, width, height, colour };
        ensure!(pixels::shows(&picture, whole, EXACT), "{path} is the picture of another page than {colour:?}");
        Ok(())
    }

    fn ends_badly(&self, page: &Page, message: Option<&str>) -> Result<()> {
        self.ended.send_modify(|ended| *ended += 1);
        let message = message.context("why it failed")?;
        // Ours, after three lost attempts, or too late on a machine that is slow; never charged.
        let is_excused = is_given_up(message)
            || TOO_LATE.iter().any(|late| message.contains(late))
            || (message.contains("crashed the browser") && self.browsers_die.load(Ordering::SeqCst));
        match page {
            Page::Colour(..) | Page::RefusesOnce(_) => ensure!(is_excused, "a good page failed: {message}"),
            Page::Refuses => ensure!(is_excused || message.contains("refused"), "it refuses, but: {message}"),
        }
        Ok(())
    }

    fn acknowledge(&self, key: &str, id: Option<&str>) -> Result<()> {
        let id = id.context("the grab of an answer")?.to_owned();
        let before = self.acknowledged().insert(key.to_owned(), id.clone());
        ensure!(before.as_ref().is_none_or(|before| *before == id), "{key} made two grabs: {before:?} and {id}");
        Ok(())
    }
}

/// Did the grab end because its attempts were lost?
pub(crate) fn is_given_up(message: &str) -> bool {
    message.contains("on our side")
}

/// `i/…` of an image's address.
pub(crate) fn image_path(url: &str) -> Option<&str> {
    url.find("/i/").map(|at| &url[at + 1..])
}

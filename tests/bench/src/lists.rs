//! The cost of a list page for a long history compared with a short one, measured on the SQLite store.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures::stream::{self, TryStreamExt};
use grabd_domain::Timestamp;
use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Failure, FailureReason, ImageKey, RenderMetadata, State, Status};
use grabd_domain::ids::{GrabId, TeamId};
use grabd_store::Store;
use grabd_store::accounts::NewTeam;
use grabd_store::grabs::{Cursor, NewPlaceholder, PageRequest};
use uuid::Uuid;

/// Grabs in the short history.
const FEW: u64 = 1000;
/// One in this many grabs has failed, so that half of the short history contains a full page of failed grabs.
const FAILED_OF: u64 = 20;
/// Grabs per page.
const LIMIT: u32 = 25;
/// Pages read per kind, alternating between the histories.
const TURNS: usize = 400;
/// Concurrent writes, so that they share commits.
const AT_ONCE: usize = 256;

/// The kinds of pages: status filter, and whether from the middle of the history.
const KINDS: [(&str, Option<Status>, bool); 6] = [
    ("first page", None, false),
    ("middle page", None, true),
    ("first page of done", Some(Status::Done), false),
    ("middle page of done", Some(Status::Done), true),
    ("first page of failed", Some(Status::Failed), false),
    ("middle page of failed", Some(Status::Failed), true),
];

/// Measures both histories alternately, so that load on the machine affects both.
pub(super) async fn measure(many: u64) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let histories = [History::make(directory.path(), FEW).await?, History::make(directory.path(), many).await?];
    println!("\npages of {LIMIT} grabs, median µs ({TURNS} of each, in turn)");
    println!("{:<24}{:>12}{:>12}{:>9}", "page", FEW, many, "ratio");
    for (name, status, from_middle) in KINDS {
        let mut took = [Vec::new(), Vec::new()];
        for turn in 0..=TURNS {
            for (history, took) in histories.iter().zip(&mut took) {
                let began = Instant::now();
                history.read(status, from_middle).await?;
                // The first read warms caches and is not counted.
                if turn > 0 {
                    took.push(began.elapsed());
                }
            }
        }
        let [few, many] = took.map(median);
        println!("{name:<24}{few:>12.0}{many:>12.0}{:>9.2}", many / few);
    }
    for history in histories {
        history.store.close().await;
    }
    Ok(())
}

struct History {
    store: Store,
    team: TeamId,
    middle: GrabId,
}

impl History {
    async fn make(directory: &std::path::Path, grabs: u64) -> anyhow::Result<Self> {
        let store = Store::open(&format!("sqlite://{}", directory.join(format!("{grabs}.db")).display())).await?;
        store.migrate().await?;
        let team = TeamId(Uuid::from_u128(1));
        store
            .accounts()
            .create_team(NewTeam { id: team, name: "lists".to_owned(), now: Timestamp::from_ms(0) })
            .await?;
        let request = CaptureRequest { url: Some("https://example.com/".to_owned()), ..CaptureRequest::default() };
        let spec = CaptureSpec::parse(&request)?;
        let began = Instant::now();
        stream::iter((1..=grabs).map(Ok::<u64, anyhow::Error>))
            .try_for_each_concurrent(AT_ONCE, |number| {
                let (store, spec) = (&store, spec.clone());
                async move {
                    let (now, outcome) = (at(number)?, outcome(number)?);
                    let new = NewPlaceholder {
                        id: id(number),
                        team,
                        creator: None,
                        spec,
                        now,
                        outcome,
                        idempotency: None,
                        fingerprint: None,
                        ceiling: None,
                    };
                    store.grabs().create_placeholder(new).await?;
                    Ok(())
                }
            })
            .await?;
        println!("created a history of {grabs} grabs in {:.1} s", began.elapsed().as_secs_f64());
        Ok(Self { store, team, middle: id(grabs / 2) })
    }

    async fn read(&self, status: Option<Status>, from_middle: bool) -> anyhow::Result<()> {
        let cursor = from_middle.then_some(Cursor::After(self.middle));
        let page = PageRequest { limit: LIMIT, status, cursor, ..PageRequest::default() };
        let listed =
            self.store.grabs().list_grabs(self.team, Environment::Test, page).await?.context("the cursor is known")?;
        ensure!(listed.grabs.len() == usize::try_from(LIMIT)?, "a page of {} grabs", listed.grabs.len());
        Ok(())
    }
}

fn id(number: u64) -> GrabId {
    GrabId(Uuid::from_u128(u128::from(number) << 64 | 7))
}

fn at(number: u64) -> anyhow::Result<Timestamp> {
    Ok(Timestamp::from_ms(i64::try_from(number)?))
}

fn outcome(number: u64) -> anyhow::Result<State> {
    let (finished_at, metadata) = (at(number)?, RenderMetadata::default());
    Ok(match number % FAILED_OF {
        0 => State::Failed { finished_at, failure: Failure::new(FailureReason::RenderFailed, "It failed."), metadata },
        _ => State::Done {
            finished_at,
            image: Some(ImageKey::new(u128::from(number), "png")),
            size_bytes: 1,
            execution_ms: 1,
            metadata,
        },
    })
}

/// The median in microseconds.
fn median(mut took: Vec<Duration>) -> f64 {
    took.sort_unstable();
    took.get(took.len() / 2).map_or(0.0, |median| median.as_secs_f64() * 1e6)
}

//! Letters to people: queued, and handed to the operator's mail server, which is told to nobody else and asked directly,
//! as the database is: its address is the operator's word and no caller's.
//!
//! `letters` is what they say, `smtp` how they are handed over. The queue lives in memory: a letter that is lost with the
//! process is asked for again by whoever misses it.

pub(crate) mod letters;
mod quota;
mod smtp;

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use grabd_domain::accounts::Email;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::core::Core;

pub(crate) use quota::Quotas;
pub use smtp::{Error, Server, Smtp};

/// Letters that may wait. Beyond that the mail server is down, and those who ask are told.
const WAITING: usize = 200;
/// Letters under way at the same time, those between two tries among them.
const AT_ONCE: usize = 8;
/// How long one try may take, from the connection to the server's last word.
const LIMIT: Duration = Duration::from_secs(30);
/// What is waited before each further try: servers that want to know whether one comes back want a minute at most, and
/// whoever waits in front of a browser has looked away after that.
const AGAIN: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(60)];
/// How long the letters that are left at the end may take, together.
const FAREWELL: Duration = Duration::from_secs(10);

/// A letter.
#[derive(Clone)]
pub(crate) struct Letter {
    pub(crate) to: Email,
    pub(crate) subject: String,
    pub(crate) text: String,
}

/// The letter was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Where letters are dropped.
#[derive(Clone)]
pub(crate) struct Letterbox(mpsc::Sender<Letter>);

/// A letterbox, and what falls into it.
pub(crate) fn letterbox() -> (Letterbox, mpsc::Receiver<Letter>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Letterbox(sender), receiver)
}

impl Letterbox {
    /// Leaves a letter to be sent soon.
    ///
    /// # Errors
    /// When too many are waiting.
    pub(crate) fn post(&self, letter: Letter) -> Result<(), Full> {
        self.0.try_send(letter).map_err(|_| {
            tracing::error!("a letter was not taken: too many wait for the mail server");
            Full
        })
    }
}

/// Runs until the core stops, then until what was left has been tried once more.
pub(crate) async fn run(core: Core, smtp: Smtp, mut letters: mpsc::Receiver<Letter>) {
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            () = core.stop.cancelled() => break,
            Some(()) = under_way.next(), if !under_way.is_empty() => {}
            Some(letter) = letters.recv(), if under_way.len() < AT_ONCE => {
                under_way.push(deliver(&smtp, letter, &core.stop));
            }
        }
    }
    letters.close();
    let rest = async {
        loop {
            while under_way.len() < AT_ONCE
                && let Ok(letter) = letters.try_recv()
            {
                under_way.push(deliver(&smtp, letter, &core.stop));
            }
            if under_way.next().await.is_none() {
                break;
            }
        }
    };
    if timeout(FAREWELL, rest).await.is_err() {
        tracing::warn!("letters were lost: the mail server did not take them before the end");
    }
}

/// Hands a letter over, in a few tries where the server may think better of it. What it says is in no log: it opens doors.
async fn deliver(smtp: &Smtp, letter: Letter, stop: &CancellationToken) {
    let subject = letter.subject.as_str();
    let mut waits = AGAIN.iter();
    loop {
        let error = match timeout(LIMIT, smtp.hand_over(&letter)).await {
            Ok(Ok(())) => {
                tracing::info!(subject, "a letter was handed to the mail server");
                return;
            }
            Ok(Err(error)) if error.is_final() => {
                tracing::error!(subject, %error, "the mail server refused a letter");
                return;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", LIMIT.as_secs()),
        };
        let Some(wait) = waits.next() else {
            tracing::error!(subject, error, "a letter was given up");
            return;
        };
        tracing::warn!(subject, error, again_in_s = wait.as_secs(), "a letter could not be handed over; trying again");
        tokio::select! {
            () = sleep(*wait) => {}
            // The last try is made at once.
            () = stop.cancelled(), if !stop.is_cancelled() => waits = AGAIN[..0].iter(),
        }
    }
}

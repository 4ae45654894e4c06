//! Outgoing e-mail: queued, then sent through the operator's mail server. The connection does not pass the address
//! guard, since the server's address comes from the configuration and never from a caller.
//!
//! `templates` has the texts, `smtp` the transport. The queue is in memory: a message that is lost with the process has
//! to be requested again.

mod quota;
mod smtp;
pub(crate) mod templates;

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use grabd_domain::accounts::Email;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::core::Core;

pub(crate) use quota::Quotas;
pub use smtp::{Error, Server, Smtp};

/// Queue capacity. A full queue means that the mail server is down, and new messages are refused.
const QUEUE_CAPACITY: usize = 200;
/// Messages in progress at the same time, including those that wait for a retry.
const MAX_CONCURRENT: usize = 8;
/// Time limit of one try, from the connection to the server's last reply.
const TRY_TIMEOUT: Duration = Duration::from_secs(30);
/// Delays before each retry. Greylisting servers accept after a minute at most, and a person in front of a browser does
/// not wait longer.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(60)];
/// Time limit for sending the remaining messages at shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// An e-mail to one person.
#[derive(Clone)]
pub(crate) struct MailMessage {
    pub(crate) to: Email,
    pub(crate) subject: String,
    pub(crate) text: String,
}

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueFull;

/// The sending half of the mail queue.
#[derive(Clone)]
pub(crate) struct Mailer(mpsc::Sender<MailMessage>);

/// Creates the mail queue.
pub(crate) fn mailer() -> (Mailer, mpsc::Receiver<MailMessage>) {
    let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
    (Mailer(sender), receiver)
}

/// A place in the queue for one message.
pub(crate) struct Place<'a>(mpsc::Permit<'a, MailMessage>);

impl Place<'_> {
    /// Queues the message.
    pub(crate) fn send(self, message: MailMessage) {
        self.0.send(message);
    }
}

impl Mailer {
    /// Reserves a place for a message whose link is stored first.
    ///
    /// # Errors
    /// [`QueueFull`] when too many messages are waiting.
    pub(crate) fn reserve(&self) -> Result<Place<'_>, QueueFull> {
        self.0.try_reserve().map(Place).map_err(|_| {
            tracing::error!("message refused: the mail queue is full");
            QueueFull
        })
    }

    /// Queues a message.
    ///
    /// # Errors
    /// [`QueueFull`] when too many messages are waiting.
    pub(crate) fn enqueue(&self, message: MailMessage) -> Result<(), QueueFull> {
        self.0.try_send(message).map_err(|_| {
            tracing::error!("message dropped: the mail queue is full");
            QueueFull
        })
    }
}

/// Sends queued messages until the core stops, then tries the remaining ones once.
pub(crate) async fn run(core: Core, smtp: Smtp, mut queue: mpsc::Receiver<MailMessage>) {
    let mut sending = FuturesUnordered::new();
    loop {
        tokio::select! {
            () = core.stop.cancelled() => break,
            Some(()) = sending.next(), if !sending.is_empty() => {}
            Some(message) = queue.recv(), if sending.len() < MAX_CONCURRENT => {
                sending.push(send_with_retries(&core, &smtp, message));
            }
        }
    }
    queue.close();
    let rest = async {
        loop {
            while sending.len() < MAX_CONCURRENT
                && let Ok(message) = queue.try_recv()
            {
                sending.push(send_with_retries(&core, &smtp, message));
            }
            if sending.next().await.is_none() {
                break;
            }
        }
    };
    if timeout(DRAIN_TIMEOUT, rest).await.is_err() {
        tracing::warn!("messages were lost: the mail server did not accept them before shutdown");
    }
}

/// Sends a message, with retries after temporary errors. The text is never logged, since it contains secret links.
async fn send_with_retries(core: &Core, smtp: &Smtp, message: MailMessage) {
    let stop = &core.stop;
    let subject = message.subject.as_str();
    let mut delays = RETRY_DELAYS.iter();
    loop {
        let error = match timeout(TRY_TIMEOUT, smtp.send(&message)).await {
            Ok(Ok(())) => {
                tracing::info!(subject, "message sent");
                return;
            }
            Ok(Err(error)) if error.is_final() => {
                core.metrics.mail_failed();
                tracing::error!(subject, %error, "the mail server refused a message");
                return;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", TRY_TIMEOUT.as_secs()),
        };
        let Some(delay) = delays.next() else {
            core.metrics.mail_failed();
            tracing::error!(subject, error, "message dropped after the last try");
            return;
        };
        tracing::warn!(subject, error, again_in_s = delay.as_secs(), "message not sent; retrying");
        tokio::select! {
            () = sleep(*delay) => {}
            // At shutdown, the last try is made at once.
            () = stop.cancelled(), if !stop.is_cancelled() => delays = RETRY_DELAYS[..0].iter(),
        }
    }
}

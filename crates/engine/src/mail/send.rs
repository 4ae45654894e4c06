//! Sends the messages of the queue.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::outbox::{Outbox, Outgoing};
use super::queue::{MailMessage, QUEUE_CAPACITY};
use super::smtp::Smtp;
use crate::service::Core;

/// Time limit of one try, from the connection to the server's last reply.
const TRY_TIMEOUT: Duration = Duration::from_secs(30);
/// Delays before each retry. Greylisting servers accept after a minute at most, and a user in front of a browser does
/// not wait longer.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(60)];
/// Time limit for sending the remaining messages at shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends queued messages until the core stops, then tries the remaining ones once. A message that waits for a retry delays no
/// other.
pub(crate) async fn run(core: Core, smtp: Smtp, mut queue: mpsc::Receiver<MailMessage>) {
    let mut outbox = Outbox::default();
    let (mut sending, mut retrying) = (FuturesUnordered::new(), FuturesUnordered::new());
    loop {
        while let Some((domain, outgoing)) = outbox.next() {
            sending.push(try_once(&core, &smtp, domain, outgoing));
        }
        tokio::select! {
            () = core.stop.cancelled() => break,
            Some((domain, again)) = sending.next(), if !sending.is_empty() => {
                outbox.end(&domain);
                retrying.extend(again.map(|(delay, outgoing)| wait_for_retry(&core, delay, outgoing)));
            }
            Some(outgoing) = retrying.next(), if !retrying.is_empty() => outbox.add(outgoing),
            Some(message) = queue.recv(), if outbox.waiting() + retrying.len() < QUEUE_CAPACITY => {
                outbox.add(Outgoing { message, tries: 0 });
            }
        }
    }
    queue.close();
    let rest = async {
        while let Ok(message) = queue.try_recv() {
            outbox.add(Outgoing { message, tries: 0 });
        }
        // The last try is made at once.
        while let Some(outgoing) = retrying.next().await {
            outbox.add(outgoing);
        }
        loop {
            while let Some((domain, outgoing)) = outbox.next() {
                let last = Outgoing { tries: RETRY_DELAYS.len(), ..outgoing };
                sending.push(try_once(&core, &smtp, domain, last));
            }
            let Some((domain, again)) = sending.next().await else { break };
            outbox.end(&domain);
            // One that was being tried when the core stopped.
            if let Some((_, outgoing)) = again {
                outbox.add(outgoing);
            }
        }
    };
    if timeout(DRAIN_TIMEOUT, rest).await.is_err() {
        tracing::warn!("messages were lost: the mail server did not accept them before shutdown");
    }
}

/// A message to try again after this time.
type Retry = (Duration, Outgoing);

/// Tries to send a message. Returns it if it is tried again after a temporary error. The text is never logged, since it contains
/// secret links.
async fn try_once(core: &Core, smtp: &Smtp, domain: String, outgoing: Outgoing) -> (String, Option<Retry>) {
    let Outgoing { message, tries } = outgoing;
    let subject = message.subject.as_str();
    let error = match timeout(TRY_TIMEOUT, smtp.send(&message)).await {
        Ok(Ok(())) => {
            tracing::info!(subject, "message sent");
            return (domain, None);
        }
        Ok(Err(error)) if error.is_final() => {
            core.metrics.mail_failed();
            tracing::error!(subject, %error, "the mail server refused a message");
            return (domain, None);
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", TRY_TIMEOUT.as_secs()),
    };
    let Some(delay) = RETRY_DELAYS.get(tries).copied() else {
        core.metrics.mail_failed();
        tracing::error!(subject, error, "message dropped after the last try");
        return (domain, None);
    };
    tracing::warn!(subject, error, again_in_s = delay.as_secs(), "message not sent; retrying");
    (domain, Some((delay, Outgoing { message, tries: tries + 1 })))
}

async fn wait_for_retry(core: &Core, delay: Duration, outgoing: Outgoing) -> Outgoing {
    tokio::select! {
        () = sleep(delay) => {}
        () = core.stop.cancelled() => {}
    }
    outgoing
}

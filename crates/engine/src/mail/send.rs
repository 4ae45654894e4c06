//! Sends the messages of the queue.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::queue::MailMessage;
use super::smtp::Smtp;
use crate::core::Core;

/// Messages in progress at the same time, including those that wait for a retry.
const MAX_CONCURRENT: usize = 8;
/// Time limit of one try, from the connection to the server's last reply.
const TRY_TIMEOUT: Duration = Duration::from_secs(30);
/// Delays before each retry. Greylisting servers accept after a minute at most, and a person in front of a browser does
/// not wait longer.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(60)];
/// Time limit for sending the remaining messages at shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

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

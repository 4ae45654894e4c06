//! Sends and receives hints, and connects again.

use std::time::Duration;

use grabd_store::Store;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::connection::{Connection, ConnectionError, Received};
use super::remote::{Bus, Remote};
use crate::metrics::HintResult;

/// Shortest time between two payloads of a process. Hints in between are sent together.
const PAUSE: Duration = Duration::from_millis(20);
/// Time limit for each response of the server.
const TIMEOUT: Duration = Duration::from_secs(3);
/// How often the connection is checked.
const CHECK_EVERY: Duration = Duration::from_secs(15);
/// Wait before connecting again, doubled after each failure, up to the longest.
const BACKOFF: Duration = Duration::from_millis(250);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// Runs until `stop`. Returns at once if there are no other processes.
pub(crate) async fn run(bus: Bus, store: Store, stop: CancellationToken) {
    let Some(remote) = bus.0 else { return };
    let mut backoff = BACKOFF;
    loop {
        let mut is_connected = false;
        let ended = stop.run_until_cancelled(session(&remote, &store, &mut is_connected)).await;
        let Some(Err(error)) = ended else { return };
        tracing::warn!(%error, "hints between processes are lost until they can be sent again; the database is polled");
        if is_connected {
            backoff = BACKOFF;
        }
        if stop.run_until_cancelled(sleep(backoff)).await.is_none() {
            return;
        }
        backoff = (backoff * 2).min(MAX_BACKOFF);
    }
}

/// Uses one connection until it fails.
async fn session(remote: &Remote, store: &Store, is_connected: &mut bool) -> Result<(), ConnectionError> {
    let mut connection = in_time(Connection::open(&remote.settings, store)).await?;
    *is_connected = true;
    tracing::info!("hints between processes are sent and received");
    // Those before are lost.
    remote.receive_anything();
    let mut may_send = true;
    let mut next_send = Instant::now();
    let mut check = interval(CHECK_EVERY);
    check.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let outgoing = async {
            sleep_until(next_send).await;
            remote.outgoing.take().await
        };
        tokio::select! {
            received = connection.next() => match received? {
                Received::Payload(payload) => remote.receive(&payload),
                Received::Interrupted => {
                    may_send = false;
                    tracing::warn!("the server of the hints cannot be reached; the database is polled");
                }
                Received::Resumed => {
                    may_send = true;
                    tracing::info!("hints between processes are sent and received again");
                    remote.receive_anything();
                }
            },
            hints = outgoing, if may_send => {
                next_send = Instant::now() + PAUSE;
                let sent = in_time(connection.send(hints.write(&remote.origin))).await;
                remote.metrics.hint(if sent.is_ok() { HintResult::Sent } else { HintResult::Lost });
                sent?;
            }
            _ = check.tick() => in_time(connection.check()).await?,
        }
    }
}

async fn in_time<T>(response: impl Future<Output = Result<T, ConnectionError>>) -> Result<T, ConnectionError> {
    timeout(TIMEOUT, response).await.map_err(|_| ConnectionError::TimedOut)?
}

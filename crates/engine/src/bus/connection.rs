//! A connection to what passes hints on.

use async_nats::{Client, ConnectOptions, Event, ServerAddr, Subscriber};
use futures::StreamExt;
use grabd_store::{Notifications, Store};
use tokio::sync::mpsc;

use super::settings::BusSettings;

/// The channel of `NOTIFY`.
const CHANNEL: &str = "grabd_hints";
/// The subject of NATS. Clusters that share a server and its account receive each other's hints, which costs them reads.
const SUBJECT: &str = "grabd.v1.hints";
/// Messages that wait to be read, and to be sent. Further ones are lost or refused.
const CAPACITY: usize = 256;

/// A connection.
pub(super) enum Connection {
    Database(Box<Notifications>),
    Nats { client: Client, messages: Subscriber, events: mpsc::Receiver<Event> },
}

/// Why a connection cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionError {
    #[error(transparent)]
    Database(#[from] grabd_store::Error),
    #[error("the NATS server cannot be used: {0}")]
    Nats(Box<dyn std::error::Error + Send + Sync>),
    #[error("no response in time")]
    TimedOut,
}

/// What a connection received.
pub(super) enum Received {
    /// A payload.
    Payload(Vec<u8>),
    /// The connection was lost and is used again. What was sent meanwhile is lost.
    Resumed,
    /// The connection was interrupted. It connects again by itself.
    Interrupted,
}

impl Connection {
    pub(super) async fn open(settings: &BusSettings, store: &Store) -> Result<Self, ConnectionError> {
        match settings {
            BusSettings::InProcess | BusSettings::Database => {
                Ok(Self::Database(Box::new(store.notifications(CHANNEL).await?)))
            }
            BusSettings::Nats(url) => connect_to_nats(url).await,
        }
    }

    /// Waits for the next message. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Received, ConnectionError> {
        match self {
            Self::Database(notifications) => Ok(Received::Payload(notifications.next().await?.into_bytes())),
            Self::Nats { messages, events, .. } => loop {
                tokio::select! {
                    message = messages.next() => {
                        let message = message.ok_or_else(|| nats_error("the subscription ended"))?;
                        return Ok(Received::Payload(message.payload.to_vec()));
                    }
                    event = events.recv() => match event {
                        Some(Event::Connected | Event::SlowConsumer(_)) => return Ok(Received::Resumed),
                        Some(Event::Disconnected) => return Ok(Received::Interrupted),
                        Some(Event::Closed) | None => return Err(nats_error("the connection was closed")),
                        Some(event) => tracing::debug!(%event, "an event of NATS"),
                    },
                }
            },
        }
    }

    pub(super) async fn send(&mut self, payload: String) -> Result<(), ConnectionError> {
        match self {
            Self::Database(notifications) => Ok(notifications.notify(&payload).await?),
            Self::Nats { client, .. } => client.publish(SUBJECT, payload.into()).await.map_err(nats_error),
        }
    }

    /// Checks that the server responds, so that a connection that died silently is noticed. NATS does so by itself.
    pub(super) async fn check(&mut self) -> Result<(), ConnectionError> {
        match self {
            Self::Database(notifications) => Ok(notifications.check().await?),
            Self::Nats { .. } => Ok(()),
        }
    }
}

async fn connect_to_nats(url: &str) -> Result<Connection, ConnectionError> {
    let servers: Result<Vec<ServerAddr>, _> = url.split(',').map(|url| url.trim().parse()).collect();
    // The text of the error may contain the password.
    let servers = servers.map_err(|_| nats_error("bus.url is not a list of NATS servers"))?;
    let (sender, events) = mpsc::channel(CAPACITY);
    let client = ConnectOptions::new()
        .name("grabd")
        .no_echo()
        .client_capacity(CAPACITY)
        .subscription_capacity(CAPACITY)
        .event_callback(move |event| {
            let sender = sender.clone();
            async move {
                // Full only while this process is stuck; then the poll helps.
                let _ = sender.try_send(event);
            }
        })
        .connect(servers)
        .await
        .map_err(nats_error)?;
    let messages = client.subscribe(SUBJECT).await.map_err(nats_error)?;
    // The server has the subscription when this returns.
    client.flush().await.map_err(nats_error)?;
    Ok(Connection::Nats { client, messages, events })
}

fn nats_error(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ConnectionError {
    ConnectionError::Nats(error.into())
}

//! `LISTEN` and `NOTIFY` of PostgreSQL, on a connection of their own. They carry hints, never facts: a notification is
//! lost when nobody listens.

use std::time::Duration;

use sea_orm::sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sea_orm::sqlx::{self, Error as SqlxError};

use crate::Result;
use crate::error::connection_error;

/// Maximum wait for the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that listens on one channel and notifies it. Notifications by itself are received, too.
pub struct Notifications {
    listener: PgListener,
    channel: String,
}

impl Notifications {
    pub(super) async fn open(options: PgConnectOptions, channel: &str) -> Result<Self> {
        let open = async {
            let pool = PgPoolOptions::new()
                .max_connections(1)
                .acquire_timeout(CONNECT_TIMEOUT)
                .idle_timeout(None)
                .max_lifetime(None)
                .connect_with(options)
                .await?;
            let mut listener = PgListener::connect_with(&pool).await?;
            // A lost connection is an error: the caller must know that notifications were lost.
            listener.eager_reconnect(false);
            listener.listen(channel).await?;
            Ok(listener)
        };
        let listener = open.await.map_err(connection_error)?;
        Ok(Self { listener, channel: channel.to_owned() })
    }

    /// Waits for the next notification, and returns its payload. Cancel-safe.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`] when the connection was lost. Open another one then.
    pub async fn next(&mut self) -> Result<String> {
        match self.listener.try_recv().await {
            Ok(Some(notification)) => Ok(notification.payload().to_owned()),
            Ok(None) => Err(connection_error(SqlxError::Io(std::io::ErrorKind::ConnectionAborted.into()))),
            Err(error) => Err(connection_error(error)),
        }
    }

    /// Notifies all that listen on the channel. `payload` must have less than 8000 bytes.
    ///
    /// # Errors
    /// As [`Notifications::next`].
    pub async fn notify(&mut self, payload: &str) -> Result<()> {
        let notify = sqlx::query("SELECT pg_notify($1, $2)").bind(self.channel.as_str()).bind(payload);
        notify.execute(&mut self.listener).await.map_err(connection_error)?;
        Ok(())
    }

    /// Checks that the server responds.
    ///
    /// # Errors
    /// As [`Notifications::next`].
    pub async fn check(&mut self) -> Result<()> {
        sqlx::query("SELECT 1").execute(&mut self.listener).await.map_err(connection_error)?;
        Ok(())
    }
}

impl std::fmt::Debug for Notifications {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notifications").field("channel", &self.channel).finish_non_exhaustive()
    }
}

//! Binds listeners.

use std::net::SocketAddr;

use anyhow::Context;
use tokio::net::TcpListener;

/// Binds a listener. `setting` is named in the error.
pub(crate) async fn bind(address: SocketAddr, setting: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("{address} cannot be listened on; is it in use? Set {setting} to another address"))
}

//! The listener of a core for renderers on other machines. Only holders of a renderer's certificate of the cluster can
//! connect, or processes on this machine.

use std::time::Duration;

use anyhow::Context;
use grabd_engine::Core;
use grabd_rpc::renderer_service;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Server, ServerTlsConfig};

/// Concurrent calls of one renderer: its session, and the reports of all slots.
const MAX_STREAMS: u32 = 1024;
/// A renderer that does not answer a ping for this long is lost. A synchronous caller of one of its grabs then still has
/// time for another attempt.
const PING_EVERY: Duration = Duration::from_secs(2);
const PING_LIMIT: Duration = Duration::from_secs(5);
/// Time limit for connections to end after all sessions have ended.
const CLOSE: Duration = Duration::from_secs(5);

/// Serves renderers until `stop`, and then until their connections end. End the sessions before.
pub(super) async fn serve(listener: TcpListener, core: Core, tls: Option<ServerTlsConfig>, stop: CancellationToken) {
    if let Err(error) = try_serve(listener, core, tls, stop).await {
        tracing::error!(error = format!("{error:#}"), "the listener for renderers ended");
    }
}

async fn try_serve(
    listener: TcpListener,
    core: Core,
    tls: Option<ServerTlsConfig>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let mut server = Server::builder()
        .max_concurrent_streams(MAX_STREAMS)
        .http2_keepalive_interval(Some(PING_EVERY))
        .http2_keepalive_timeout(Some(PING_LIMIT));
    if let Some(tls) = tls {
        server = server.tls_config(tls).context("the certificates of the cluster cannot be used")?;
    }
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let serving = server
        .add_service(renderer_service(&core))
        .serve_with_incoming_shutdown(incoming, stop.clone().cancelled_owned());
    let closing = async {
        stop.cancelled().await;
        tokio::time::sleep(CLOSE).await;
    };
    tokio::select! {
        served = serving => served.context("renderers cannot be served"),
        () = closing => Ok(()),
    }
}

/// Whether the certificates can be used, so that a wrong file prevents the start.
pub(super) fn check(tls: Option<&ServerTlsConfig>) -> anyhow::Result<()> {
    if let Some(tls) = tls {
        Server::builder().tls_config(tls.clone()).context("the certificates of the cluster cannot be used")?;
    }
    Ok(())
}

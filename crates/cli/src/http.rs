//! The HTTP client.

use std::time::Duration;

use reqwest::Client;

/// Where a service publishes the keys that sign evidence.
pub(crate) const EVIDENCE_KEYS_PATH: &str = "/.well-known/grabd-evidence-keys";

/// Timeout for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout between reads of a response. A synchronous capture may take 25 s plus overhead before its response begins;
/// event streams send at least a comment every 15 s.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// The HTTP client for all requests.
pub(crate) fn client() -> Result<Client, reqwest::Error> {
    // Fails only if a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(concat!("grab/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        // A redirect must not send the credential to another server.
        .redirect(reqwest::redirect::Policy::none())
        .build()
}

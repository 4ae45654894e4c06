//! The HTTP client of the tests. It ignores proxies that are configured on the machine.

use reqwest::ClientBuilder;

/// A client builder. A TLS provider is installed because the command line tool, which is built together with the tests,
/// enables TLS in `reqwest`; the tests themselves use plain HTTP.
pub fn client() -> ClientBuilder {
    // Fails only if a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    ClientBuilder::new().no_proxy()
}

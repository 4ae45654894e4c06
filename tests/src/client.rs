//! The HTTP client of the tests: without any cleverness, and without the machine's proxies.

use reqwest::ClientBuilder;

/// A client to be built. TLS is in it because the command line is built beside the tests, and wants a choice of
/// cryptography although nothing here is encrypted.
pub fn client() -> ClientBuilder {
    // The only failure is that one is set already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    ClientBuilder::new().no_proxy()
}

//! OAuth discovery: protected resource metadata (RFC 9728) and authorization server metadata (RFC 8414).

use reqwest::Client;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use crate::failure::Failure;

/// The grant type of sign-ins by a code (RFC 8628 section 3.4).
pub(super) const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The API as an OAuth resource, and its authorization server.
#[derive(Clone, Debug)]
pub(super) struct Service {
    /// The resource identifier of the API, for token requests.
    pub(super) resource: String,
    /// The authorization server.
    pub(super) server: ServerMetadata,
}

/// Authorization server metadata (RFC 8414 section 2).
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ServerMetadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    pub(super) revocation_endpoint: Option<Url>,
    pub(super) device_authorization_endpoint: Option<Url>,
}

#[derive(Deserialize)]
struct ResourceMetadata {
    resource: String,
    authorization_servers: Vec<Url>,
}

/// A registration of this program (RFC 7591 section 3.2.1).
#[derive(Deserialize)]
pub(super) struct Registration {
    pub(super) client_id: String,
}

impl Service {
    /// Reads the metadata of the API and of its authorization server.
    pub(super) async fn discover(http: &Client, base: &Url) -> Result<Self, Failure> {
        let resource: ResourceMetadata = fetch(http, &well_known(base, "oauth-protected-resource")).await?;
        let Some(issuer) = resource.authorization_servers.first() else {
            return Err(Failure::Login(format!("{base} names no authorization server; use an API key")));
        };
        let server: ServerMetadata = fetch(http, &well_known(issuer, "oauth-authorization-server")).await?;
        // The issuer must match the URL that the metadata was read from (RFC 8414 section 3.3).
        if server.issuer.trim_end_matches('/') != issuer.as_str().trim_end_matches('/') {
            return Err(Failure::Login(format!("{issuer} identifies itself as {}", server.issuer)));
        }
        let device = server.device_authorization_endpoint.as_ref();
        for endpoint in [&server.authorization_endpoint, &server.token_endpoint].into_iter().chain(device) {
            check_transport(endpoint)?;
        }
        Ok(Self { resource: resource.resource, server })
    }

    /// Registers this program as a client (RFC 7591) with a loopback redirect URI.
    pub(super) async fn register(&self, http: &Client, redirect: &str) -> Result<Registration, Failure> {
        let Some(url) = &self.server.registration_endpoint else {
            return Err(Failure::Login("the service does not support client registration; use an API key".to_owned()));
        };
        let metadata = json!({
            "client_name": "grab command line",
            "redirect_uris": [redirect],
            "grant_types": ["authorization_code", "refresh_token", DEVICE_GRANT],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        });
        let response = http.post(url.clone()).json(&metadata).send().await.map_err(Failure::unreachable(url))?;
        read(url, response).await
    }
}

/// The well-known URL for `url`. The suffix goes between host and path (RFC 8414 section 3.1).
fn well_known(url: &Url, suffix: &str) -> Url {
    let mut address = url.clone();
    let path = url.path().trim_end_matches('/');
    address.set_path(&format!("/.well-known/{suffix}{path}"));
    address
}

/// Requires TLS, except on loopback.
fn check_transport(url: &Url) -> Result<(), Failure> {
    let is_loopback = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match url.scheme() == "https" || is_loopback {
        true => Ok(()),
        false => Err(Failure::Login(format!("{url} is not encrypted"))),
    }
}

async fn fetch<T: for<'de> Deserialize<'de>>(http: &Client, url: &Url) -> Result<T, Failure> {
    let response = http.get(url.clone()).send().await.map_err(Failure::unreachable(url))?;
    read(url, response).await
}

async fn read<T: for<'de> Deserialize<'de>>(url: &Url, response: reqwest::Response) -> Result<T, Failure> {
    let status = response.status();
    let body = response.bytes().await.map_err(Failure::unreachable(url))?;
    let unexpected = || Failure::UnexpectedResponse { url: url.clone(), status };
    if !status.is_success() {
        return Err(unexpected());
    }
    serde_json::from_slice(&body).map_err(|_| unexpected())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_suffix_goes_before_the_path() {
        for (url, expected) in [
            ("https://grabd.example/v1/", "https://grabd.example/.well-known/oauth-protected-resource/v1"),
            ("https://auth.grabd.example", "https://auth.grabd.example/.well-known/oauth-protected-resource"),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(well_known(&url, "oauth-protected-resource").as_str(), expected);
        }
    }

    #[test]
    fn plain_http_is_allowed_only_on_loopback() {
        for (url, is_allowed) in [
            ("https://grabd.example/t", true),
            ("http://127.0.0.1:8080/t", true),
            ("http://[::1]:8080/t", true),
            ("http://localhost/t", true),
            ("http://grabd.example/t", false),
            ("http://localhost.example/t", false),
            ("http://10.0.0.1/t", false),
        ] {
            assert_eq!(check_transport(&Url::parse(url).unwrap()).is_ok(), is_allowed, "{url}");
        }
    }
}

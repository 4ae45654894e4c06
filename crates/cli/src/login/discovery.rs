//! Where a service lets people sign in: RFC 9728 for the API, RFC 8414 for whoever signs people in.

use reqwest::Client;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use crate::failure::Failure;

/// Where people sign in, and for what.
#[derive(Clone, Debug)]
pub(super) struct Service {
    /// What tokens are asked for: the API.
    pub(super) resource: String,
    /// Who signs people in.
    pub(super) server: Server,
}

/// What an authorization server tells about itself.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Server {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    pub(super) revocation_endpoint: Option<Url>,
}

#[derive(Deserialize)]
struct Resource {
    resource: String,
    authorization_servers: Vec<Url>,
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
}

impl Service {
    /// Asks the API who signs people in, and that one where.
    pub(super) async fn discover(http: &Client, base: &Url) -> Result<Self, Failure> {
        let resource: Resource = fetch(http, &well_known(base, "oauth-protected-resource")).await?;
        let Some(issuer) = resource.authorization_servers.first() else {
            return Err(Failure::Login(format!("{base} names nobody who signs people in; use an API key")));
        };
        let server: Server = fetch(http, &well_known(issuer, "oauth-authorization-server")).await?;
        // Whoever says to be somebody else is not to be trusted with a sign-in (RFC 8414 section 3.3).
        if server.issuer.trim_end_matches('/') != issuer.as_str().trim_end_matches('/') {
            return Err(Failure::Login(format!("{issuer} says to be {}", server.issuer)));
        }
        for endpoint in [&server.authorization_endpoint, &server.token_endpoint] {
            check_transport(endpoint)?;
        }
        Ok(Self { resource: resource.resource, server })
    }

    /// Registers this program (RFC 7591) for answers to a loopback address, and returns its client id.
    pub(super) async fn register(&self, http: &Client, redirect: &str) -> Result<String, Failure> {
        let Some(url) = &self.server.registration_endpoint else {
            return Err(Failure::Login("the service registers no programs; use an API key".to_owned()));
        };
        let asked = json!({
            "client_name": "grab command line",
            "redirect_uris": [redirect],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        });
        let response = http.post(url.clone()).json(&asked).send().await.map_err(Failure::unreachable(url))?;
        let registered: Registered = read(url, response).await?;
        Ok(registered.client_id)
    }
}

/// The well-known address of what lies at `url` (RFC 8414 section 3.1): the suffix goes before the path.
fn well_known(url: &Url, suffix: &str) -> Url {
    let mut address = url.clone();
    let path = url.path().trim_end_matches('/');
    address.set_path(&format!("/.well-known/{suffix}{path}"));
    address
}

/// Tokens travel in the open only on this machine.
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
    let foreign = || Failure::Foreign { url: url.clone(), status };
    if !status.is_success() {
        return Err(foreign());
    }
    serde_json::from_slice(&body).map_err(|_| foreign())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_well_known_suffix_goes_before_the_path() {
        for (url, expected) in [
            ("https://grabd.example/v1/", "https://grabd.example/.well-known/oauth-protected-resource/v1"),
            ("https://auth.grabd.example", "https://auth.grabd.example/.well-known/oauth-protected-resource"),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(well_known(&url, "oauth-protected-resource").as_str(), expected);
        }
    }

    #[test]
    fn tokens_travel_in_the_open_only_on_this_machine() {
        for (url, is_fine) in [
            ("https://grabd.example/t", true),
            ("http://127.0.0.1:8080/t", true),
            ("http://[::1]:8080/t", true),
            ("http://localhost/t", true),
            ("http://grabd.example/t", false),
            ("http://localhost.example/t", false),
            ("http://10.0.0.1/t", false),
        ] {
            assert_eq!(check_transport(&Url::parse(url).unwrap()).is_ok(), is_fine, "{url}");
        }
    }
}

//! Tokens: storage, refresh and revocation.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use reqwest::Client;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use url::Url;

use super::discovery::Service;
use crate::failure::Failure;

/// Access tokens are refreshed this many seconds before they expire, so that none expires in flight.
const REFRESH_MARGIN_S: i64 = 60;

/// The tokens of a sign-in.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Tokens {
    /// The access token.
    pub(super) access: String,
    /// The refresh token.
    pub(super) refresh: String,
    /// When the access token expires, in seconds since the Unix epoch.
    pub(super) expires_at: i64,
    /// The scopes, separated by spaces. `None` if the service did not name them.
    #[serde(default)]
    pub(super) scope: Option<String>,
    /// The client id of this program.
    pub(super) client_id: String,
    /// Refreshes tokens.
    pub(super) token_endpoint: Url,
    /// Revokes tokens (RFC 7009).
    pub(super) revocation_endpoint: Option<Url>,
}

/// A token response (RFC 6749 section 5.1).
#[derive(Deserialize)]
pub(super) struct TokenResponse {
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    pub(super) expires_in: Option<i64>,
    pub(super) scope: Option<String>,
}

/// An error response (RFC 6749 section 5.2).
#[derive(Deserialize)]
struct TokenError {
    error: String,
    error_description: Option<String>,
}

impl Tokens {
    /// The tokens of a new sign-in.
    pub(super) fn new(response: TokenResponse, service: &Service, client_id: String) -> Result<Self, Failure> {
        let expires_at = response.expires_at();
        let Some(refresh) = response.refresh_token else {
            return Err(Failure::Login("the service sent no refresh token".to_owned()));
        };
        Ok(Self {
            access: response.access_token,
            refresh,
            expires_at,
            scope: response.scope,
            client_id,
            token_endpoint: service.server.token_endpoint.clone(),
            revocation_endpoint: service.server.revocation_endpoint.clone(),
        })
    }

    /// Whether the access token is about to expire.
    pub(super) fn need_refresh(&self) -> bool {
        now() + REFRESH_MARGIN_S >= self.expires_at
    }

    /// Whether they allow webhooks and the deletion of captures.
    pub(super) fn may_manage(&self) -> bool {
        self.scope.as_deref().is_some_and(|scope| scope.split(' ').any(|scope| scope == "manage"))
    }

    /// Exchanges the refresh token for new tokens.
    pub(super) async fn refreshed(&self, http: &Client) -> Result<Self, Failure> {
        let form = [("grant_type", "refresh_token"), ("refresh_token", &self.refresh), ("client_id", &self.client_id)];
        let response = request(http, &self.token_endpoint, &form).await?;
        let refresh = response.refresh_token.clone().unwrap_or_else(|| self.refresh.clone());
        let expires_at = response.expires_at();
        let scope = response.scope.or_else(|| self.scope.clone());
        Ok(Self { access: response.access_token, refresh, expires_at, scope, ..self.clone() })
    }

    /// Revokes the tokens, which ends the sign-in at the service.
    pub(super) async fn revoke(&self, http: &Client) -> Result<(), Failure> {
        let Some(url) = &self.revocation_endpoint else { return Ok(()) };
        let form = [("token", &self.refresh), ("client_id", &self.client_id)];
        let response = http.post(url.clone()).form(&form).send().await.map_err(Failure::unreachable(url))?;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(Failure::UnexpectedResponse { url: url.clone(), status: response.status() }),
        }
    }
}

impl TokenResponse {
    /// When the access token expires. Without `expires_in` it counts as expired, so that each request refreshes it.
    pub(super) fn expires_at(&self) -> i64 {
        now() + self.expires_in.unwrap_or(0)
    }
}

/// The answer to a token request.
pub(super) enum TokenAnswer {
    /// The tokens.
    Tokens(TokenResponse),
    /// An error of the protocol.
    Error { error: String, description: Option<String> },
}

/// Sends a token request, and fails for any error.
pub(super) async fn request(http: &Client, endpoint: &Url, form: &[(&str, &str)]) -> Result<TokenResponse, Failure> {
    match ask(http, endpoint, form).await? {
        TokenAnswer::Tokens(response) => Ok(response),
        TokenAnswer::Error { error, .. } if error == "invalid_grant" => {
            Err(Failure::Login("the sign-in has expired or was revoked; run `grab login` again".to_owned()))
        }
        TokenAnswer::Error { error, description } => Err(Failure::Login(description.unwrap_or(error))),
    }
}

/// Sends a token request.
pub(super) async fn ask(http: &Client, endpoint: &Url, form: &[(&str, &str)]) -> Result<TokenAnswer, Failure> {
    Ok(match send(http, endpoint, form).await? {
        Ok(response) => TokenAnswer::Tokens(response),
        Err(TokenError { error, error_description }) => TokenAnswer::Error { error, description: error_description },
    })
}

/// Sends a form to another endpoint of the authorization server, and fails for any error.
pub(super) async fn post<T: for<'de> Deserialize<'de>>(
    http: &Client,
    endpoint: &Url,
    form: &[(&str, &str)],
) -> Result<T, Failure> {
    let refused = |refused: TokenError| Failure::Login(refused.error_description.unwrap_or(refused.error));
    send(http, endpoint, form).await?.map_err(refused)
}

async fn send<T: for<'de> Deserialize<'de>>(
    http: &Client,
    endpoint: &Url,
    form: &[(&str, &str)],
) -> Result<Result<T, TokenError>, Failure> {
    let response = http.post(endpoint.clone()).form(form).send().await.map_err(Failure::unreachable(endpoint))?;
    let status = response.status();
    let body = response.bytes().await.map_err(Failure::unreachable(endpoint))?;
    let unexpected = |_| Failure::UnexpectedResponse { url: endpoint.clone(), status };
    if status.is_success() {
        return serde_json::from_slice(&body).map(Ok).map_err(unexpected);
    }
    serde_json::from_slice(&body).map(Err).map_err(unexpected)
}

/// The stored sign-ins, keyed by base URL, in a file that only its owner can read.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct File(BTreeMap<String, Tokens>);

impl File {
    /// Reads the file. A missing file is empty.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(Failure::file(path)(error)),
        };
        serde_json::from_slice(&text).map_err(|error| {
            Failure::Usage(format!("{} is invalid ({error}); remove it and sign in again", path.display()))
        })
    }

    /// Locks the file during a refresh. Two processes using the same refresh token would look like token theft.
    pub(super) fn lock(path: &Path) -> Result<fs::File, Failure> {
        create_directory(path)?;
        let path = path.with_extension("lock");
        let mut options = fs::OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.open(&path).map_err(Failure::file(&path))?;
        file.lock().map_err(Failure::file(&path))?;
        Ok(file)
    }

    /// Updates the file atomically.
    pub(super) fn update(path: &Path, change: impl FnOnce(&mut Self)) -> Result<(), Failure> {
        let mut file = Self::read(path)?;
        change(&mut file);
        let directory = path.parent().unwrap_or(Path::new("."));
        // tempfile creates files that only their owner can access.
        let mut new = tempfile::NamedTempFile::new_in(directory).map_err(Failure::file(directory))?;
        let text = serde_json::to_vec_pretty(&file).expect("a map with string keys serializes");
        new.write_all(&text).map_err(Failure::file(path))?;
        new.persist(path).map_err(|error| Failure::file(path)(error.error))?;
        Ok(())
    }

    pub(super) fn get(&self, base: &Url) -> Option<&Tokens> {
        self.0.get(base.as_str())
    }

    pub(super) fn insert(&mut self, base: &Url, tokens: Tokens) {
        self.0.insert(base.to_string(), tokens);
    }

    pub(super) fn remove(&mut self, base: &Url) {
        self.0.remove(base.as_str());
    }
}

/// Creates the directory of a file, accessible only to this user.
fn create_directory(file: &Path) -> Result<(), Failure> {
    let directory = file.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(Failure::file(directory))
}

#[expect(clippy::disallowed_methods, reason = "the command line has no caller that could pass in a clock")]
fn now() -> i64 {
    OffsetDateTime::now_utc().unix_timestamp()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn tokens(access: &str) -> Tokens {
        Tokens {
            access: access.to_owned(),
            refresh: "grt_x".to_owned(),
            expires_at: now() + 3600,
            scope: Some("grabs".to_owned()),
            client_id: "gcl_x".to_owned(),
            token_endpoint: Url::parse("https://grabd.example/v1/oauth/token").unwrap(),
            revocation_endpoint: None,
        }
    }

    #[test]
    fn sign_ins_are_stored_per_service_and_readable_only_by_their_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("grab/credentials.json");
        let (a, b) = (Url::parse("https://a.example/v1/").unwrap(), Url::parse("https://b.example/v1/").unwrap());
        drop(File::lock(&path).unwrap());
        File::update(&path, |file| file.insert(&a, tokens("one"))).unwrap();
        File::update(&path, |file| file.insert(&b, tokens("two"))).unwrap();
        File::update(&path, |file| file.remove(&a)).unwrap();
        let stored = File::read(&path).unwrap();
        assert!(stored.get(&a).is_none());
        assert_eq!(stored.get(&b).unwrap().access, "two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn tokens_need_refresh_before_they_expire() {
        let mut tokens = tokens("one");
        assert!(!tokens.need_refresh());
        tokens.expires_at = now() + REFRESH_MARGIN_S - 1;
        assert!(tokens.need_refresh());
    }
}

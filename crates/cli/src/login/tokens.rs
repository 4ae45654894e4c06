//! Tokens, where they are kept, and how they are renewed and given back.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use reqwest::Client;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use url::Url;

use super::make_directory;
use crate::failure::Failure;

/// Tokens are renewed so many seconds before they end, so that none ends on its way.
const MARGIN_S: i64 = 60;

/// What a sign-in is made of.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Tokens {
    /// Goes with every request.
    pub(super) access: String,
    /// Fetches the next ones.
    pub(super) refresh: String,
    /// When the access token ends, in seconds since the epoch.
    pub(super) expires_at: i64,
    /// As whom this program was registered.
    pub(super) client_id: String,
    /// Where tokens are renewed.
    pub(super) token_endpoint: Url,
    /// Where they are given back.
    pub(super) revocation_endpoint: Option<Url>,
}

/// What a token endpoint answers (RFC 6749 section 5.1).
#[derive(Deserialize)]
pub(super) struct Granted {
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    pub(super) expires_in: Option<i64>,
}

#[derive(Deserialize)]
struct Denied {
    error: String,
    error_description: Option<String>,
}

impl Tokens {
    /// Are they about to end?
    pub(super) fn are_stale(&self) -> bool {
        now() + MARGIN_S >= self.expires_at
    }

    /// New tokens for these.
    pub(super) async fn renewed(&self, http: &Client) -> Result<Self, Failure> {
        let form = [("grant_type", "refresh_token"), ("refresh_token", &self.refresh), ("client_id", &self.client_id)];
        let granted = ask(http, &self.token_endpoint, &form).await?;
        let refresh = granted.refresh_token.clone().unwrap_or_else(|| self.refresh.clone());
        let expires_at = granted.expires_at();
        Ok(Self { access: granted.access_token, refresh, expires_at, ..self.clone() })
    }

    /// Gives them back, which ends the sign-in at the service too.
    pub(super) async fn revoke(&self, http: &Client) -> Result<(), Failure> {
        let Some(url) = &self.revocation_endpoint else { return Ok(()) };
        let form = [("token", &self.refresh), ("client_id", &self.client_id)];
        let response = http.post(url.clone()).form(&form).send().await.map_err(Failure::unreachable(url))?;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(Failure::Foreign { url: url.clone(), status: response.status() }),
        }
    }
}

impl Granted {
    /// When the access token ends. Where the service does not say, it is asked for a new one each time.
    pub(super) fn expires_at(&self) -> i64 {
        now() + self.expires_in.unwrap_or(0)
    }
}

/// Asks a token endpoint.
pub(super) async fn ask(http: &Client, endpoint: &Url, form: &[(&str, &str)]) -> Result<Granted, Failure> {
    let response = http.post(endpoint.clone()).form(form).send().await.map_err(Failure::unreachable(endpoint))?;
    let status = response.status();
    let body = response.bytes().await.map_err(Failure::unreachable(endpoint))?;
    if status.is_success() {
        return serde_json::from_slice(&body).map_err(|_| Failure::Foreign { url: endpoint.clone(), status });
    }
    match serde_json::from_slice::<Denied>(&body) {
        Ok(Denied { error, .. }) if error == "invalid_grant" => {
            Err(Failure::Login("the sign-in has ended; `grab login` makes a new one".to_owned()))
        }
        Ok(Denied { error, error_description }) => Err(Failure::Login(error_description.unwrap_or(error))),
        Err(_) => Err(Failure::Foreign { url: endpoint.clone(), status }),
    }
}

/// Sign-ins by the address of their service, in a file that only its owner may read.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct File(BTreeMap<String, Tokens>);

impl File {
    /// What is kept; nothing where there is no file.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(Failure::file(path)(error)),
        };
        serde_json::from_slice(&text).map_err(|error| {
            Failure::Usage(format!("{} is damaged ({error}); remove it and sign in again", path.display()))
        })
    }

    /// Held while tokens are renewed: two processes that renew the same ones would look like a thief.
    pub(super) fn lock(path: &Path) -> Result<fs::File, Failure> {
        make_directory(path)?;
        let path = path.with_extension("lock");
        let mut options = fs::OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.open(&path).map_err(Failure::file(&path))?;
        file.lock().map_err(Failure::file(&path))?;
        Ok(file)
    }

    /// Changes what is kept: the new file is whole before it takes the place of the old one.
    pub(super) fn change(path: &Path, change: impl FnOnce(&mut Self)) -> Result<(), Failure> {
        let mut file = Self::read(path)?;
        change(&mut file);
        let directory = path.parent().unwrap_or(Path::new("."));
        // Made for its owner alone, as everything that tempfile makes.
        let mut new = tempfile::NamedTempFile::new_in(directory).map_err(Failure::file(directory))?;
        let text = serde_json::to_vec_pretty(&file).expect("maps of text are JSON");
        new.write_all(&text).map_err(Failure::file(path))?;
        new.persist(path).map_err(|error| Failure::file(path)(error.error))?;
        Ok(())
    }

    pub(super) fn of(&self, base: &Url) -> Option<&Tokens> {
        self.0.get(base.as_str())
    }

    pub(super) fn put(&mut self, base: &Url, tokens: Tokens) {
        self.0.insert(base.to_string(), tokens);
    }

    pub(super) fn remove(&mut self, base: &Url) {
        self.0.remove(base.as_str());
    }
}

#[expect(clippy::disallowed_methods, reason = "the command line is its own root: nobody above it holds a clock")]
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
            client_id: "gcl_x".to_owned(),
            token_endpoint: Url::parse("https://grabd.example/v1/oauth/token").unwrap(),
            revocation_endpoint: None,
        }
    }

    #[test]
    fn sign_ins_are_kept_for_their_owner_alone_and_by_service() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("grab/credentials.json");
        let (a, b) = (Url::parse("https://a.example/v1/").unwrap(), Url::parse("https://b.example/v1/").unwrap());
        drop(File::lock(&path).unwrap());
        File::change(&path, |file| file.put(&a, tokens("one"))).unwrap();
        File::change(&path, |file| file.put(&b, tokens("two"))).unwrap();
        File::change(&path, |file| file.remove(&a)).unwrap();
        let kept = File::read(&path).unwrap();
        assert!(kept.of(&a).is_none());
        assert_eq!(kept.of(&b).unwrap().access, "two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn tokens_are_renewed_before_they_end() {
        let mut tokens = tokens("one");
        assert!(!tokens.are_stale());
        tokens.expires_at = now() + MARGIN_S - 1;
        assert!(tokens.are_stale());
    }
}

//! Settings from command line flags, environment variables (read by clap) and the configuration file, in this order.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use url::Url;

use crate::args::{ConnectionArgs, LinkArgs};
use crate::failure::Failure;

/// The default address of a locally started service.
pub(crate) const DEFAULT_BASE: &str = "http://127.0.0.1:8080/v1";

/// The configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Base URL of the API.
    base_url: Option<String>,
    /// API key.
    api_key: Option<String>,
    /// Link key of the API key that links belong to.
    link_key: Option<String>,
    /// Secret that signs links.
    link_secret: Option<String>,
}

/// Where the API key is from.
#[derive(Clone, Debug)]
pub(crate) enum KeySource {
    /// A flag or the environment.
    Given,
    /// The configuration file.
    File(PathBuf),
}

/// The settings of this run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Base URL of the API. Ends in a slash, so that relative paths can be joined.
    pub(crate) base: Url,
    /// The API key, if one is set.
    pub(crate) api_key: Option<String>,
    /// Where it is from.
    pub(crate) key_source: Option<KeySource>,
    /// The link key of the API key that links belong to, if one is set.
    pub(crate) link_key: Option<String>,
    /// The secret that signs links, if one is set.
    pub(crate) link_secret: Option<String>,
    /// The file with the stored sign-ins.
    pub(crate) credentials: PathBuf,
    /// How many times to retry a request that is safe to repeat.
    pub(crate) retries: u32,
}

impl Settings {
    /// Reads the settings from all sources.
    pub(crate) fn read(connection: &ConnectionArgs) -> Result<Self, Failure> {
        let path = config_path(connection);
        let file = read(&path, connection.config.is_some())?;
        let base = connection.base_url.as_deref().or(file.base_url.as_deref()).unwrap_or(DEFAULT_BASE);
        let given = connection.api_key.clone().map(|key| (key, KeySource::Given));
        let stored = file.api_key.map(|key| (key, KeySource::File(path)));
        let (key, key_source) = given.or(stored).filter(|(key, _)| !key.is_empty()).unzip();
        Ok(Self {
            base: base_url(base)?,
            api_key: key.map(|key: String| key.trim().to_owned()),
            key_source,
            link_key: file.link_key.filter(|key| !key.is_empty()),
            link_secret: file.link_secret.filter(|secret| !secret.is_empty()),
            credentials: directory().join("credentials.json"),
            retries: connection.retries,
        })
    }

    /// Sets what signs links, where flags or the environment say so.
    pub(crate) fn set_link(&mut self, args: &LinkArgs) {
        let set = |given: &Option<String>| given.clone().filter(|text| !text.is_empty());
        self.link_key = set(&args.link_key).or_else(|| self.link_key.take());
        self.link_secret = set(&args.link_secret).or_else(|| self.link_secret.take());
    }
}

/// The configuration file.
pub(crate) fn config_path(connection: &ConnectionArgs) -> PathBuf {
    connection.config.clone().unwrap_or_else(|| directory().join("config.toml"))
}

/// The directory of the program's files.
fn directory() -> PathBuf {
    let base = std::env::var_os("XDG_CONFIG_HOME").filter(|path| Path::new(path).is_absolute()).map(PathBuf::from);
    let base = base.or_else(|| std::env::home_dir().map(|home| home.join(".config")));
    base.unwrap_or_else(|| PathBuf::from(".config")).join("grab")
}

fn read(path: &Path, is_explicit: bool) -> Result<File, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_explicit => return Ok(File::default()),
        Err(error) => return Err(Failure::file(path)(error)),
    };
    toml::from_str(&text).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// Normalises a base URL: adds `/v1` if only the origin is given, and a trailing slash.
pub(crate) fn base_url(text: &str) -> Result<Url, Failure> {
    let invalid =
        |why: String| Failure::Usage(format!("the base URL {text:?} {why}; it looks like https://grabd.example/v1"));
    let mut url = Url::parse(text).map_err(|error| invalid(format!("is not a valid URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.query().is_some() || url.fragment().is_some() {
        return Err(invalid("is not the address of an API".to_owned()));
    }
    let path = match url.path().trim_end_matches('/') {
        "" => "/v1/".to_owned(),
        path => format!("{path}/"),
    };
    url.set_path(&path);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_url_adds_the_version_and_a_trailing_slash() {
        for (text, expected) in [
            ("https://grabd.example", "https://grabd.example/v1/"),
            ("https://grabd.example/", "https://grabd.example/v1/"),
            ("https://grabd.example/v1", "https://grabd.example/v1/"),
            ("https://grabd.example/v1/", "https://grabd.example/v1/"),
            ("http://127.0.0.1:8080/grabs/v1", "http://127.0.0.1:8080/grabs/v1/"),
        ] {
            assert_eq!(base_url(text).unwrap().as_str(), expected, "{text}");
        }
        for text in ["", "grabd.example", "ftp://grabd.example", "https://grabd.example/v1?x=1", "https://x/#y"] {
            assert!(base_url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn unknown_setting_is_rejected_with_its_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "base_ulr = \"https://grabd.example\"\n").unwrap();
        let message = read(file.path(), true).unwrap_err().message();
        assert!(message.contains("base_ulr") && message.contains("line 1"), "{message}");
        assert!(read(Path::new("/nonexistent/config.toml"), true).is_err());
        assert!(read(Path::new("/nonexistent/config.toml"), false).unwrap().base_url.is_none());
    }
}

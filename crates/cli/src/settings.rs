//! Which service is meant, and as whom: from flags, the environment (which clap reads as flags) and a file, in this order.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use url::Url;

use crate::args::Connection;
use crate::failure::Failure;

/// Where a service is that somebody just started.
const DEFAULT_BASE: &str = "http://127.0.0.1:8080/v1";

/// What the configuration file may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Address of the service.
    base_url: Option<String>,
    /// API key.
    api_key: Option<String>,
}

/// What holds for this run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Where the API is; ends in a slash, so that paths can be joined.
    pub(crate) base: Url,
    /// The key, where somebody gave one.
    pub(crate) api_key: Option<String>,
    /// Where sign-ins are kept.
    pub(crate) credentials: PathBuf,
    /// How often a request that may be repeated is tried again.
    pub(crate) retries: u32,
}

impl Settings {
    /// What holds, from all places together.
    pub(crate) fn read(connection: &Connection) -> Result<Self, Failure> {
        let directory = directory();
        let (path, is_named) = match &connection.config {
            Some(path) => (path.clone(), true),
            None => (directory.join("config.toml"), false),
        };
        let file = read(&path, is_named)?;
        let base = connection.base_url.as_deref().or(file.base_url.as_deref()).unwrap_or(DEFAULT_BASE);
        let key = connection.api_key.clone().or(file.api_key).filter(|key| !key.is_empty());
        Ok(Self {
            base: base_url(base)?,
            api_key: key.map(|key| key.trim().to_owned()),
            credentials: directory.join("credentials.json"),
            retries: connection.retries,
        })
    }
}

/// Where this program's files lie.
fn directory() -> PathBuf {
    let base = std::env::var_os("XDG_CONFIG_HOME").filter(|path| Path::new(path).is_absolute()).map(PathBuf::from);
    let base = base.or_else(|| std::env::home_dir().map(|home| home.join(".config")));
    base.unwrap_or_else(|| PathBuf::from(".config")).join("grab")
}

fn read(path: &Path, is_named: bool) -> Result<File, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_named => return Ok(File::default()),
        Err(error) => return Err(Failure::file(path)(error)),
    };
    toml::from_str(&text).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// The address with its version and a slash at the end. Whoever names only the origin means the API below it.
fn base_url(text: &str) -> Result<Url, Failure> {
    let wrong =
        |why: String| Failure::Usage(format!("the base URL {text:?} {why}; it looks like https://grabd.example/v1"));
    let mut url = Url::parse(text).map_err(|error| wrong(format!("is none: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("is not the address of an API".to_owned()));
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
    fn an_origin_means_the_api_below_it() {
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
    fn a_misspelt_setting_is_refused_with_its_place() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "base_ulr = \"https://grabd.example\"\n").unwrap();
        let told = read(file.path(), true).unwrap_err().told();
        assert!(told.contains("base_ulr") && told.contains("line 1"), "{told}");
        assert!(read(Path::new("/nonexistent/config.toml"), true).is_err());
        assert!(read(Path::new("/nonexistent/config.toml"), false).unwrap().base_url.is_none());
    }
}

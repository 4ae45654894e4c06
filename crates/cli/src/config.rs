//! `grab config`: shows and changes the settings of the configuration file.

use std::env;
use std::fs::{self, DirBuilder};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use clap::ValueEnum;
use serde_json::json;
use toml_edit::{DocumentMut, Item, Value};

use crate::args::{ConfigCommand, ConnectionArgs, Setting};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::settings::{self, DEFAULT_BASE};

/// The longest value that is read from stdin, in bytes.
const MAX_VALUE_BYTES: u64 = 4096;

/// A value and where it is from.
#[derive(Debug, PartialEq, Eq)]
struct Resolved {
    value: String,
    source: String,
}

/// Runs the command. It needs no service, and works also if the settings are invalid, so that they can be corrected.
pub(crate) fn run(connection: &ConnectionArgs, command: &ConfigCommand) -> Result<Exit, Failure> {
    let path = settings::config_path(connection);
    let mut stored = read(&path)?;
    match command {
        ConfigCommand::Show => show(connection, &path, &stored)?,
        ConfigCommand::Get { setting } => match resolve(connection, &path, &stored, *setting) {
            Some(found) => output::line(&found.value)?,
            None => return Err(Failure::Usage(format!("{} is not set", setting.name()))),
        },
        ConfigCommand::Set { setting, value: given } => {
            let text = match given.as_deref() {
                None | Some("-") => read_value()?,
                Some(text) => text.to_owned(),
            };
            store(&mut stored, setting.name(), &checked(*setting, text.trim())?);
            write(&path, &stored)?;
            eprintln!("Stored {} in {}.", setting.name(), path.display());
            if let Some((_, source)) = given_value(connection, *setting) {
                eprintln!("{source} is set too, and takes precedence.");
            }
        }
        ConfigCommand::Unset { setting } => match stored.remove(setting.name()) {
            Some(_) => {
                write(&path, &stored)?;
                eprintln!("Removed {} from {}.", setting.name(), path.display());
            }
            None => eprintln!("{} is not in {}.", setting.name(), path.display()),
        },
    }
    Ok(Exit::Done)
}

/// Prints all settings. Of secrets, only the end.
fn show(connection: &ConnectionArgs, path: &Path, stored: &DocumentMut) -> Result<(), Failure> {
    let settings = Setting::value_variants().iter();
    let found = settings.map(|setting| (setting, resolve(connection, path, stored, *setting)));
    let shown: Vec<_> = found
        .map(|(setting, found)| match found {
            Some(Resolved { value, source }) => {
                let text = if setting.is_secret() { masked(&value) } else { value };
                (setting.name(), Some(text), Some(source))
            }
            None => (setting.name(), None, None),
        })
        .collect();
    if connection.json {
        return shown.into_iter().try_for_each(|(name, value, source)| {
            output::line(&json!({ "name": name, "value": value, "source": source }).to_string())
        });
    }
    let row = |(name, value, source): (&str, Option<String>, Option<String>)| {
        vec![name.to_owned(), output::or_dash(value), output::or_dash(source)]
    };
    output::table(&["SETTING", "VALUE", "FROM"], &shown.into_iter().map(row).collect::<Vec<_>>())
}

/// The value that commands use: of a flag or the environment, of the file, or the default.
fn resolve(connection: &ConnectionArgs, path: &Path, stored: &DocumentMut, setting: Setting) -> Option<Resolved> {
    let given = given_value(connection, setting).map(|(value, source)| Resolved { value, source: source.to_owned() });
    let in_file = || {
        let value = stored.get(setting.name()).and_then(Item::as_str)?.to_owned();
        Some(Resolved { value, source: path.display().to_string() })
    };
    let default = || {
        let is_base = setting == Setting::BaseUrl;
        is_base.then(|| Resolved { value: DEFAULT_BASE.to_owned(), source: "default".to_owned() })
    };
    given.or_else(in_file).or_else(default)
}

/// The value of a flag or the environment, and which of them it is.
fn given_value(connection: &ConnectionArgs, setting: Setting) -> Option<(String, &'static str)> {
    let in_environment = |name: &str| env::var_os(name)?.into_string().ok().filter(|value| !value.is_empty());
    let (flag, flag_name, variable) = match setting {
        Setting::BaseUrl => (connection.base_url.clone(), "--base-url", "GRAB_BASE_URL"),
        Setting::ApiKey => (connection.api_key.clone(), "--api-key", "GRAB_API_KEY"),
        Setting::LinkKey => (in_environment("GRAB_LINK_KEY"), "", "GRAB_LINK_KEY"),
        Setting::LinkSecret => (in_environment("GRAB_LINK_SECRET"), "", "GRAB_LINK_SECRET"),
    };
    let value = flag.filter(|value| !value.is_empty())?;
    let source = if in_environment(variable).as_ref() == Some(&value) { variable } else { flag_name };
    Some((value, source))
}

/// A value that commands will accept.
fn checked(setting: Setting, text: &str) -> Result<String, Failure> {
    if setting == Setting::BaseUrl {
        settings::base_url(text)?;
    }
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    match is_plain {
        true => Ok(text.to_owned()),
        false => {
            let allowed = "must be visible ASCII characters without spaces";
            Err(Failure::Usage(format!("the value of {} {allowed}", setting.name())))
        }
    }
}

/// Sets a value, and keeps the comments around the former one.
fn store(stored: &mut DocumentMut, name: &str, text: &str) {
    let mut value = Value::from(text);
    match stored.get_mut(name).and_then(Item::as_value_mut) {
        Some(former) => {
            *value.decor_mut() = former.decor().clone();
            *former = value;
        }
        None => stored[name] = Item::Value(value),
    }
}

/// A secret that can be recognized but not used: what kind of key it is, and its end.
fn masked(secret: &str) -> String {
    let kind = ["sk_live_", "sk_test_"].into_iter().find(|kind| secret.starts_with(kind)).unwrap_or_default();
    let is_long = secret.len() >= kind.len() + 12;
    let end = secret.get(secret.len().saturating_sub(4)..).filter(|_| is_long).unwrap_or_default();
    format!("{kind}…{end}")
}

fn read_value() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().take(MAX_VALUE_BYTES).read_to_string(&mut text).map_err(Failure::file("stdin"))?;
    Ok(text)
}

/// Reads the file with its comments. A missing file is empty.
fn read(path: &Path) -> Result<DocumentMut, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::file(path)(error)),
    };
    text.parse().map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// Replaces the file atomically. Only its owner can read it, because it may contain keys.
fn write(path: &Path, stored: &DocumentMut) -> Result<(), Failure> {
    // A link to the file stays a link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(Failure::file(directory))?;
    let mut new = tempfile::NamedTempFile::new_in(directory).map_err(Failure::file(directory))?;
    new.write_all(stored.to_string().as_bytes()).map_err(Failure::file(&path))?;
    new.persist(&path).map_err(|error| Failure::file(&path)(error.error))?;
    Ok(())
}

impl Setting {
    /// The name in the file.
    const fn name(self) -> &'static str {
        match self {
            Self::BaseUrl => "base_url",
            Self::ApiKey => "api_key",
            Self::LinkKey => "link_key",
            Self::LinkSecret => "link_secret",
        }
    }

    const fn is_secret(self) -> bool {
        matches!(self, Self::ApiKey | Self::LinkSecret)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn secrets_are_masked() {
        for (secret, expected) in [
            ("sk_live_0123456789abcdef", "sk_live_…cdef"),
            ("sk_test_short", "sk_test_…"),
            ("0123456789abcdef", "…cdef"),
            ("", "…"),
            ("ééééééééé", "…éé"),
        ] {
            assert_eq!(masked(secret), expected, "{secret}");
        }
    }

    #[test]
    fn changes_keep_comments_and_the_file_is_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("grab/config.toml");
        let mut stored = read(&path).unwrap();
        store(&mut stored, "base_url", "https://a.example/v1");
        write(&path, &stored).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, "# ours\nbase_url = \"https://a.example/v1\" # main\napi_key = \"k\"\n").unwrap();
        let mut stored = read(&path).unwrap();
        store(&mut stored, "base_url", "https://b.example/v1");
        stored.remove("api_key");
        write(&path, &stored).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "# ours\nbase_url = \"https://b.example/v1\" # main\n");
    }

    #[test]
    fn values_that_no_command_accepts_are_rejected() {
        for (setting, text) in [
            (Setting::BaseUrl, "nonsense"),
            (Setting::BaseUrl, ""),
            (Setting::ApiKey, ""),
            (Setting::ApiKey, "sk live"),
            (Setting::LinkSecret, "ä"),
        ] {
            assert!(checked(setting, text).is_err(), "{setting:?} {text}");
        }
        assert_eq!(checked(Setting::BaseUrl, "https://grabd.example").unwrap(), "https://grabd.example");
    }
}

//! What overrides the defaults: a file, and the environment. Each key is checked by itself, so that all problems are
//! reported together.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use figment::Figment;
use figment::providers::{Env, Format, Toml};
use figment::value::{Dict, Value};

use super::problems::Problems;

/// Whether a configuration can be read from these values.
pub(super) type IsReadable = fn(&Figment) -> Result<(), Box<figment::Error>>;

/// Values of keys such as `http.listen`, each with where it is from.
#[derive(Default)]
pub(super) struct Overrides {
    values: BTreeMap<String, (Value, String)>,
    /// Variables of the environment that begin like a setting and are none.
    foreign: Vec<String>,
}

/// All keys, and the sections.
struct Known {
    keys: BTreeSet<String>,
    sections: BTreeSet<String>,
}

impl Overrides {
    /// Adds the keys of a file.
    pub(super) fn add_file(&mut self, file: &Path) -> Result<(), Problems> {
        let content: Dict = Figment::from(Toml::file_exact(file)).extract().map_err(Problems::from)?;
        let source = file.display().to_string();
        self.values.extend(flatten(&content).into_iter().map(|(key, value)| (key, (value, source.clone()))));
        Ok(())
    }

    /// Adds the credentials that systemd passes to the service, as files named like settings.
    pub(super) fn add_credentials(&mut self, defaults: &str) -> Result<(), Problems> {
        let Some(directory) = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from) else { return Ok(()) };
        for key in Known::new(defaults).keys {
            let path = directory.join(&key);
            match std::fs::read_to_string(&path) {
                Ok(text) => {
                    let value: Value = text.trim_end().parse().unwrap_or_else(|never| match never {});
                    self.add(&key, value, &path.display().to_string());
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(Problems::one(&key, &error.to_string(), "a credential that can be read"));
                }
            }
        }
        Ok(())
    }

    /// Adds the variables of the environment. One that is no setting is foreign, unless it looks like a setting that is
    /// mistyped: another program, or Kubernetes for a service named `grabd-edge`, chooses such names too.
    pub(super) fn add_environment(&mut self, defaults: &str) {
        let known = Known::new(defaults);
        for (key, text) in Env::prefixed("GRABD_").split("__").iter() {
            let key = key.as_str().to_ascii_lowercase();
            let variable = format!("GRABD_{}", key.replace('.', "__").to_ascii_uppercase());
            // `GRABD_CONFIG` names the file, and `GRABD_TEST_…` is for tests.
            if key == "config" || key.starts_with("test_") {
                continue;
            }
            if known.has(&key) || known.looks_mistyped(&key) {
                let value = text.parse().unwrap_or_else(|never| match never {});
                self.values.insert(key, (value, variable));
            } else {
                self.foreign.push(variable);
            }
        }
    }

    /// Adds a value.
    pub(super) fn add(&mut self, key: &str, value: impl Into<Value>, source: &str) {
        self.values.insert(key.to_owned(), (value.into(), source.to_owned()));
    }

    /// The defaults with the values that are settings and can be read, and the problems of all others.
    pub(super) fn apply(&self, defaults: &str, is_readable: IsReadable) -> (Figment, Problems) {
        let (known, defaults) = (Known::new(defaults), Figment::from(Toml::string(defaults)));
        let (mut problems, mut all) = (Problems::default(), defaults.clone());
        for (key, (value, source)) in &self.values {
            if !known.has(key) {
                problems.add_unknown(key, source, known.same_letters(key));
                continue;
            }
            match is_readable(&defaults.clone().merge((key.as_str(), value))) {
                Ok(()) => all = all.merge((key.as_str(), value)),
                Err(error) => problems.add_errors(*error, source),
            }
        }
        (all, problems)
    }

    /// Variables of the environment that begin like a setting and are none.
    pub(super) fn into_foreign(self) -> Vec<String> {
        self.foreign
    }
}

impl Known {
    fn new(defaults: &str) -> Self {
        let defaults: Dict = Figment::from(Toml::string(defaults)).extract().expect("the defaults are valid TOML");
        let keys: BTreeSet<String> = flatten(&defaults).into_keys().collect();
        let sections = keys.iter().filter_map(|key| Some(key.split_once('.')?.0.to_owned())).collect();
        Self { keys, sections }
    }

    fn has(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    /// Whether it names a section, or differs from a setting in underscores only.
    fn looks_mistyped(&self, key: &str) -> bool {
        let section = key.split_once('.').map_or(key, |(section, _)| section);
        self.sections.contains(section) || self.same_letters(key).is_some()
    }

    /// The setting that differs in underscores only.
    fn same_letters(&self, key: &str) -> Option<&str> {
        let letters = |key: &str| key.replace(['.', '_'], "");
        let wanted = letters(key);
        self.keys.iter().find(|known| letters(known) == wanted).map(String::as_str)
    }
}

/// The values with their keys, such as `http.listen`.
fn flatten(dict: &Dict) -> BTreeMap<String, Value> {
    let mut flat = BTreeMap::new();
    for (name, value) in dict {
        if let Value::Dict(_, inner) = value
            && !inner.is_empty()
        {
            flat.extend(flatten(inner).into_iter().map(|(key, value)| (format!("{name}.{key}"), value)));
        } else {
            flat.insert(name.clone(), value.clone());
        }
    }
    flat
}

//! Collects all problems of a configuration.

use std::fmt;

/// Problems, each with the key, the value and the allowed values.
#[derive(Debug, Default)]
pub struct Problems(Vec<String>);

impl Problems {
    /// A single problem.
    pub(crate) fn one(key: &str, value: &str, allowed: &str) -> Self {
        let mut problems = Self::default();
        problems.add(key, value, allowed);
        problems
    }

    pub(super) fn add(&mut self, key: &str, value: &str, allowed: &str) {
        self.0.push(format!("`{key}` must be {allowed}; got {value}"));
    }

    /// Requires a number that is not zero.
    pub(super) fn at_least_one(&mut self, key: &str, value: u64) {
        if value == 0 {
            self.add(key, "0", "at least 1");
        }
    }

    /// A key that is no setting.
    pub(super) fn add_unknown(&mut self, key: &str, source: &str, similar: Option<&str>) {
        let hint = similar.map(|similar| format!("; `{similar}` is one"));
        self.0.push(format!("`{key}` is no setting (in {source}){}", hint.unwrap_or_default()));
    }

    /// What prevents that a value is read.
    pub(super) fn add_errors(&mut self, errors: figment::Error, source: &str) {
        let describe = |error: figment::Error| format!("`{}`: {} (in {source})", error.path.join("."), error.kind);
        self.0.extend(errors.into_iter().map(describe));
    }

    pub(super) fn append(&mut self, others: Option<Self>) {
        self.0.extend(others.into_iter().flat_map(|others| others.0));
    }

    pub(super) fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl From<figment::Error> for Problems {
    fn from(errors: figment::Error) -> Self {
        Self(
            errors
                .into_iter()
                .map(|error| {
                    let source = error.metadata.as_ref().map(|from| format!(" (in {})", from.name));
                    let key = error.path.join(".");
                    format!("`{key}`: {}{}", error.kind, source.unwrap_or_default())
                })
                .collect(),
        )
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration cannot be used:")?;
        for problem in &self.0 {
            write!(f, "\n  - {problem}")?;
        }
        f.write_str("\n`grabd config` prints every key with its default.")
    }
}

impl std::error::Error for Problems {}

//! Scopes of API keys: what a key may be used for.

use std::fmt;
use std::time::Duration;

/// A kind of request that an API key may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Read grabs, usage and pricing.
    Read,
    /// Create grabs.
    Create,
    /// Manage webhooks and proxies, and delete images.
    Manage,
}

impl Scope {
    /// All scopes, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Read, Self::Create, Self::Manage];

    /// The name in commands, pages and messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Create => "create",
            Self::Manage => "manage",
        }
    }

    /// Parses a name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Create => 2,
            Self::Manage => 4,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of scopes that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

impl Scopes {
    /// Every scope: what a key may do unless it was restricted when it was created.
    pub const ALL: Self = Self(7);

    /// The set of these scopes. `None` if there are none: such a key could do nothing.
    pub fn new(scopes: impl IntoIterator<Item = Scope>) -> Option<Self> {
        Self::from_bits(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }

    /// The set with these bits, as returned by [`Scopes::bits`]. `None` if there are none or unknown ones.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits == 0 || bits > Self::ALL.0 { None } else { Some(Self(bits)) }
    }

    /// One bit for each scope, for storage: 1 read, 2 create, 4 manage.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether the set includes a scope.
    pub const fn includes(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// The scopes of the set, in the order in which they are listed.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.includes(*scope))
    }
}

impl fmt::Display for Scopes {
    /// The names, separated by commas.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, scope) in self.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            f.write_str(scope.as_str())?;
        }
        Ok(())
    }
}

/// Maximum life of a key that expires, in days. A key that must live longer does not expire.
pub const MAX_KEY_DAYS: u16 = 3650;

/// The life of a key in days is not a number from 1 to [`MAX_KEY_DAYS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a number of days from 1 to {MAX_KEY_DAYS}")]
pub struct KeyDaysError;

/// Parses the life of a key in days. Empty text is a key that does not expire.
///
/// # Errors
/// [`KeyDaysError`] for anything else than a number of days from 1 to [`MAX_KEY_DAYS`].
pub fn parse_key_days(text: &str) -> Result<Option<Duration>, KeyDaysError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let days: u16 = text.parse().map_err(|_| KeyDaysError)?;
    match days {
        1..=MAX_KEY_DAYS => Ok(Some(Duration::from_secs(u64::from(days) * 24 * 60 * 60))),
        _ => Err(KeyDaysError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_names_round_trip() {
        for scope in Scope::ALL {
            assert_eq!(Scope::parse(scope.as_str()), Some(scope));
        }
        assert_eq!(Scope::parse("admin"), None);
    }

    #[test]
    fn set_includes_what_it_was_made_of_and_survives_storage() {
        for bits in 1..=7 {
            let set = Scopes::from_bits(bits).unwrap();
            assert_eq!((Scopes::new(set.iter()), set.bits()), (Some(set), bits));
        }
        let set = Scopes::new([Scope::Manage, Scope::Read, Scope::Read]).unwrap();
        assert_eq!(Scope::ALL.map(|scope| set.includes(scope)), [true, false, true]);
        assert_eq!(
            (set.to_string().as_str(), Scopes::ALL.to_string().as_str()),
            ("read, manage", "read, create, manage")
        );
        assert_eq!((Scopes::new([]), Scopes::from_bits(0), Scopes::from_bits(8)), (None, None, None));
    }

    #[test]
    fn key_days_are_a_number_within_the_limit() {
        assert_eq!(parse_key_days(" "), Ok(None));
        assert_eq!(parse_key_days(" 30 "), Ok(Some(Duration::from_secs(30 * 86_400))));
        assert!(parse_key_days("3650").is_ok());
        for invalid in ["0", "3651", "-1", "1.5", "x", "99999999"] {
            assert_eq!(parse_key_days(invalid), Err(KeyDaysError), "{invalid}");
        }
    }
}

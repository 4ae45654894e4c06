//! Teams: what they and their keys may be called, and how much of everything there may be.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Length of a name in characters. The upper bound keeps lists readable.
pub const NAME_CHARS: RangeInclusive<usize> = 1..=60;
/// How long an invitation counts.
pub const INVITATION_LIFE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Invitations that a team may have open. With [`MEMBERS`] it bounds what one page lists.
pub const INVITATIONS: u64 = 50;
/// People in a team.
pub const MEMBERS: u64 = 200;
/// Keys of a team that open something, both environments together.
pub const KEYS: u64 = 100;
/// Teams that somebody may be in when they found another one.
pub const TEAMS: u64 = 20;

/// What people call a team or a key: without spaces around, on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must have {} to {} characters, all of them visible", NAME_CHARS.start(), NAME_CHARS.end())]
pub struct NameError;

impl Name {
    /// The name in `text`.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let text = text.trim();
        let is_good = NAME_CHARS.contains(&text.chars().count()) && !text.chars().any(is_trick);
        if is_good { Ok(Self(text.to_owned())) } else { Err(NameError) }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Would the character make a name look like another one, or break its line? Those that join or order letters count: a
/// name that is read from the other end has fooled people before.
fn is_trick(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_visible_line() {
        for (text, name) in [
            ("Acme", "Acme"),
            ("  build server \n", "build server"),
            ("<b>Söhne & Töchter</b>", "<b>Söhne & Töchter</b>"),
            ("日本語", "日本語"),
        ] {
            assert_eq!(Name::parse(text).unwrap().as_str(), name);
        }
        assert!(Name::parse(&"ß".repeat(60)).is_ok());
        for text in ["", "  \t", "a\nb", "a\0b", "a\u{202e}b", "\u{200b}", "a\u{2028}b", &"x".repeat(61)] {
            assert_eq!(Name::parse(text), Err(NameError), "{text:?}");
        }
    }
}

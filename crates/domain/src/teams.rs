//! Teams: names and limits.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Length of a name in characters. The upper bound keeps lists readable.
pub const NAME_CHARS: RangeInclusive<usize> = 1..=60;
/// Lifetime of an invitation.
pub const INVITATION_LIFE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Maximum number of open invitations per team. With [`MEMBERS`], this bounds the members page.
pub const INVITATIONS: u64 = 50;
/// Maximum number of users in a team.
pub const MEMBERS: u64 = 200;
/// Maximum number of active keys per team, live and test together.
pub const KEYS: u64 = 100;
/// Maximum number of teams per user; checked when a user creates a team.
pub const TEAMS: u64 = 20;

/// The name of a team or a key: trimmed, one line, visible characters only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

/// The text is not a valid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must have {} to {} characters, all of them visible", NAME_CHARS.start(), NAME_CHARS.end())]
pub struct NameError;

impl Name {
    /// Parses and trims a name.
    ///
    /// # Errors
    /// If it is empty, too long, or has invisible characters.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let text = text.trim();
        let is_good = NAME_CHARS.contains(&text.chars().count()) && !text.chars().any(is_deceptive);
        if is_good { Ok(Self(text.to_owned())) } else { Err(NameError) }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of a team: a [`Name`] without web and e-mail addresses, because it appears in e-mails to users who did not
/// ask for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamName(Name);

/// The text is not a valid name of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TeamNameError {
    /// It is not a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// It has a web or e-mail address, or what mail programs may take for one.
    #[error("must not contain a web or e-mail address; write “Example” instead of “example.com”")]
    Address,
}

impl TeamName {
    /// Parses and trims a name.
    ///
    /// # Errors
    /// If it is not a [`Name`], or has a web or e-mail address.
    pub fn parse(text: &str) -> Result<Self, TeamNameError> {
        let name = Name::parse(text)?;
        if has_address(name.as_str()) { Err(TeamNameError::Address) } else { Ok(Self(name)) }
    }

    /// The name of a user's first team, from the part before the `@` of their e-mail address. It has no dots, so it
    /// is no web address.
    pub fn from_local_part(text: &str) -> Self {
        let words: String =
            text.chars().map(|c| if c.is_alphanumeric() || "-_+".contains(c) { c } else { ' ' }).collect();
        let words: String =
            words.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(*NAME_CHARS.end()).collect();
        Self(Name::parse(&words).unwrap_or_else(|NameError| Name("Personal".to_owned())))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for TeamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether mail programs could make a link of a part of the text. There are too many top-level domains for a list, so
/// every dot between letters counts: `example.com`, but neither `Acme Inc.` nor `2.0`.
fn has_address(text: &str) -> bool {
    // NFKC equivalents of the full stop and of the solidus are used to evade filters.
    let is_dot = |c: char| matches!(c, '.' | '\u{3002}' | '\u{ff0e}' | '\u{ff61}' | '\u{2024}');
    let is_slash = |c: char| matches!(c, '/' | '\u{ff0f}' | '\u{2044}' | '\u{2215}');
    let characters: Vec<char> = text.chars().collect();
    characters.windows(3).any(|part| match *part {
        [before, dot, after] => {
            is_dot(dot) && before.is_alphanumeric() && after.is_alphabetic()
                || dot == '@' && before.is_alphanumeric() && after.is_alphanumeric()
                || matches!(before, ':' | '\u{ff1a}') && is_slash(dot) && is_slash(after)
        }
        _ => false,
    })
}

/// Returns whether the character is invisible, breaks the line or changes the text direction. Such characters allow
/// spoofing of names.
fn is_deceptive(c: char) -> bool {
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
    fn name_parse_accepts_one_visible_line() {
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

    #[test]
    fn team_name_parse_refuses_web_and_email_addresses() {
        for text in
            ["Acme", "Acme Inc.", "R&D / web", "Version 2.0", "St. Gallen", "a: b", "team@", "日本語", "Dr. No?"]
        {
            assert_eq!(TeamName::parse(text).map(|name| name.to_string()), Ok(text.to_owned()));
        }
        for text in [
            "example.com",
            "Win a prize at evil.example now",
            "https://evil",
            "evil.example/win",
            "www.evil",
            "hxxp://1.2.3.4",
            "eve@evil",
            "bücher.example",
            "例え.テスト",
            "evil\u{ff0e}example",
            "https:\u{ff0f}\u{ff0f}evil",
        ] {
            assert_eq!(TeamName::parse(text), Err(TeamNameError::Address), "{text}");
        }
        assert_eq!(TeamName::parse("a\nb"), Err(TeamNameError::Name(NameError)));
    }

    #[test]
    fn first_team_is_named_after_the_email_address_without_being_an_address() {
        for (local_part, name) in [
            ("ada", "ada"),
            ("ada.lovelace+grabd", "ada lovelace+grabd"),
            ("evil.example", "evil example"),
            ("http://evil", "http evil"),
            ("...", "Personal"),
            (&"x".repeat(64), &"x".repeat(60)),
        ] {
            let team = TeamName::from_local_part(local_part);
            assert_eq!(team.as_str(), name);
            assert_eq!(TeamName::parse(name), Ok(team));
        }
    }
}

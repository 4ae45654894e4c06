//! People: how they are named, what they may be in a team, and which passwords will do.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Length of an e-mail address in bytes; the upper bound is that of a path in RFC 5321 section 4.5.3.1.3.
pub const EMAIL_BYTES: RangeInclusive<usize> = 3..=254;
/// Length of a password in characters. NIST SP 800-63B section 3.1.1.2 asks for at least 8, 15 where nothing else is
/// asked for, and for at least 64 to be accepted; length is the only rule, because rules about characters make worse
/// passwords. The upper bound keeps a hash from being work for nothing.
pub const PASSWORD_CHARS: RangeInclusive<usize> = 12..=256;
/// How long a session lasts after its last use.
pub const SESSION_IDLE: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// How long a session lasts at most, however often it is used.
pub const SESSION_LIFE: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// How much of a session's idle time must have passed before its use is written down.
pub const SESSION_STEP: Duration = Duration::from_secs(60 * 60);
/// How long the link that lets somebody choose another password counts.
pub const RESET_LIFE: Duration = Duration::from_secs(30 * 60);
/// Characters that are kept of what a browser says of itself.
pub const AGENT_CHARS: usize = 256;

/// An e-mail address as we keep it: without spaces around, in lower case, so that one person is one account.
///
/// Whether mail arrives there only mail can tell; what is judged is that it can be shown and stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Email(String);

/// Why a text is no e-mail address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an e-mail address such as ada@example.com, {} to {} bytes long", EMAIL_BYTES.start(), EMAIL_BYTES.end())]
pub struct EmailError;

impl Email {
    /// The address in `text`.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, EmailError> {
        let text = text.trim().to_lowercase();
        let good = EMAIL_BYTES.contains(&text.len())
            && !text.contains(|c: char| c.is_whitespace() || c.is_control())
            && matches!(text.split_once('@'), Some((local, domain))
                if !local.is_empty() && !domain.is_empty() && !domain.contains('@'));
        if good { Ok(Self(text)) } else { Err(EmailError) }
    }

    /// The address.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What stands before the `@`: as good a name as any for somebody's first team.
    pub fn local_part(&self) -> &str {
        self.0.split_once('@').map_or(&self.0, |(local, _)| local)
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a password will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must have {} to {} characters; got {chars}", PASSWORD_CHARS.start(), PASSWORD_CHARS.end())]
pub struct PasswordError {
    /// How many there were.
    pub chars: usize,
}

/// Will this password do? Anything may stand in it.
///
/// # Errors
/// When it is too short or too long.
pub fn check_password(password: &str) -> Result<(), PasswordError> {
    let chars = password.chars().count();
    if PASSWORD_CHARS.contains(&chars) { Ok(()) } else { Err(PasswordError { chars }) }
}

/// What somebody is in a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Whose team it is.
    Owner,
    /// Who works in it.
    Member,
}

impl Role {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Owner, Self::Member];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Member => "member",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_person_is_one_address() {
        for text in ["ada@example.com", " Ada@Example.COM\n", "ADA@EXAMPLE.COM"] {
            assert_eq!(Email::parse(text).unwrap().as_str(), "ada@example.com", "{text}");
        }
        assert_eq!(Email::parse("a+b@localhost").unwrap().local_part(), "a+b");
        assert_eq!(Email::parse("Ünal@Bücher.example").unwrap().as_str(), "ünal@bücher.example");
        let longest = format!("{}@example.com", "a".repeat(242));
        assert!(Email::parse(&longest).is_ok());
        for text in [
            "",
            "@",
            "a@",
            "@b",
            "ab",
            "a@b@c",
            "a b@c",
            "a\u{a0}b@c",
            "a\0@b",
            "a@b\r\nBcc: c@d",
            &format!("a{longest}"),
        ] {
            assert_eq!(Email::parse(text), Err(EmailError), "{text:?}");
        }
    }

    #[test]
    fn a_password_is_judged_by_its_length_alone() {
        for (password, good) in [
            ("", false),
            ("elevenchars", false),
            ("twelve chars", true),
            ("            ", true),
            ("ééééééééééé", false),
            ("éééééééééééé", true),
            (&"x".repeat(256), true),
            (&"x".repeat(257), false),
        ] {
            assert_eq!(check_password(password).is_ok(), good, "{password}");
        }
        let message = check_password("secret").unwrap_err().to_string();
        assert_eq!(message, "must have 12 to 256 characters; got 6");
    }
}

//! User accounts: e-mail addresses, roles, password rules and session lifetimes.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Length of an e-mail address in bytes; the upper bound is that of a path in RFC 5321 section 4.5.3.1.3.
pub const EMAIL_BYTES: RangeInclusive<usize> = 3..=254;
/// Length of a password in characters. NIST SP 800-63B section 3.1.1.2 requires a minimum of 8, or 15 for single-factor
/// authentication, and a maximum of at least 64. There are no composition rules because they lead to weaker passwords.
/// The upper bound limits the cost of hashing.
pub const PASSWORD_CHARS: RangeInclusive<usize> = 12..=256;
/// Idle timeout of a session.
pub const SESSION_IDLE: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// Maximum lifetime of a session.
pub const SESSION_LIFE: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// Sessions per account. A new one replaces the one that was used the longest time ago.
pub const SESSIONS: u64 = 100;
/// Minimum interval between updates of a session's last use, to limit writes.
pub const SESSION_TOUCH_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Minimum interval between updates of an API key's last use, to limit writes.
pub const KEY_TOUCH_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How long revoked and expired API keys are listed.
pub const REVOKED_KEY_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Lifetime of a password reset link.
pub const RESET_LIFE: Duration = Duration::from_secs(30 * 60);
/// Lifetime of an e-mail verification link.
pub const VERIFICATION_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// Valid verification links per account. A newer link replaces the oldest.
pub const VERIFICATIONS: u64 = 5;
/// How long a device is remembered after its last sign-in.
pub const DEVICE_LIFE: Duration = Duration::from_secs(180 * 24 * 60 * 60);
/// Remembered devices per account. A new device replaces the one that was used the longest time ago.
pub const DEVICES: u64 = 10;
/// How long a sign-in waits for the code of the second factor, after the password.
pub const SIGN_IN_LIFE: Duration = Duration::from_secs(10 * 60);
/// How long the page that sets up a second factor can be submitted.
pub const SECOND_FACTOR_SETUP_LIFE: Duration = Duration::from_secs(60 * 60);
/// Recovery codes of a second factor, each of which can be used once.
pub const RECOVERY_CODES: usize = 10;
/// Passkeys of a user.
pub const PASSKEYS: u64 = 10;
/// How long a challenge for a passkey can be answered.
pub const CHALLENGE_LIFE: Duration = Duration::from_secs(5 * 60);
/// Maximum stored length of a `User-Agent`, in characters.
pub const USER_AGENT_CHARS: usize = 256;

/// An e-mail address, trimmed and in lower case, so that it identifies one account.
///
/// Only the basic syntax is checked, so that the address can be stored and displayed. Only sending mail can show that
/// it is deliverable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Email(String);

/// The text is not an e-mail address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an e-mail address such as ada@example.com, {} to {} bytes long", EMAIL_BYTES.start(), EMAIL_BYTES.end())]
pub struct EmailError;

impl Email {
    /// Parses and normalizes an e-mail address.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn parse(text: &str) -> Result<Self, EmailError> {
        let text = text.trim().to_lowercase();
        let good = EMAIL_BYTES.contains(&text.len())
            && !text.contains(|c: char| c.is_whitespace() || c.is_control())
            && matches!(text.split_once('@'), Some((local, domain))
                if !local.is_empty() && !domain.is_empty() && !domain.contains('@'));
        if good { Ok(Self(text)) } else { Err(EmailError) }
    }

    /// The part after the `@`.
    pub fn domain(&self) -> &str {
        self.0.split_once('@').map_or("", |(_, domain)| domain)
    }

    /// The address.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the `@`. Used as the name of the user's first team.
    pub fn local_part(&self) -> &str {
        self.0.split_once('@').map_or(&self.0, |(local, _)| local)
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The password has an invalid length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must have {} to {} characters; got {chars}", PASSWORD_CHARS.start(), PASSWORD_CHARS.end())]
pub struct PasswordError {
    /// Actual length in characters.
    pub chars: usize,
}

/// Checks the length of a password. All characters are allowed.
///
/// # Errors
/// If it is too short or too long.
pub fn check_password(password: &str) -> Result<(), PasswordError> {
    let chars = password.chars().count();
    if PASSWORD_CHARS.contains(&chars) { Ok(()) } else { Err(PasswordError { chars }) }
}

/// A user's role in a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Manages the team.
    Owner,
    /// Uses the team's grabs and keys.
    Member,
    /// Sees grabs, usage and the request log, and changes nothing.
    Viewer,
    /// Buys credits and sees what they were used for, and nothing else.
    Billing,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Owner, Self::Member, Self::Viewer, Self::Billing];

    /// The role's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Member => "member",
            Self::Viewer => "viewer",
            Self::Billing => "billing",
        }
    }

    /// The role with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn email_parse_normalizes_and_rejects_malformed_addresses() {
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
    fn check_password_checks_only_the_length() {
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

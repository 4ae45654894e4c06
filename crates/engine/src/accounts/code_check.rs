//! Checks what somebody presents as their second factor: a typed code, of which wrong ones are limited, or the answer of a
//! passkey, which cannot be guessed.

use grabd_domain::accounts::Email;
use grabd_domain::ids::UserId;
use grabd_store::accounts::FactorUse;

use super::passkeys::verify::{PasskeyAnswer, PasskeyError, verify};
use super::second_factor_mail::{SecondFactorEvent, notify};
use super::tries::Source;
use super::{recovery_codes, totp};
use crate::error::{Error, internal_from};
use crate::service::Core;

/// Maximum length of what is read as a code, in bytes.
const MAX_BYTES: usize = 64;

/// What somebody presents as their second factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactorAnswer<'a> {
    /// A code of the authenticator app, or a recovery code.
    Code(&'a str),
    /// The answer of a passkey.
    Passkey(PasskeyAnswer<'a>),
}

/// Why a code was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// It is neither a code of an authenticator app nor a recovery code.
    #[error("must be {} digits, or a recovery code", totp::DIGITS)]
    Malformed,
    /// It is not the current code, or not an unused recovery code.
    #[error("the code is wrong")]
    Wrong,
    /// It is right, but it or a later one was accepted before.
    #[error("the code was used before")]
    AlreadyUsed,
    /// Too many wrong codes for this account.
    #[error("too many wrong codes; retry in {retry_after_s} s")]
    TooMany {
        /// Seconds until the next try can succeed.
        retry_after_s: u64,
    },
    /// The account has no second factor.
    #[error("the account has no second factor")]
    NotOn,
    /// The answer of the passkey was not accepted.
    #[error(transparent)]
    Passkey(#[from] PasskeyError),
    /// An internal error.
    #[error(transparent)]
    Internal(Error),
}

internal_from!(CodeError);

/// What somebody typed.
enum EnteredCode {
    /// The code of an authenticator app.
    Totp(u32),
    /// A recovery code, without separators.
    Recovery(String),
}

/// A right answer that is not used up yet. The try of a code is taken until [`CheckedCode::finish`].
pub(super) struct CheckedCode<'a> {
    pub(super) factor: FactorUse,
    email: &'a Email,
    source: Source,
}

/// Finds out what the answer is, and takes a try for a code. The caller uses it up, and reports the result to
/// [`CheckedCode::finish`].
///
/// # Errors
/// See [`CodeError`].
pub(super) async fn check_code<'a>(
    core: &Core,
    user: UserId,
    email: &'a Email,
    source: Source,
    answer: FactorAnswer<'_>,
) -> Result<CheckedCode<'a>, CodeError> {
    let code = match answer {
        FactorAnswer::Code(code) => code,
        FactorAnswer::Passkey(answer) => {
            let factor = verify(core, Some(user), answer).await?.factor;
            return Ok(CheckedCode { factor, email, source });
        }
    };
    let code = EnteredCode::parse(code).ok_or(CodeError::Malformed)?;
    let found = core.store.accounts().find_second_factor(user).await?.ok_or(CodeError::NotOn)?;
    let now = core.clock.now();
    // Taken before the check, so that concurrent requests cannot exceed the limit.
    if let Err(wait) = core.accounts.passwords.tries.take_code(email, source, now) {
        return Err(CodeError::TooMany { retry_after_s: wait.as_secs().max(1) });
    }
    let factor = match code {
        EnteredCode::Recovery(code) => FactorUse::RecoveryCode(recovery_codes::hash(user, &code)),
        EnteredCode::Totp(code) => {
            // Without an authenticator app no such code is right.
            let Some(sealed) = &found.secret else { return Err(wrong(core, email, source)) };
            let secret = core.vault.unseal(sealed, user.0.as_bytes())?;
            let steps = totp::matching_steps(&secret, code, now);
            let Some(latest) = steps.last() else { return Err(wrong(core, email, source)) };
            FactorUse::Step(*latest)
        }
    };
    Ok(CheckedCode { factor, email, source })
}

/// Finds the step of the code that confirms a new secret. Only the user who was shown the secret can know it, so tries
/// are not limited.
///
/// # Errors
/// [`CodeError::Malformed`] and [`CodeError::Wrong`].
pub(super) fn confirming_step(core: &Core, secret: &[u8], code: &str) -> Result<i64, CodeError> {
    match EnteredCode::parse(code) {
        Some(EnteredCode::Totp(code)) => {
            totp::matching_steps(secret, code, core.clock.now()).last().copied().ok_or(CodeError::Wrong)
        }
        Some(EnteredCode::Recovery(_)) | None => Err(CodeError::Malformed),
    }
}

impl CheckedCode<'_> {
    /// Returns the try, if the code was accepted.
    ///
    /// # Errors
    /// When it was not.
    pub(super) fn finish(self, core: &Core, is_accepted: bool) -> Result<(), CodeError> {
        match (self.factor, is_accepted) {
            (FactorUse::Passkey(_), true) => Ok(()),
            (FactorUse::Passkey(_), false) => Err(PasskeyError::AlreadyUsed.into()),
            (FactorUse::Step(_) | FactorUse::RecoveryCode(_), true) => {
                core.accounts.passwords.tries.give_back_code(self.email, self.source);
                Ok(())
            }
            (FactorUse::Step(_), false) => Err(CodeError::AlreadyUsed),
            (FactorUse::RecoveryCode(_), false) => Err(wrong(core, self.email, self.source)),
        }
    }
}

/// Counts a wrong code, and sends a notice after several: whoever entered them has the password.
fn wrong(core: &Core, email: &Email, source: Source) -> CodeError {
    if core.accounts.passwords.tries.count_wrong_code(email, source, core.clock.now()) {
        notify(core, email, SecondFactorEvent::WrongCodes);
    }
    CodeError::Wrong
}

impl EnteredCode {
    /// Reads a code, with any spaces and hyphens.
    fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_BYTES {
            return None;
        }
        let compact: String = text.chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
        if compact.len() == totp::DIGITS && compact.bytes().all(|byte| byte.is_ascii_digit()) {
            return compact.parse().ok().map(Self::Totp);
        }
        recovery_codes::parse(&compact).map(Self::Recovery)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_with_spaces_and_hyphens() {
        for text in ["012345", " 012 345 ", "012-345"] {
            assert!(matches!(EnteredCode::parse(text), Some(EnteredCode::Totp(12_345))), "{text}");
        }
        for text in ["ABCD-efgh ijkl-2345", "abcdefghijkl2345"] {
            let code = EnteredCode::parse(text);
            assert!(matches!(code, Some(EnteredCode::Recovery(code)) if code == "abcdefghijkl2345"), "{text}");
        }
        for text in ["", "12345", "1234567", "12345a", "+12345", "١٢٣٤٥٦", &" ".repeat(65)] {
            assert!(EnteredCode::parse(text).is_none(), "{text}");
        }
    }
}

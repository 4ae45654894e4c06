//! Checks what somebody typed as a code, and limits wrong codes.

use grabd_domain::Fault;
use grabd_domain::accounts::Email;
use grabd_domain::ids::UserId;
use grabd_store::accounts::FactorUse;

use super::second_factor_mail::{SecondFactorEvent, notify};
use super::tries::Source;
use super::{recovery_codes, totp};
use crate::core::Core;
use crate::faults::internal_error;

/// Maximum length of what is read as a code, in bytes.
const MAX_BYTES: usize = 64;

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
    /// An internal error.
    #[error(transparent)]
    Internal(#[from] Fault),
}

/// What somebody typed.
enum EnteredCode {
    /// The code of an authenticator app.
    Totp(u32),
    /// A recovery code, without separators.
    Recovery(String),
}

/// A right code that is not used up yet. Its try is taken until [`CheckedCode::finish`].
pub(super) struct CheckedCode<'a> {
    pub(super) factor: FactorUse,
    email: &'a Email,
    source: Source,
}

/// Takes a try, and finds out what the code is. The caller uses it up, and reports the result to
/// [`CheckedCode::finish`].
///
/// # Errors
/// See [`CodeError`].
pub(super) async fn check_code<'a>(
    core: &Core,
    user: UserId,
    email: &'a Email,
    source: Source,
    code: &str,
) -> Result<CheckedCode<'a>, CodeError> {
    let step = "accounts.check_code";
    let code = EnteredCode::parse(code).ok_or(CodeError::Malformed)?;
    let found = core.store.find_second_factor(user).await.map_err(internal_error(step))?.ok_or(CodeError::NotOn)?;
    let now = core.clock.now();
    // Taken before the check, so that concurrent requests cannot exceed the limit.
    if let Err(wait) = core.accounts.passwords.tries.take_code(email, source, now) {
        return Err(CodeError::TooMany { retry_after_s: wait.as_secs().max(1) });
    }
    let factor = match code {
        EnteredCode::Recovery(code) => FactorUse::RecoveryCode(recovery_codes::hash(user, &code)),
        EnteredCode::Totp(code) => {
            let secret =
                core.webhooks.vault().unseal(&found.secret, user.0.as_bytes()).map_err(internal_error(step))?;
            let steps = totp::matching_steps(&secret, code, now);
            let Some(latest) = steps.last() else { return Err(wrong(core, email, source)) };
            FactorUse::Step(*latest)
        }
    };
    Ok(CheckedCode { factor, email, source })
}

/// Finds the step of the code that confirms a new secret. Only the person who was shown the secret can know it, so tries
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
        if is_accepted {
            core.accounts.passwords.tries.give_back_code(self.email, self.source);
            return Ok(());
        }
        match self.factor {
            FactorUse::Step(_) => Err(CodeError::AlreadyUsed),
            FactorUse::RecoveryCode(_) => Err(wrong(core, self.email, self.source)),
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

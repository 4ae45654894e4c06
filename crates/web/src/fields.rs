//! Form fields that several pages have: the e-mail address, passwords and names.

use grabd_domain::accounts::{EMAIL_BYTES, PASSWORD_CHARS, PasswordError};
use grabd_domain::teams::NAME_CHARS;
use grabd_engine::accounts::{CodeError, FactorAnswer, PasskeyAnswer, PasskeyError, PasswordConfirmationError};

use crate::form::{Field, FieldError, Form};
use crate::problem::Problem;
use crate::time_format::wait;

/// The hint of fields for a new password.
pub(crate) const PASSWORD_HINT: &str = "At least 12 characters. Several words are a good choice.";

/// The field for an e-mail address.
pub(crate) fn email_field(form: &Form, errors: &[FieldError]) -> Field {
    let field = Field {
        name: "email",
        label: "E-mail address",
        kind: "email",
        autocomplete: "email",
        max_length: u32::try_from(*EMAIL_BYTES.end()).unwrap_or(u32::MAX),
        hint: "",
        value: form.get("email").to_owned(),
        error: None,
    };
    field.with_errors(errors)
}

/// The field for a password.
pub(crate) fn password_field(autocomplete: &'static str, hint: &'static str, errors: &[FieldError]) -> Field {
    let field = Field {
        name: "password",
        label: "Password",
        kind: "password",
        autocomplete,
        max_length: u32::try_from(*PASSWORD_CHARS.end()).unwrap_or(u32::MAX),
        hint,
        value: String::new(),
        error: None,
    };
    field.with_errors(errors)
}

/// The error of a form that needs a verified e-mail address. The form keeps what was entered.
pub(crate) const UNVERIFIED_MESSAGE: &str = "Verify your e-mail address first: open the link in the e-mail that was sent to you. Then send this form \
                                            again.";

/// The error for an invalid e-mail address.
pub(crate) const EMAIL_MESSAGE: &str = "Enter an e-mail address such as ada@example.com.";

/// The error for a password of invalid length.
pub(crate) fn password_message(PasswordError { chars }: PasswordError) -> String {
    let (min, max) = (PASSWORD_CHARS.start(), PASSWORD_CHARS.end());
    match chars < *min {
        true => format!("Use at least {min} characters; this password has {chars}."),
        false => format!("Use at most {max} characters; this password has {chars}."),
    }
}

/// The error of a password that was not accepted, and the seconds to wait if there were too many.
///
/// # Errors
/// Internal errors.
pub(crate) fn password_error(error: PasswordConfirmationError) -> Result<(FieldError, Option<u64>), Problem> {
    let (message, retry_after_s) = match error {
        PasswordConfirmationError::Wrong => ("The password is wrong.".to_owned(), None),
        PasswordConfirmationError::TooMany { retry_after_s } => {
            let message = format!("Too many wrong passwords for your account. Try again in {}.", wait(retry_after_s));
            (message, Some(retry_after_s))
        }
        PasswordConfirmationError::Internal(error) => return Err(error.into()),
    };
    Ok((FieldError { field: "password", message }, retry_after_s))
}

/// Maximum length of a typed code, with spaces and hyphens.
const CODE_CHARS: u32 = 40;

/// The field for a code of the authenticator app.
pub(crate) fn code_field(errors: &[FieldError]) -> Field {
    second_factor_field("Code", "one-time-code", "The 6 digits that your authenticator app shows.", errors)
}

/// The field for a code of an authenticator app that is not in use yet, beside another field for a code.
pub(crate) fn app_code_field(errors: &[FieldError]) -> Field {
    let hint = "The 6 digits that the app shows after you have added this account.";
    let field = second_factor_field("Code of the new app", "off", hint, &[]);
    Field { name: "app_code", ..field }.with_errors(errors)
}

/// The field for a recovery code.
pub(crate) fn recovery_code_field(errors: &[FieldError]) -> Field {
    second_factor_field("Recovery code", "off", "One of the codes that you saved. Each works once.", errors)
}

/// The field for a code of either kind.
pub(crate) fn any_code_field(errors: &[FieldError]) -> Field {
    let hint = "The 6 digits that your authenticator app shows, or a recovery code.";
    second_factor_field("Code", "one-time-code", hint, errors)
}

fn second_factor_field(
    label: &'static str,
    autocomplete: &'static str,
    hint: &'static str,
    errors: &[FieldError],
) -> Field {
    let field = Field {
        name: "code",
        label,
        kind: "text",
        autocomplete,
        max_length: CODE_CHARS,
        hint,
        // A code is used up or wrong.
        value: String::new(),
        error: None,
    };
    field.with_errors(errors)
}

/// The error of a code that was not accepted, and the seconds to wait if there were too many.
///
/// # Errors
/// Internal errors, and when the account has no second factor.
pub(crate) fn code_error(error: CodeError) -> Result<(FieldError, Option<u64>), Problem> {
    let (message, retry_after_s) = match error {
        CodeError::Malformed => {
            let message = "Enter the 6 digits that your authenticator app shows, or a recovery code such as \
                           abcd-efgh-ijkl-mnop.";
            (message.to_owned(), None)
        }
        CodeError::Wrong => {
            let message =
                "The code is wrong. Enter the current one. If that does not help, check the clock of your device.";
            (message.to_owned(), None)
        }
        CodeError::AlreadyUsed => {
            ("This code was used before. Wait until your app shows the next one.".to_owned(), None)
        }
        CodeError::TooMany { retry_after_s } => {
            let message = format!("Too many wrong codes for your account. Try again in {}.", wait(retry_after_s));
            (message, Some(retry_after_s))
        }
        CodeError::NotOn => {
            return Err(Problem::conflict(
                "The second factor is off",
                "Nothing was changed.",
                "See your account page.",
            ));
        }
        CodeError::Passkey(error) => {
            return Ok((FieldError { field: "", message: passkey_message(error)?.to_owned() }, None));
        }
        CodeError::Internal(error) => return Err(error.into()),
    };
    Ok((FieldError { field: "code", message }, retry_after_s))
}

/// What a form contains as the second factor: the answer of a passkey, or a code.
pub(crate) fn factor_answer(form: &Form) -> FactorAnswer<'_> {
    match form.get("passkey") {
        "" => FactorAnswer::Code(form.get("code")),
        _ => FactorAnswer::Passkey(passkey_answer(form)),
    }
}

/// The answer of a passkey in a form.
pub(crate) fn passkey_answer(form: &Form) -> PasskeyAnswer<'_> {
    PasskeyAnswer { token: form.get("passkey_token"), answer: form.get("passkey") }
}

/// The error of a passkey that was not accepted.
///
/// # Errors
/// Internal errors, and when the service has no passkeys.
pub(crate) fn passkey_message(error: PasskeyError) -> Result<&'static str, Problem> {
    match error {
        PasskeyError::Unavailable => Err(Problem::no_passkeys()),
        PasskeyError::Expired => Ok("The passkey was used more than five minutes after it was asked for. Try again."),
        PasskeyError::Unknown => Ok("This passkey is not known here: it was removed, or belongs to another account."),
        PasskeyError::Invalid => Ok("The passkey was not accepted. Try again, or use something else."),
        PasskeyError::AlreadyUsed => Ok("This answer of the passkey was used before. Use the passkey again."),
        PasskeyError::Internal(error) => Err(error.into()),
    }
}

/// The field for a team's or key's name.
pub(crate) fn name_field(label: &'static str, hint: &'static str, form: Option<&Form>, errors: &[FieldError]) -> Field {
    let field = Field {
        name: "name",
        label,
        kind: "text",
        autocomplete: "off",
        max_length: u32::try_from(*NAME_CHARS.end()).unwrap_or(u32::MAX),
        hint,
        value: form.map(|form| form.get("name").to_owned()).unwrap_or_default(),
        error: None,
    };
    field.with_errors(errors)
}

//! The fields of the forms of proxies, and their errors.

use grabd_domain::Fault;
use grabd_domain::capture::HIDDEN;
use grabd_domain::faults;
use grabd_domain::proxies::{LOGIN_BYTES, NAME_CHARS, ProxyRequest, URL_BYTES};

use crate::environments::ENVIRONMENT;
use crate::form::{Field, FieldError, Form};

pub(super) const NAME: &str = "name";
pub(super) const URL: &str = "url";
pub(super) const USERNAME: &str = "username";
pub(super) const PASSWORD: &str = "password";

pub(super) fn name_field(value: &str, errors: &[FieldError]) -> Field {
    let hint = "For you: messages of failed captures have it.";
    text_field(NAME, "Name", hint, NAME_CHARS, value, errors)
}

pub(super) fn url_field(value: &str, errors: &[FieldError]) -> Field {
    let hint = "Scheme, host and port: http, https or socks5, such as http://proxy.example.com:3128.";
    text_field(URL, "URL", hint, URL_BYTES, value, errors)
}

pub(super) fn username_field(hint: &'static str, value: &str, errors: &[FieldError]) -> Field {
    text_field(USERNAME, "User name", hint, LOGIN_BYTES, value, errors)
}

pub(super) fn password_field(hint: &'static str, errors: &[FieldError]) -> Field {
    let field = text_field(PASSWORD, "Password", hint, LOGIN_BYTES, "", errors);
    Field { kind: "password", ..field }
}

fn text_field(
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    max_length: usize,
    value: &str,
    errors: &[FieldError],
) -> Field {
    let field = Field {
        name,
        label,
        kind: "text",
        autocomplete: "off",
        max_length: u32::try_from(max_length).unwrap_or(u32::MAX),
        hint,
        value: value.to_owned(),
        error: None,
    };
    field.with_errors(errors)
}

/// The request of a form. Members that the form does not have are left out.
pub(super) fn request(input: &Form) -> ProxyRequest {
    let member = |name: &str| input.has(name).then(|| input.get(name).to_owned());
    ProxyRequest {
        name: member(NAME),
        url: member(URL).map(|url| url.trim().to_owned()),
        username: member(USERNAME).map(|username| username.trim().to_owned()),
        password: member(PASSWORD),
        unparsed: Vec::new(),
    }
}

/// The form error for a rejected request; `Err` if the user cannot correct it in the form.
pub(super) fn field_error(fault: Fault, input: &Form) -> Result<FieldError, Fault> {
    let about = |field: &'static str, message: String| Ok(FieldError { field, message });
    match fault {
        Fault::BadRequest(field) => match field.name {
            NAME if input.get(NAME).trim().is_empty() => about(NAME, "Enter a name.".to_owned()),
            NAME => about(NAME, must("The name", &field)),
            URL if input.get(URL).trim().is_empty() => about(URL, "Enter the URL.".to_owned()),
            URL => about(URL, must("The URL", &field)),
            USERNAME => about(USERNAME, must("The user name", &field)),
            PASSWORD if input.get(USERNAME).trim().is_empty() => {
                about(USERNAME, "Enter the user name that belongs to the password.".to_owned())
            }
            PASSWORD => about(PASSWORD, must("The password", &field)),
            _ => about(
                ENVIRONMENT,
                format!("The team has reached its limit of proxies: {}. Delete one first.", field.allowed),
            ),
        },
        Fault::SsrfDetected(field) => {
            about(URL, format!("The proxy must be at a public address. {}", must("The URL", &field)))
        }
        Fault::Unauthorized
        | Fault::TeamSuspended
        | Fault::LinkRefused(_)
        | Fault::KeyExpired { .. }
        | Fault::Forbidden { .. }
        | Fault::InvalidViewport(_)
        | Fault::IdempotencyMismatch(_)
        | Fault::CreditsExhausted
        | Fault::NotFound { .. }
        | Fault::IdempotencyConflict
        | Fault::RenderBlocked(_)
        | Fault::RateLimitExceeded { .. }
        | Fault::WaitLimitExceeded { .. }
        | Fault::ImagesBusy { .. }
        | Fault::QueueTooLong { .. }
        | Fault::FailedRenderTimeExceeded { .. }
        | Fault::QueueLimitExceeded { .. }
        | Fault::StorageFull
        | Fault::TeamStorageFull { .. }
        | Fault::AccountStorageFull { .. }
        | Fault::RenderFailed(_)
        | Fault::Unavailable
        | Fault::InternalError => Err(fault),
    }
}

fn must(label: &str, field: &faults::Field) -> String {
    let faults::Field { name: _, member: _, seen, allowed } = field;
    match seen.is_empty() || seen == HIDDEN {
        true => format!("{label} must be {allowed}."),
        false => format!("{label} must be {allowed}; it was {seen}."),
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::address::Policy;
    use grabd_domain::proxies::NewProxy;

    use super::*;

    #[test]
    fn errors_name_their_field_and_no_secret() {
        let error = |query: &str| {
            let input = Form::parse(query.as_bytes());
            let fault = NewProxy::parse(&request(&input), &Policy::default()).err()?;
            field_error(fault, &input).ok().map(|error| (error.field, error.message))
        };
        for (query, field, part) in [
            ("name=+&url=http://proxy.example.com:3128", "name", "Enter a name."),
            ("name=Office&url=", "url", "Enter the URL."),
            ("name=Office&url=ftp://proxy.example.com:21", "url", "must be http://HOST:PORT"),
            ("name=Office&url=http://10.0.0.1:3128", "url", "public address"),
            ("name=Office&url=http://me:hidden@proxy.example.com:3128", "url", "without a user name"),
            ("name=Office&url=http://proxy.example.com:3128&password=hidden", "username", "Enter the user name"),
            ("name=Office&url=http://proxy.example.com:3128&username=a:hidden", "username", "without colons"),
        ] {
            let (actual, message) = error(query).unwrap();
            assert!(actual == field && message.contains(part) && !message.contains("hidden"), "{query}: {message}");
        }
        assert_eq!(error("name=Office&url=http://proxy.example.com:3128&username=&password="), None);
    }
}

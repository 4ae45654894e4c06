//! Authentication of clients at the endpoints that programs call with a form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use grabd_domain::credentials::ClientSecret;
use grabd_domain::oauth::{AuthMethod, ClientId};

use super::endpoint_error::EndpointError;
use super::form::Form;
use crate::digest;
use crate::service::Core;

/// Authenticates the client. One with a secret must send it, by Basic or in the form; one without must not send any.
pub(super) async fn authenticate(
    core: &Core,
    form: Form<'_>,
    authorization: Option<&str>,
) -> Result<ClientId, EndpointError> {
    let named = form.one("client_id")?;
    let posted = form.one("client_secret")?;
    let (id, secret) = match authorization {
        None => (named.map(str::to_owned), posted.map(str::to_owned)),
        Some(_) if posted.is_some() => {
            return Err(EndpointError::invalid_request("A client must prove who it is in one way, not in two."));
        }
        Some(field) => {
            let (id, secret) = basic(field).ok_or_else(|| {
                EndpointError::invalid_client("`Authorization` must be Basic with the client's id and secret.")
            })?;
            if named.is_some_and(|named| named != id) {
                return Err(EndpointError::invalid_request("`client_id` is not the client of `Authorization`."));
            }
            (Some(id), Some(secret).filter(|secret| !secret.is_empty()))
        }
    };
    let id = id.ok_or_else(|| EndpointError::invalid_client("`client_id` is missing."))?;
    let unknown = || EndpointError::invalid_client("The client is unknown, or its secret is wrong.");
    let id = ClientId::parse(&id).ok_or_else(unknown)?;
    let expected = match &id {
        // A client with a metadata document is always public, so the document is not fetched.
        ClientId::Document(_) => None,
        ClientId::Registered(text) => {
            let found = core.store.oauth().find_client(text).await?;
            let client = found.ok_or_else(unknown)?;
            match client.metadata.auth_method {
                AuthMethod::None => None,
                AuthMethod::Basic | AuthMethod::Post => client.secret_hash,
            }
        }
    };
    let sent = secret.map(|secret| ClientSecret::parse(&secret).map(|secret| digest::of(secret.expose())));
    match (expected, sent) {
        (None, None) => Ok(id),
        // Both are hashes of 256 random bits, so the comparison need not be constant-time.
        (Some(expected), Some(Some(sent))) if expected == sent => Ok(id),
        (None | Some(_), _) => Err(unknown()),
    }
}

/// Id and secret of `Authorization: Basic`, both form-encoded (RFC 6749 section 2.3.1).
fn basic(field: &str) -> Option<(String, String)> {
    let (scheme, encoded) = field.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (id, secret) = decoded.split_once(':')?;
    Some((form_decoded(id)?, form_decoded(secret)?))
}

fn form_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_decodes_form_encoded_id_and_secret() {
        let field = |text: &str| format!("Basic {}", STANDARD.encode(text));
        let both = |id: &str, secret: &str| Some((id.to_owned(), secret.to_owned()));
        for (field, expected) in [
            (field("a:b"), both("a", "b")),
            (field("a:"), both("a", "")),
            (field("a:b:c"), both("a", "b:c")),
            (field("https%3A%2F%2Fa.example%2Fc:x+%2B"), both("https://a.example/c", "x +")),
            (field("a:b").replace("Basic", "bAsIC"), both("a", "b")),
            (field("a"), None),
            (field("a%:b"), None),
            (field("a%zz:b"), None),
            (field("a%ff:b"), None),
            (field("a:b").replace("Basic", "Bearer"), None),
            ("Basic".to_owned(), None),
            ("Basic !".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(basic(&field), expected, "{field}");
        }
    }
}

use super::invalid_field;
use crate::Code;
use crate::credentials::{AccessToken, ApiKey, Credential, Environment};
use crate::idempotency::IdempotencyKey;

/// API keys and access tokens parse only if well-formed, round-trip, and are hidden in debug output. The environment of
/// a key follows from its prefix. The input is the credential, or a line that ends with it.
pub fn api_key(data: &[u8]) {
    let Some(text) = str::from_utf8(data).ok().and_then(|line| line.rsplit(' ').next()) else { return };
    let environment = match text.get(..8) {
        Some("sk_live_") => Some(Environment::Live),
        Some("sk_test_") => Some(Environment::Test),
        _ => None,
    };
    let secret = text.get(8..).unwrap_or_default();
    let alphabet = |c: char| c.is_ascii_alphanumeric() || ['-', '_'].contains(&c);
    let well_formed = secret.chars().count() == 43 && secret.chars().all(alphabet);
    let expected = environment.filter(|_| well_formed);

    let token = text.strip_prefix("gat_").filter(|secret| secret.chars().count() == 43 && secret.chars().all(alphabet));
    match Credential::parse(text) {
        Some(Credential::Key(key)) => assert_eq!((key.expose(), Some(key.environment())), (text, expected)),
        Some(Credential::Token(token)) => {
            assert_eq!(token.expose(), text);
            assert!(!format!("{token:?}").contains(&text[4..43]), "debug output reveals the secret");
        }
        None => assert!(expected.is_none() && token.is_none(), "{text:?}"),
    }
    assert_eq!(AccessToken::parse(text).is_some(), token.is_some(), "{text:?}");

    let key = ApiKey::parse(text);
    assert_eq!(key.as_ref().map(ApiKey::environment), expected, "{text:?}");
    let Some(key) = key else { return };
    assert_eq!(key.expose(), text);
    assert_eq!(ApiKey::new(key.environment(), secret).as_ref(), Some(&key));
    assert!(text.ends_with(key.last4()) && key.last4().len() == 4);
    assert!(!format!("{key:?}").contains(&secret[..39]), "debug output reveals the secret");
}

/// Idempotency keys parse only if well-formed, and round-trip.
pub fn idempotency_key(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let good = (1..=255).contains(&text.chars().count()) && text.chars().all(|c| ('!'..='~').contains(&c));
    match IdempotencyKey::parse(text) {
        Ok(key) => {
            assert!(good, "{text:?}");
            assert_eq!(key.as_str(), text);
        }
        Err(fault) => {
            assert!(!good, "{text:?}");
            assert_eq!((fault.code(), invalid_field(&fault)), (Code::IdempotencyMismatch, "Idempotency-Key"));
        }
    }
}

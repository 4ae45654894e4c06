//! Signs links.

use grabd_engine::links::LinkCredentials;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use url::form_urlencoded;

/// The members as a query.
pub fn encode(members: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(members).finish()
}

/// A query with the key, the members, and the signature.
pub fn sign(signer: &LinkCredentials, members: &[(&str, &str)]) -> String {
    let key = signer.key.to_string();
    sign_text(signer, &encode(&[&[("key", &*key)], members].concat()))
}

/// A query with its signature.
pub fn sign_text(signer: &LinkCredentials, query: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(signer.secret.expose().as_bytes()).expect("any length");
    mac.update(query.as_bytes());
    let digits: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{query}&sig={digits}")
}

//! Opens a link: verifies it, and captures its page unless an earlier image answers it.

use std::time::Duration;

use grabd_domain::Fault;
use grabd_domain::capture::{CaptureSpec, Tolerance};
use grabd_domain::credentials::{LinkSecret, Scope};
use grabd_domain::faults::{Granted, LinkRefusal};
use grabd_domain::grabs::{Class, State};
use grabd_domain::links::{Link, SignedQuery};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::create_once::{create, create_once};
use super::in_flight::{LinkError, LinkResult};
use super::secret::unseal;
use super::signed::SignedLink;
use crate::accounts::RateLimitDecision;
use crate::error::Error;
use crate::grabs::{CreateRequest, CreateResult};
use crate::service::Core;

/// The answer to a link.
pub struct OpenedLink {
    /// The grab.
    pub result: CreateResult,
    /// How long others may store the answer.
    pub fresh_for: Duration,
    /// The state of the limit of the link's key. `None`: an earlier image answers, which is not counted.
    pub counted: Option<RateLimitDecision>,
}

/// Verifies the signature of a link. Nothing is cached, so that the revocation of a key takes effect immediately.
///
/// # Errors
/// [`Fault::LinkRefused`]; if the link is valid, [`Fault::KeyExpired`], [`Fault::Forbidden`] without the scope to create,
/// and [`Fault::TeamSuspended`].
#[tracing::instrument(name = "links.verify", skip_all)]
pub async fn verify(core: &Core, query: String) -> Result<SignedLink, Error> {
    let refused = Fault::LinkRefused(LinkRefusal::Signature);
    let SignedQuery { signed, key, signature } = SignedQuery::parse(&query)?;
    let signer = core.store.accounts().find_link_signer(key.0).await?;
    let Some((signer, sealed)) = signer.and_then(|signer| Some((signer.clone(), signer.sealed_secret?))) else {
        return Err(refused.into());
    };
    let secret = unseal(&core.vault, key.0, &sealed)?;
    if !is_signed(&secret, signed, &signature) {
        return Err(refused.into());
    }
    if let Some(expired_at) = signer.expires_at.filter(|at| *at <= core.clock.now()) {
        return Err(Fault::KeyExpired { expired_at }.into());
    }
    // A link creates grabs.
    if !signer.scopes.includes(Scope::Create) {
        return Err(Fault::Forbidden { needed: Scope::Create, granted: Granted::Key(signer.scopes) }.into());
    }
    if signer.is_suspended {
        return Err(Fault::TeamSuspended.into());
    }
    let may_read = signer.scopes.includes(Scope::Read);
    Ok(SignedLink { caller: signer.caller, key: key.0, may_read, query })
}

/// Captures the page of a link, or answers with an earlier image.
///
/// # Errors
/// [`Fault::LinkRefused`] if the link has expired, [`Fault::BadRequest`] if it has members that links cannot have, and
/// the errors of a create. [`Fault::RateLimitExceeded`] is about the key that signed the link, and not about its team.
#[tracing::instrument(name = "links.open", skip_all)]
pub async fn open(core: &Core, link: &SignedLink) -> Result<OpenedLink, LinkError> {
    let link_request = SignedQuery::parse(&link.query)?.read(core.clock.now())?;
    let Link { capture, .. } = &link_request;
    let max_age = CaptureSpec::parse(capture)?.max_age;
    let request = CreateRequest {
        capture: capture.clone(),
        tolerance: Tolerance::default(),
        class: Class::Sync,
        idempotency_key: None,
        may_read: link.may_read,
        is_link: true,
    };
    let LinkResult { result, counted } = match max_age.is_zero() {
        true => create(core, link, &request).await?,
        false => create_once(core, link.clone(), request).await?,
    };
    let fresh_for = match &result.grab.state {
        State::Done { finished_at, .. } => link_request.fresh_for(max_age, *finished_at, core.clock.now()),
        State::Pending | State::Processing | State::Failed { .. } => Duration::ZERO,
    };
    Ok(OpenedLink { result, fresh_for, counted })
}

/// Whether the secret made the signature. The comparison takes the same time for every signature.
fn is_signed(secret: &LinkSecret, signed: &str, signature: &[u8; 32]) -> bool {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).expect("HMAC accepts keys of any length");
    mac.update(signed.as_bytes());
    mac.verify_slice(signature).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by OpenSSL: `printf %s 'key=…&url=…&expires=1' | openssl dgst -sha256 -hmac gls_AAAA…`.
    #[test]
    fn signature_is_that_of_openssl() {
        let secret = LinkSecret::new(&"A".repeat(43)).unwrap();
        let signed = "key=lk_00000000000000000000000000000abc&url=https%3A%2F%2Fexample.com%2F&expires=1795206775";
        let query = format!("{signed}&sig={OPENSSL}");
        let parsed = SignedQuery::parse(&query).unwrap();
        assert!(is_signed(&secret, parsed.signed, &parsed.signature));
        let mut other = parsed.signature;
        other[31] ^= 1;
        assert!(!is_signed(&secret, signed, &other));
        assert!(!is_signed(&secret, &signed.replace("%3A", ":"), &parsed.signature));
        assert!(!is_signed(&LinkSecret::new(&"B".repeat(43)).unwrap(), signed, &parsed.signature));
    }

    const OPENSSL: &str = "e6373a74beffe4dc0231f9ad457389a0fe83f72d418048b44354e826bae4f0d0";
}

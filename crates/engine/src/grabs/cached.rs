//! Answers creates with earlier grabs that show the same, if the caller accepts their age. Such an answer costs
//! nothing, and holds nothing.

use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::Caller;
use grabd_domain::idempotency::Fingerprint;
use grabd_domain::ids::KeyId;
use grabd_store::grabs::{NewRecord, ReuseGrab, ReuseOutcome};
use sha2::{Digest, Sha256};

use super::idempotency;
use super::request::{CreateRequest, CreateResult};
use crate::error::Error;
use crate::service::Core;
use crate::storage;

/// Fingerprint of what determines the image. None with secret options: those are deleted when the grab has ended, so
/// nothing is derived from them that stays, and such a grab never answers another request. None with `compare_to` either:
/// whether something changed is only known of a new image.
///
/// # Errors
/// If the options cannot be serialized.
pub(super) fn fingerprint(spec: &CaptureSpec) -> Result<Option<Fingerprint>, Error> {
    if !spec.secrets.given().is_empty() || spec.compare_to.is_some() {
        return Ok(None);
    }
    let options = serde_json::to_vec(&spec.image_options())?;
    Ok(Some(Sha256::digest(options).into()))
}

/// Fingerprint of what a request shows.
///
/// # Errors
/// The first invalid option.
pub(crate) fn fingerprint_of(request: &CreateRequest) -> Result<Option<Fingerprint>, Error> {
    fingerprint(&CaptureSpec::parse(&request.capture)?)
}

/// The answer of an earlier grab, of this API key if one is given. None if the caller accepts none, or if there is none.
///
/// # Errors
/// [`idempotency::replay`] says which, when a concurrent request with the same key was stored first.
pub(super) async fn find(
    core: &Core,
    caller: Caller,
    spec: &CaptureSpec,
    only_of: Option<KeyId>,
    record: Option<&NewRecord>,
) -> Result<Option<CreateResult>, Error> {
    let (false, Some(fingerprint)) = (spec.max_age.is_zero(), fingerprint(spec)?) else { return Ok(None) };
    let now = core.clock.now();
    let since = now - spec.max_age;
    let reuse = ReuseGrab { team: caller.team, environment: caller.environment, fingerprint, since, only_of, now };
    // Only the key takes space.
    let ceiling = match record {
        Some(_) => storage::ceiling_of(core, caller).await?,
        None => None,
    };
    let found = match record {
        None => core
            .store
            .grabs()
            .find_reusable(&reuse)
            .await
            .map(|grab| grab.map(|grab| ReuseOutcome::Found(Box::new(grab)))),
        Some(record) => core.store.grabs().reuse(reuse, record.clone(), ceiling).await,
    };
    match found? {
        None => Ok(None),
        Some(ReuseOutcome::Found(grab)) => Ok(Some(CreateResult::cached(*grab, spec, false))),
        Some(ReuseOutcome::Repeated(repeat)) => Ok(Some(idempotency::replay(repeat, spec)?)),
        Some(ReuseOutcome::StorageFull) => Err(match ceiling {
            Some(ceiling) => storage::refuse(core, caller.team, ceiling).await,
            None => Error::state("a create without a limit of storage was refused for it"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::{CaptureRequest, OptionValue, Secret};

    use super::*;

    fn fingerprint_of(change: impl FnOnce(&mut CaptureRequest)) -> Option<Fingerprint> {
        let mut request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        change(&mut request);
        fingerprint(&CaptureSpec::parse(&request).unwrap()).unwrap()
    }

    #[test]
    fn fingerprint_depends_on_what_determines_the_image_only() {
        let plain = fingerprint_of(|_| ());
        let text = || OptionValue::Text("a".to_owned());
        let same: [fn(&mut CaptureRequest); 3] =
            [|r| r.max_age = Some(60), |r| r.width = Some(1280), |r| r.url = Some("HTTPS://example.com:443".into())];
        for same in same {
            assert_eq!(fingerprint_of(same), plain);
        }
        assert_eq!(fingerprint_of(|r| r.metadata = Some([("a".to_owned(), text())].into())), plain);
        let others: [fn(&mut CaptureRequest); 4] = [
            |r| r.width = Some(1281),
            |r| r.timeout_ms = Some(1000),
            |r| r.script = Some("1".into()),
            |r| r.url = Some("https://example.com/a".into()),
        ];
        for other in others {
            assert_ne!(fingerprint_of(other), plain);
        }
    }

    #[test]
    fn fingerprint_of_a_comparison_is_none() {
        assert_eq!(fingerprint_of(|r| r.compare_to = Some("01993e1c-7b1a-7000-8000-0123456789ab".into())), None);
    }

    #[test]
    fn fingerprint_of_secret_options_is_none() {
        let headers = || Secret([("X-Token".to_owned(), OptionValue::Text("hidden".to_owned()))].into());
        assert_eq!(fingerprint_of(|r| r.headers = Some(headers())), None);
        let spec = CaptureRequest {
            url: Some("https://example.com/".into()),
            headers: Some(headers()),
            ..CaptureRequest::default()
        };
        // Also of a stored spec, which has only the names.
        let stored = CaptureSpec::parse(&spec).unwrap().without_secrets();
        assert_eq!(fingerprint(&stored).unwrap(), None);
    }
}

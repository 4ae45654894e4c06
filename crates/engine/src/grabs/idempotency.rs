//! Idempotency keys of creates: the stored record, and the result of a repeated request.

use grabd_domain::Fault;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::Caller;
use grabd_domain::faults::Field;
use grabd_domain::grabs::Class;
use grabd_domain::idempotency::{Fingerprint, IdempotencyKey, malformed};
use grabd_store::grabs::{NewRecord, Repeat};
use sha2::{Digest, Sha256};

use super::request::{CreateRequest, CreateResult};
use crate::error::Error;
use crate::queue::secrets;
use crate::vault::Vault;

/// Name of the field in all APIs.
const KEY: &str = "Idempotency-Key";

/// The record to store for the request's idempotency key. `None` without a key.
///
/// # Errors
/// [`Fault::IdempotencyMismatch`] when the key is malformed.
pub(super) fn new_record(
    vault: &Vault,
    caller: Caller,
    request: &CreateRequest,
    spec: &CaptureSpec,
    class: Class,
) -> Result<Option<NewRecord>, Error> {
    if let Some((_, seen)) = request.capture.unparsed.iter().find(|(name, _)| name == KEY) {
        return Err(malformed(seen).into());
    }
    let Some(key) = &request.idempotency_key else { return Ok(None) };
    let (fingerprint, only_of) = (fingerprint(vault, spec, class)?, request.only_of(caller));
    Ok(Some(NewRecord { key: IdempotencyKey::parse(key)?, fingerprint, only_of }))
}

/// Fingerprint of the effective options: an omitted option equals one set to its default. Of secret options it has a
/// keyed digest, since their values could be guessed from another one. Unknown members have no effect.
fn fingerprint(vault: &Vault, spec: &CaptureSpec, class: Class) -> Result<Fingerprint, Error> {
    let mode = match class {
        Class::Sync => "sync",
        Class::Async => "async",
    };
    let known = (!spec.unknown.is_empty()).then(|| spec.without_unknown());
    let mut effective = serde_json::to_vec(&(known.as_ref().unwrap_or(spec), mode))?;
    if let Some(secrets) = secrets::to_json(spec)? {
        effective.extend(vault.digest(&secrets));
    }
    Ok(Sha256::digest(effective).into())
}

/// The result of a repeated create with these options.
///
/// # Errors
/// [`Fault::IdempotencyConflict`] while the first request is in flight, [`Fault::IdempotencyMismatch`] when the options
/// differ.
pub(super) fn replay(repeat: Repeat, spec: &CaptureSpec) -> Result<CreateResult, Fault> {
    match repeat {
        Repeat::Replay(grab) => Ok(CreateResult { grab: *grab, replayed: true, cached: false }),
        Repeat::Cached(grab) => Ok(CreateResult::cached(*grab, spec, true)),
        Repeat::InFlight => Err(Fault::IdempotencyConflict),
        Repeat::Mismatch => {
            let allowed = "a new one for each new request; this one belongs to a request with other options, or of \
                           another API key";
            Err(Fault::IdempotencyMismatch(Field::new(KEY, "", allowed)))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use grabd_domain::capture::{CaptureRequest, OptionValue as Value, Secret, Tolerance};
    use grabd_domain::credentials::{Environment, Principal};
    use grabd_domain::faults::Code;
    use grabd_domain::ids::{TeamId, UserId};

    use super::*;

    fn request_with(change: impl FnOnce(&mut CaptureRequest)) -> CreateRequest {
        let mut capture = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        change(&mut capture);
        let idempotency_key = Some("a key".replace(' ', "-"));
        CreateRequest {
            capture,
            tolerance: Tolerance::default(),
            class: Class::Sync,
            idempotency_key,
            may_read: true,
            is_link: false,
        }
    }

    fn vault() -> Vault {
        Vault::new([7; 32])
    }

    fn record_of(request: &CreateRequest) -> Result<Option<NewRecord>, Error> {
        let spec = CaptureSpec::parse(&request.capture).expect("a valid request");
        let principal = Principal::User(UserId(uuid::Uuid::nil()));
        let caller = Caller { team: TeamId(uuid::Uuid::nil()), environment: Environment::Test, principal };
        new_record(&vault(), caller, request, &spec, request.class)
    }

    fn fingerprint_of(request: &CreateRequest) -> Fingerprint {
        record_of(request).expect("a valid key").expect("a key").fingerprint
    }

    /// Rows and fingerprints as version 0.1 stored them. Lines are added for options of later versions; no line is ever
    /// changed, because stored grabs must stay readable and repeated creates must still match.
    #[test]
    fn stored_specs_and_fingerprints_of_earlier_versions_are_unchanged() {
        for line in include_str!("golden/0.1.jsonl").lines() {
            let golden: BTreeMap<String, String> = serde_json::from_str(line).unwrap();
            let spec: CaptureSpec = serde_json::from_str(&golden["spec"]).unwrap();
            assert_eq!(serde_json::to_string(&spec).unwrap(), golden["spec"]);
            for (name, class) in [("sync", Class::Sync), ("async", Class::Async)] {
                let digest: String =
                    fingerprint(&vault(), &spec, class).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(digest, golden[name], "{line}");
            }
        }
    }

    #[test]
    fn fingerprint_depends_on_the_effective_options_only() {
        let plain = fingerprint_of(&request_with(|_| ()));
        let same: [fn(&mut CaptureRequest); 5] = [
            |r| r.unknown = vec!["widht".into()],
            |r| (r.width, r.height) = (Some(1280), Some(720)),
            |r| (r.format, r.full_page) = (Some("png".into()), Some(false)),
            |r| r.delay_ms = Some(0),
            |r| r.url = Some("HTTPS://EXAMPLE.com:443".into()),
        ];
        for same in same {
            assert_eq!(fingerprint_of(&request_with(same)), plain);
        }
        let other: [fn(&mut CaptureRequest); 7] = [
            |r| r.width = Some(1281),
            |r| r.height = Some(721),
            |r| r.format = Some("webp".into()),
            |r| r.full_page = Some(true),
            |r| r.delay_ms = Some(1),
            |r| r.selector = Some("h1".into()),
            |r| r.url = Some("https://example.com/a".into()),
        ];
        let mut seen = vec![plain, fingerprint_of(&CreateRequest { class: Class::Async, ..request_with(|_| ()) })];
        for other in other {
            seen.push(fingerprint_of(&request_with(other)));
        }
        for (at, one) in seen.iter().enumerate() {
            assert!(!seen[..at].contains(one), "{at} equals an earlier fingerprint");
        }
    }

    #[test]
    fn fingerprint_depends_on_secret_values_and_on_the_key_of_the_vault() {
        let with_header = |value: &str| {
            let headers = [("X-Token".to_owned(), Value::Text(value.to_owned()))].into();
            let request = request_with(|r| r.headers = Some(Secret(headers)));
            CaptureSpec::parse(&request.capture).unwrap()
        };
        let of = |vault: [u8; 32], value| fingerprint(&Vault::new(vault), &with_header(value), Class::Sync).unwrap();
        assert_eq!(of([7; 32], "a"), of([7; 32], "a"));
        let all = [of([7; 32], "a"), of([7; 32], "b"), of([8; 32], "a"), fingerprint_of(&request_with(|_| ()))];
        assert!((1..all.len()).all(|at| !all[..at].contains(&all[at])));
    }

    #[test]
    fn malformed_keys_are_refused() {
        let code = |request: &CreateRequest| record_of(request).err().and_then(|error| Some(error.as_fault()?.code()));
        let key = |key: &str| CreateRequest { idempotency_key: Some(key.into()), ..request_with(|_| ()) };
        assert_eq!(code(&key("0f3c")), None);
        for bad in ["", "a b", "a\u{7f}", "ü", &"k".repeat(256)] {
            assert_eq!(code(&key(bad)), Some(Code::IdempotencyMismatch), "{bad:?}");
        }
        let twice = CreateRequest {
            idempotency_key: None,
            ..request_with(|r| r.unparsed = vec![(KEY.into(), "2 header lines".into())])
        };
        assert_eq!(code(&twice), Some(Code::IdempotencyMismatch));
        assert_eq!(record_of(&CreateRequest { idempotency_key: None, ..request_with(|_| ()) }), Ok(None));
    }
}

//! The caller's key of a create: what it stands for, and what a repeated one is answered.

use grabd_domain::Fault;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::faults::Field;
use grabd_domain::grabs::Class;
use grabd_domain::idempotency::{Fingerprint, IdempotencyKey, malformed};
use grabd_store::{NewRecord, Repeat};
use sha2::{Digest, Sha256};

use super::create::{Answer, CreateRequest};
use crate::core::inside;

/// The field's name on every wire.
const KEY: &str = "Idempotency-Key";

/// The record that the request's key asks for, if it has a key.
///
/// # Errors
/// [`Fault::IdempotencyMismatch`] for a key that cannot be one.
pub(super) fn record(request: &CreateRequest, spec: &CaptureSpec, class: Class) -> Result<Option<NewRecord>, Fault> {
    if let Some((_, seen)) = request.capture.unparsed.iter().find(|(name, _)| name == KEY) {
        return Err(malformed(seen));
    }
    let Some(key) = &request.idempotency_key else { return Ok(None) };
    Ok(Some(NewRecord { key: IdempotencyKey::parse(key)?, fingerprint: fingerprint(spec, class)? }))
}

/// Of what will be done, not of what was sent: an option that is left out and one that says the default are the same.
fn fingerprint(spec: &CaptureSpec, class: Class) -> Result<Fingerprint, Fault> {
    let mode = match class {
        Class::Sync => "sync",
        Class::Async => "async",
    };
    let effective = serde_json::to_vec(&(spec, mode)).map_err(inside("grabs.fingerprint"))?;
    Ok(Sha256::digest(effective).into())
}

/// The answer to a repeated create.
///
/// # Errors
/// [`Fault::IdempotencyConflict`] while the first one runs, [`Fault::IdempotencyMismatch`] for another request.
pub(super) fn answer(repeat: Repeat) -> Result<Answer, Fault> {
    match repeat {
        Repeat::Replay(grab) => Ok(Answer { grab: *grab, replayed: true }),
        Repeat::InFlight => Err(Fault::IdempotencyConflict),
        Repeat::Mismatch => {
            let allowed = "a new one for each new request; this one belongs to a request with other options";
            Err(Fault::IdempotencyMismatch(Field::new(KEY, "", allowed)))
        }
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::CaptureRequest;
    use grabd_domain::faults::Code;

    use super::*;

    fn asks(change: impl FnOnce(&mut CaptureRequest)) -> CreateRequest {
        let mut capture = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        change(&mut capture);
        CreateRequest { capture, class: Class::Sync, idempotency_key: Some("a key".replace(' ', "-")) }
    }

    fn of(request: &CreateRequest) -> Result<Option<NewRecord>, Fault> {
        let spec = CaptureSpec::parse(&request.capture).expect("a good request");
        record(request, &spec, request.class)
    }

    fn print(request: &CreateRequest) -> Fingerprint {
        of(request).expect("a good key").expect("a key").fingerprint
    }

    #[test]
    fn what_is_done_decides_and_not_how_it_was_said() {
        let plain = print(&asks(|_| ()));
        let same: [fn(&mut CaptureRequest); 4] = [
            |r| (r.width, r.height) = (Some(1280), Some(720)),
            |r| (r.format, r.full_page) = (Some("png".into()), Some(false)),
            |r| r.delay_ms = Some(0),
            |r| r.url = Some("HTTPS://EXAMPLE.com:443".into()),
        ];
        for same in same {
            assert_eq!(print(&asks(same)), plain);
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
        let mut seen = vec![plain, print(&CreateRequest { class: Class::Async, ..asks(|_| ()) })];
        for other in other {
            seen.push(print(&asks(other)));
        }
        for (at, one) in seen.iter().enumerate() {
            assert!(!seen[..at].contains(one), "{at} is like an earlier one");
        }
    }

    #[test]
    fn keys_that_cannot_be_are_refused() {
        let code = |request: &CreateRequest| of(request).err().map(|fault| fault.code());
        let key = |key: &str| CreateRequest { idempotency_key: Some(key.into()), ..asks(|_| ()) };
        assert_eq!(code(&key("0f3c")), None);
        for bad in ["", "a b", "a\u{7f}", "ü", &"k".repeat(256)] {
            assert_eq!(code(&key(bad)), Some(Code::IdempotencyMismatch), "{bad:?}");
        }
        let twice = CreateRequest {
            idempotency_key: None,
            ..asks(|r| r.unparsed = vec![(KEY.into(), "2 header lines".into())])
        };
        assert_eq!(code(&twice), Some(Code::IdempotencyMismatch));
        assert_eq!(of(&CreateRequest { idempotency_key: None, ..asks(|_| ()) }), Ok(None));
    }
}

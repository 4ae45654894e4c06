//! Calls of legacy clients that are under way, so that another request of theirs can take one back.
//!
//! There are no sessions, so a call is known by the credential it came with and by its id. Two clients of one credential
//! may use the same id at the same time; then nobody can say which one is meant, and neither is taken back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grabd_proto::credential;
use http::HeaderMap;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use super::message::Id;
use crate::rest::json::Members;

/// The credential's hash and the id as it was written.
type Key = ([u8; 32], String);

/// What is under way.
#[derive(Default)]
pub(super) struct Calls(Mutex<HashMap<Key, Vec<Arc<CancellationToken>>>>);

/// A call under way, until it is dropped.
pub(super) struct Open {
    calls: Arc<Calls>,
    key: Key,
    /// Cancelled when the call is taken back.
    pub(super) taken_back: Arc<CancellationToken>,
}

impl Calls {
    /// Notes a call.
    pub(super) fn open(self: &Arc<Self>, headers: &HeaderMap, id: &Id) -> Open {
        let key = key(headers, id);
        let taken_back = Arc::new(CancellationToken::new());
        self.lock().entry(key.clone()).or_default().push(Arc::clone(&taken_back));
        Open { calls: Arc::clone(self), key, taken_back }
    }

    /// Takes the call back that the params of `notifications/cancelled` name, if it is the only one that can be meant.
    pub(super) fn cancel(&self, headers: &HeaderMap, params: &Members<'_>) {
        let Some(id) = params.get("requestId").and_then(|id| Id::of(id)) else { return };
        if let Some([only]) = self.lock().get(&key(headers, &id)).map(Vec::as_slice) {
            only.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Vec<Arc<CancellationToken>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(headers: &HeaderMap, id: &Id) -> Key {
    (Sha256::digest(credential::bearer(headers).unwrap_or_default()).into(), id.as_str().to_owned())
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut calls = self.calls.lock();
        if let Some(open) = calls.get_mut(&self.key) {
            open.retain(|token| !Arc::ptr_eq(token, &self.taken_back));
            if open.is_empty() {
                calls.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::AUTHORIZATION;
    use serde_json::value::RawValue;

    use super::*;

    fn with(key: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {key}")).unwrap())])
    }

    fn id(text: &str) -> Id {
        Id::of(serde_json::from_str::<&RawValue>(text).unwrap()).unwrap()
    }

    fn cancel(calls: &Calls, key: &str, id: &str) {
        let params = format!("{{\"requestId\":{id}}}");
        calls.cancel(&with(key), &crate::rest::json::object(params.as_bytes()).unwrap());
    }

    #[test]
    fn only_the_one_that_is_meant_is_taken_back() {
        let calls = Arc::new(Calls::default());
        let seven = calls.open(&with("a"), &id("7"));
        let text = calls.open(&with("a"), &id("\"7\""));
        let other = calls.open(&with("b"), &id("7"));
        for (key, id) in [("a", "8"), ("c", "7"), ("a", "null"), ("a", "{}")] {
            cancel(&calls, key, id);
        }
        cancel(&calls, "a", "7");
        assert!(seven.taken_back.is_cancelled());
        assert!(!text.taken_back.is_cancelled() && !other.taken_back.is_cancelled());

        let twin = calls.open(&with("b"), &id("7"));
        cancel(&calls, "b", "7");
        assert!(!other.taken_back.is_cancelled() && !twin.taken_back.is_cancelled(), "nobody can say which");
        drop(twin);
        cancel(&calls, "b", "7");
        assert!(other.taken_back.is_cancelled());
        drop((seven, text, other));
        assert!(calls.lock().is_empty(), "nothing is kept of what is over");
    }
}

//! Open calls of legacy clients, which another request can cancel.
//!
//! Without sessions, a call is identified by its credential and its id. Two clients with one credential may use the
//! same id at the same time. A cancellation is then ambiguous and cancels neither.

use std::collections::HashMap;
use std::sync::Arc;

use grabd_proto::credential;
use http::HeaderMap;
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use super::message::Id;
use crate::rest::json::Members;

/// Hash of the credential, and the id as it was sent.
type Key = ([u8; 32], String);

/// All open calls.
#[derive(Default)]
pub(super) struct OpenCalls(Mutex<HashMap<Key, Vec<Arc<CancellationToken>>>>);

/// Registration of an open call. Dropping it removes the call.
pub(super) struct OpenCall {
    calls: Arc<OpenCalls>,
    key: Key,
    /// Triggered when the client cancels the call.
    pub(super) cancelled: Arc<CancellationToken>,
}

impl OpenCalls {
    /// Registers a call.
    pub(super) fn register(self: &Arc<Self>, headers: &HeaderMap, id: &Id) -> OpenCall {
        let key = key(headers, id);
        let cancelled = Arc::new(CancellationToken::new());
        self.lock().entry(key.clone()).or_default().push(Arc::clone(&cancelled));
        OpenCall { calls: Arc::clone(self), key, cancelled }
    }

    /// Cancels the call named in the params of `notifications/cancelled`, unless it is ambiguous.
    pub(super) fn cancel(&self, headers: &HeaderMap, params: &Members<'_>) {
        let Some(id) = params.get("requestId").and_then(|id| Id::of(id)) else { return };
        if let Some([only]) = self.lock().get(&key(headers, &id)).map(Vec::as_slice) {
            only.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Vec<Arc<CancellationToken>>>> {
        self.0.lock()
    }
}

fn key(headers: &HeaderMap, id: &Id) -> Key {
    (Sha256::digest(credential::bearer(headers).unwrap_or_default()).into(), id.as_str().to_owned())
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut calls = self.calls.lock();
        if let Some(open) = calls.get_mut(&self.key) {
            open.retain(|token| !Arc::ptr_eq(token, &self.cancelled));
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

    fn headers(key: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {key}")).unwrap())])
    }

    fn id(text: &str) -> Id {
        Id::of(serde_json::from_str::<&RawValue>(text).unwrap()).unwrap()
    }

    fn cancel(calls: &OpenCalls, key: &str, id: &str) {
        let params = format!("{{\"requestId\":{id}}}");
        calls.cancel(&headers(key), &crate::rest::json::object(params.as_bytes()).unwrap());
    }

    #[test]
    fn cancel_only_affects_the_unambiguous_call() {
        let calls = Arc::new(OpenCalls::default());
        let seven = calls.register(&headers("a"), &id("7"));
        let text = calls.register(&headers("a"), &id("\"7\""));
        let other = calls.register(&headers("b"), &id("7"));
        for (key, id) in [("a", "8"), ("c", "7"), ("a", "null"), ("a", "{}")] {
            cancel(&calls, key, id);
        }
        cancel(&calls, "a", "7");
        assert!(seven.cancelled.is_cancelled());
        assert!(!text.cancelled.is_cancelled() && !other.cancelled.is_cancelled());

        let duplicate = calls.register(&headers("b"), &id("7"));
        cancel(&calls, "b", "7");
        assert!(!other.cancelled.is_cancelled() && !duplicate.cancelled.is_cancelled(), "ambiguous");
        drop(duplicate);
        cancel(&calls, "b", "7");
        assert!(other.cancelled.is_cancelled());
        drop((seven, text, other));
        assert!(calls.lock().is_empty(), "finished calls must be removed");
    }
}

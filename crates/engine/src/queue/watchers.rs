//! Subscriptions to the states of grabs. Synchronous creates, streams and waits all use them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grabd_domain::grabs::Grab;
use grabd_domain::ids::GrabId;
use tokio::sync::watch;

type State = Option<Arc<Grab>>;

/// One watch channel per watched grab. It only holds the latest state, so slow readers need no buffer.
#[derive(Clone, Default)]
pub(crate) struct Watchers(Arc<Mutex<HashMap<GrabId, watch::Sender<State>>>>);

/// A subscription to one grab. Ends when dropped.
pub(crate) struct Subscription {
    watchers: Watchers,
    grab: GrabId,
    states: Option<watch::Receiver<State>>,
}

impl Watchers {
    /// Subscribes to a grab. Subscribe before reading the store, so that no change is missed.
    pub(crate) fn subscribe(&self, grab: GrabId) -> Subscription {
        let states = self.lock().entry(grab).or_insert_with(|| watch::channel(None).0).subscribe();
        Subscription { watchers: self.clone(), grab, states: Some(states) }
    }

    /// Publishes a state to the subscribers of the grab, unless a later one was published before.
    pub(crate) fn publish(&self, grab: Grab) {
        if let Some(sender) = self.lock().get(&grab.id) {
            sender.send_if_modified(|seen| {
                let is_newer = seen.as_ref().is_none_or(|seen| seen.revision() < grab.revision());
                if is_newer {
                    *seen = Some(Arc::new(grab));
                }
                is_newer
            });
        }
    }

    /// Whether the grab has subscribers.
    pub(crate) fn is_watched(&self, grab: GrabId) -> bool {
        self.lock().contains_key(&grab)
    }

    /// All grabs that have subscribers.
    pub(crate) fn watched(&self) -> Vec<GrabId> {
        self.lock().keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<GrabId, watch::Sender<State>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscription {
    /// Waits for a state with a revision after `seen`. Cancel-safe.
    pub(crate) async fn next_after(&mut self, seen: u64) -> Arc<Grab> {
        let states = self.states.as_mut().expect("only drop takes it");
        let state = states.wait_for(|state| state.as_ref().is_some_and(|grab| grab.revision() > seen)).await;
        match state.ok().and_then(|state| state.clone()) {
            Some(grab) => grab,
            // The sender stays in the map as long as this subscription exists.
            None => std::future::pending().await,
        }
    }

    /// Waits until the grab has ended. Cancel-safe.
    pub(crate) async fn wait_for_end(&mut self) -> Arc<Grab> {
        let mut grab = self.next_after(0).await;
        while !grab.status().is_terminal() {
            grab = self.next_after(grab.revision()).await;
        }
        grab
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut map = self.watchers.lock();
        self.states = None;
        if map.get(&self.grab).is_some_and(|sender| sender.receiver_count() == 0) {
            map.remove(&self.grab);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use grabd_domain::Timestamp;
    use grabd_domain::capture::{CaptureRequest, CaptureSpec};
    use grabd_domain::credentials::Environment;
    use grabd_domain::grabs::{Class, Failure, FailureReason, RenderMetadata, State};

    use super::*;
    use crate::random;

    fn grab(id: GrabId, attempts: u32, state: State) -> Grab {
        let request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        Grab {
            id,
            team: random::team_id(Timestamp::from_ms(0)),
            environment: Environment::Live,
            class: Class::Sync,
            spec: CaptureSpec::parse(&request).unwrap(),
            created_at: Timestamp::from_ms(0),
            deleted_at: None,
            attempts,
            state,
        }
    }

    #[test]
    fn publish_ignores_older_states() {
        let watchers = Watchers::default();
        let id = random::grab_id(Timestamp::from_ms(0));
        let mut subscription = watchers.subscribe(id);
        watchers.publish(grab(id, 1, State::Processing));
        watchers.publish(grab(id, 0, State::Pending));
        assert_eq!(subscription.next_after(0).now_or_never().unwrap().revision(), 2);
        assert!(subscription.next_after(2).now_or_never().is_none());
        let failure = Failure::new(FailureReason::RenderFailed, "x");
        let metadata = RenderMetadata::default();
        watchers.publish(grab(id, 1, State::Failed { finished_at: Timestamp::from_ms(1), failure, metadata }));
        assert!(subscription.wait_for_end().now_or_never().unwrap().status().is_terminal());
    }

    #[test]
    fn channel_is_removed_with_its_last_subscription() {
        let watchers = Watchers::default();
        let id = random::grab_id(Timestamp::from_ms(0));
        let (first, second) = (watchers.subscribe(id), watchers.subscribe(id));
        drop(first);
        assert!(watchers.is_watched(id));
        drop(second);
        assert!(watchers.watched().is_empty());
    }
}

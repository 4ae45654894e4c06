//! Who waits for which grab: every way of waiting reads the same stream of states.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grabd_domain::grabs::Grab;
use grabd_domain::ids::GrabId;
use tokio::sync::watch;

type State = Option<Arc<Grab>>;

/// One channel for each watched grab; the latest state wins, so a slow reader costs one state and never more.
#[derive(Clone, Default)]
pub(crate) struct Watchers(Arc<Mutex<HashMap<GrabId, watch::Sender<State>>>>);

/// A place in the audience of one grab, given up when dropped.
pub(crate) struct Subscription {
    watchers: Watchers,
    grab: GrabId,
    states: Option<watch::Receiver<State>>,
}

impl Watchers {
    /// Watches a grab from now on. Subscribe first, then read the store: nothing falls between.
    pub(crate) fn subscribe(&self, grab: GrabId) -> Subscription {
        let states = self.lock().entry(grab).or_insert_with(|| watch::channel(None).0).subscribe();
        Subscription { watchers: self.clone(), grab, states: Some(states) }
    }

    /// Shows a state to those who watch the grab, unless they have seen a later one.
    pub(crate) fn publish(&self, grab: Grab) {
        if let Some(sender) = self.lock().get(&grab.id) {
            sender.send_if_modified(|seen| {
                let news = seen.as_ref().is_none_or(|seen| seen.revision() < grab.revision());
                if news {
                    *seen = Some(Arc::new(grab));
                }
                news
            });
        }
    }

    /// Does anybody watch this grab?
    pub(crate) fn is_watched(&self, grab: GrabId) -> bool {
        self.lock().contains_key(&grab)
    }

    /// Every watched grab.
    pub(crate) fn watched(&self) -> Vec<GrabId> {
        self.lock().keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<GrabId, watch::Sender<State>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscription {
    /// The next state with a revision after `seen`. Cancel-safe.
    pub(crate) async fn after(&mut self, seen: u64) -> Arc<Grab> {
        let states = self.states.as_mut().expect("taken only by drop");
        let state = states.wait_for(|state| state.as_ref().is_some_and(|grab| grab.revision() > seen)).await;
        match state.ok().and_then(|state| state.clone()) {
            Some(grab) => grab,
            // The sender lives in the map as long as we do.
            None => std::future::pending().await,
        }
    }

    /// The state in which the grab has ended. Cancel-safe.
    pub(crate) async fn end(&mut self) -> Arc<Grab> {
        let mut grab = self.after(0).await;
        while !grab.status().is_terminal() {
            grab = self.after(grab.revision()).await;
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
    use grabd_domain::grabs::{Class, Facts, Failure, FailureReason, State};

    use super::*;
    use crate::chance;

    fn grab(id: GrabId, attempts: u32, state: State) -> Grab {
        let request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        Grab {
            id,
            team: chance::team_id(Timestamp::from_ms(0)),
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
    fn the_latest_state_wins_and_older_ones_are_not_shown() {
        let watchers = Watchers::default();
        let id = chance::grab_id(Timestamp::from_ms(0));
        let mut subscription = watchers.subscribe(id);
        watchers.publish(grab(id, 1, State::Processing));
        watchers.publish(grab(id, 0, State::Pending));
        assert_eq!(subscription.after(0).now_or_never().unwrap().revision(), 2);
        assert!(subscription.after(2).now_or_never().is_none());
        let failure = Failure::new(FailureReason::RenderFailed, "x");
        let facts = Facts::default();
        watchers.publish(grab(id, 1, State::Failed { finished_at: Timestamp::from_ms(1), failure, facts }));
        assert!(subscription.end().now_or_never().unwrap().status().is_terminal());
    }

    #[test]
    fn nothing_is_kept_for_those_who_left() {
        let watchers = Watchers::default();
        let id = chance::grab_id(Timestamp::from_ms(0));
        let (first, second) = (watchers.subscribe(id), watchers.subscribe(id));
        drop(first);
        assert!(watchers.is_watched(id));
        drop(second);
        assert!(watchers.watched().is_empty());
    }
}

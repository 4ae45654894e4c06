//! Subscriptions to the states of grabs. Synchronous creates, streams and waits all use them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use grabd_domain::grabs::{Grab, Stages, State};
use grabd_domain::ids::GrabId;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::Instant;

/// What is known about a watched grab.
#[derive(Default)]
struct Latest {
    grab: Option<Arc<Grab>>,
    /// When it was first seen in its latest attempt. `None` unless it is being rendered.
    rendered_since: Option<Instant>,
    /// The stages of its latest attempt.
    stages: Stages,
}

/// A state of a watched grab.
#[derive(Clone, Debug)]
pub struct GrabUpdate {
    /// The grab.
    pub grab: Arc<Grab>,
    /// The stages that its render has reached. None unless it is being rendered.
    pub stages: Stages,
}

/// One watch channel per watched grab. It only holds the latest state, so slow readers need no buffer.
#[derive(Clone, Default)]
pub(crate) struct Watchers(Arc<Mutex<HashMap<GrabId, watch::Sender<Latest>>>>);

/// A subscription to one grab. Ends when dropped.
pub(crate) struct Subscription {
    watchers: Watchers,
    grab: GrabId,
    states: Option<watch::Receiver<Latest>>,
}

impl Watchers {
    /// Subscribes to a grab. Subscribe before reading the store, so that no change is missed.
    pub(crate) fn subscribe(&self, grab: GrabId) -> Subscription {
        let states = self.lock().entry(grab).or_insert_with(|| watch::channel(Latest::default()).0).subscribe();
        Subscription { watchers: self.clone(), grab, states: Some(states) }
    }

    /// Publishes a state to the subscribers of the grab, unless a later one was published before.
    pub(crate) fn publish(&self, grab: Grab) {
        if let Some(sender) = self.lock().get(&grab.id) {
            sender.send_if_modified(|seen| {
                let is_newer = seen.grab.as_ref().is_none_or(|seen| seen.revision() < grab.revision());
                if is_newer {
                    seen.rendered_since = matches!(grab.state, State::Processing).then(Instant::now);
                    seen.grab = Some(Arc::new(grab));
                }
                is_newer
            });
        }
    }

    /// Publishes the stages of an attempt to the subscribers of the grab, unless later ones were published before.
    pub(crate) fn publish_stages(&self, grab: GrabId, stages: Stages) {
        if let Some(sender) = self.lock().get(&grab) {
            sender.send_if_modified(|seen| {
                let is_newer = stages.is_after(&seen.stages);
                if is_newer {
                    seen.stages = stages;
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

    fn lock(&self) -> MutexGuard<'_, HashMap<GrabId, watch::Sender<Latest>>> {
        self.0.lock()
    }
}

impl Latest {
    /// The state, if it has a revision after `seen`, or with `stages` a stage after those.
    fn update_after(&self, seen: u64, stages: Option<&Stages>) -> Option<GrabUpdate> {
        let grab = self.grab.as_ref()?;
        let shown = grab.shown_stages(self.stages);
        let is_later = |stages| shown.current().is_some() && shown.is_after(stages);
        let has_stage = grab.revision() == seen && stages.is_some_and(is_later);
        (grab.revision() > seen || has_stage).then(|| GrabUpdate { grab: Arc::clone(grab), stages: shown })
    }
}

impl Subscription {
    /// Waits for a state with a revision after `seen`. Cancel-safe.
    pub(crate) async fn next_after(&mut self, seen: u64) -> Arc<Grab> {
        self.update_after(seen, None).await.grab
    }

    /// The same, with `stages` also for a stage after those that were seen at the revision `seen`. Cancel-safe.
    pub(crate) async fn update_after(&mut self, seen: u64, stages: Option<&Stages>) -> GrabUpdate {
        let states = self.states.as_mut().expect("only drop takes it");
        let state = states.wait_for(|latest| latest.update_after(seen, stages).is_some()).await;
        match state.ok().and_then(|latest| latest.update_after(seen, stages)) {
            Some(update) => update,
            // The sender stays in the map as long as this subscription exists.
            None => std::future::pending().await,
        }
    }

    /// The same without waiting.
    pub(crate) fn update_now(&self, seen: u64, stages: Option<&Stages>) -> Option<GrabUpdate> {
        self.states.as_ref()?.borrow().update_after(seen, stages)
    }

    /// How long the grab has been rendered by now, as far as it was seen here. `None` if it is not being rendered.
    pub(crate) fn rendered_for(&self) -> Option<Duration> {
        Some(self.states.as_ref()?.borrow().rendered_since?.elapsed())
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
    use grabd_domain::grabs::{Class, Failure, FailureReason, RenderMetadata, Stage};

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

    #[tokio::test(start_paused = true)]
    async fn time_of_a_render_begins_with_its_latest_attempt() {
        let watchers = Watchers::default();
        let id = random::grab_id(Timestamp::from_ms(0));
        let subscription = watchers.subscribe(id);
        let (second, rendered) = (Duration::from_secs(1), |attempts, state| {
            watchers.publish(grab(id, attempts, state));
            subscription.rendered_for()
        });
        assert_eq!(rendered(0, State::Pending), None);
        assert_eq!(rendered(1, State::Processing), Some(Duration::ZERO));
        tokio::time::advance(second).await;
        assert_eq!(rendered(1, State::Processing), Some(second), "seen before");
        assert_eq!(rendered(1, State::Pending), None, "the attempt was lost");
        assert_eq!(rendered(2, State::Processing), Some(Duration::ZERO));
    }

    #[test]
    fn stages_are_news_only_at_the_revision_of_their_attempt() {
        let watchers = Watchers::default();
        let id = random::grab_id(Timestamp::from_ms(0));
        let mut subscription = watchers.subscribe(id);
        let mut stages = Stages::of_attempt(1);
        assert!(stages.reach(Stage::Navigating, 5));
        watchers.publish_stages(id, stages);
        let none = Stages::default();
        assert!(subscription.update_now(0, Some(&none)).is_none(), "the state is not known");
        watchers.publish(grab(id, 0, State::Pending));
        let pending = subscription.update_now(0, Some(&none)).expect("a state");
        assert_eq!((pending.grab.revision(), pending.stages), (1, none), "the grab waits");
        watchers.publish(grab(id, 1, State::Processing));
        let processing = subscription.update_after(1, Some(&none)).now_or_never().expect("a state");
        assert_eq!((processing.grab.revision(), processing.stages), (2, stages));
        assert!(subscription.update_now(2, None).is_none());
        // The same stage again is no news, the next one is, unless stages are not asked for.
        watchers.publish_stages(id, stages);
        assert!(subscription.update_now(2, Some(&stages)).is_none());
        let seen = stages;
        assert!(stages.reach(Stage::Loaded, 9));
        watchers.publish_stages(id, stages);
        watchers.publish_stages(id, seen);
        assert_eq!(subscription.update_now(2, Some(&seen)).map(|update| update.stages), Some(stages));
        assert!(subscription.update_now(2, None).is_none());
        // Stages end with their attempt.
        watchers.publish(grab(id, 1, State::Pending));
        let lost = subscription.update_now(2, Some(&stages)).expect("a state");
        assert_eq!((lost.grab.revision(), lost.stages), (3, none));
        watchers.publish(grab(id, 2, State::Processing));
        let again = subscription.update_now(3, Some(&none)).expect("a state");
        assert_eq!((again.grab.revision(), again.stages), (4, none), "they belong to the first attempt");
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

//! The hints of this process to others, and theirs to this one.

use std::sync::Arc;

use grabd_domain::ids::GrabId;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::hints::Hints;
use super::settings::BusSettings;
use crate::metrics::{HintResult, Metrics};
use crate::random;

/// What sends and receives hints. `None`: there are no other processes, and those who wait in this one are notified
/// without hints. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Bus(pub(super) Option<Arc<Remote>>);

/// Hints to and from other processes.
pub(super) struct Remote {
    pub(super) settings: BusSettings,
    /// Names this process in its payloads, so that it can ignore them.
    pub(super) origin: String,
    pub(super) outgoing: Waiting,
    incoming: Waiting,
    pub(super) metrics: Arc<Metrics>,
}

/// Hints that nobody has taken yet. Bounded, since hints are merged.
#[derive(Default)]
pub(super) struct Waiting {
    hints: Mutex<Hints>,
    added: Notify,
}

impl Waiting {
    fn add(&self, hints: Hints) {
        self.hints.lock().add(hints);
        self.added.notify_one();
    }

    /// Takes all, when there are some. Cancel-safe.
    pub(super) async fn take(&self) -> Hints {
        loop {
            let hints = std::mem::take(&mut *self.hints.lock());
            if !hints.is_empty() {
                return hints;
            }
            self.added.notified().await;
        }
    }
}

impl Bus {
    pub(crate) fn new(settings: BusSettings, metrics: Arc<Metrics>) -> Self {
        if settings == BusSettings::InProcess {
            return Self(None);
        }
        let origin = random::secret_text();
        Self(Some(Arc::new(Remote {
            settings,
            origin,
            outgoing: Waiting::default(),
            incoming: Waiting::default(),
            metrics,
        })))
    }

    /// Hints to other processes that a job waits for a slot. Call it after the commit.
    pub(crate) fn work_queued(&self) {
        if let Some(remote) = &self.0 {
            remote.outgoing.add(Hints::work());
        }
    }

    /// Hints to other processes that a grab has changed. Call it after the commit.
    pub(crate) fn grab_changed(&self, grab: GrabId) {
        if let Some(remote) = &self.0 {
            remote.outgoing.add(Hints::grab(grab));
        }
    }

    /// The hints of other processes since the last call. Waits for the first one. Cancel-safe.
    pub(crate) async fn received(&self) -> Hints {
        match &self.0 {
            Some(remote) => remote.incoming.take().await,
            None => std::future::pending().await,
        }
    }
}

impl Remote {
    /// Adds the hints of a payload, unless it is one of this process.
    pub(super) fn receive(&self, payload: &[u8]) {
        match Hints::read(payload) {
            Ok((origin, _)) if origin == self.origin => {}
            Ok((_, hints)) => {
                self.metrics.hint(HintResult::Received);
                self.incoming.add(hints);
            }
            Err(error) => {
                self.metrics.hint(HintResult::Malformed);
                tracing::debug!(%error, bytes = payload.len(), "a hint was ignored");
            }
        }
    }

    /// Hints may be lost, so everything is read again.
    pub(super) fn receive_anything(&self) {
        self.incoming.add(Hints::anything());
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use grabd_domain::Timestamp;

    use super::*;

    fn remote() -> (Bus, Arc<Remote>) {
        let bus = Bus::new(BusSettings::Database, Arc::default());
        let remote = Arc::clone(bus.0.as_ref().unwrap());
        (bus, remote)
    }

    #[test]
    fn hints_of_other_processes_are_received_and_own_ones_ignored() {
        let ((sender, from), (receiver, to)) = (remote(), remote());
        let id = random::grab_id(Timestamp::from_ms(0));
        sender.work_queued();
        sender.grab_changed(id);
        let payload = from.outgoing.take().now_or_never().unwrap().write(&from.origin);
        assert!(from.outgoing.take().now_or_never().is_none(), "taken together");
        from.receive(payload.as_bytes());
        assert!(sender.received().now_or_never().is_none());
        to.receive(payload.as_bytes());
        to.receive(b"nonsense");
        let mut expected = Hints::work();
        expected.add(Hints::grab(id));
        assert_eq!(receiver.received().now_or_never(), Some(expected));
        assert!(receiver.received().now_or_never().is_none());
    }

    #[test]
    fn one_process_has_no_hints() {
        let bus = Bus::new(BusSettings::InProcess, Arc::default());
        bus.work_queued();
        assert!(bus.0.is_none() && bus.received().now_or_never().is_none());
    }
}

//! The sessions of renderers, their free slots, and the leases they hold.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::grabs::ImageKey;
use grabd_domain::ids::{GrabId, LeaseToken, SessionId};
use grabd_domain::render::Condition;
use grabd_proto::internal::v1::attach_response::Message;
use grabd_proto::internal::v1::{Assignment, AttachResponse, Cancel};
use tokio::sync::{Notify, mpsc};

/// Hands assignments to sessions. A slot is either idle here, reserved, or with a renderer.
#[derive(Default)]
pub(crate) struct Dispatcher {
    state: Mutex<State>,
    bell: Notify,
}

/// Every section that holds the lock is a few map operations, hence a plain mutex.
#[derive(Default)]
struct State {
    sessions: HashMap<SessionId, Session>,
    leases: HashMap<LeaseToken, Held>,
    /// Might the table hold an unleased job? Set after a commit that left one, cleared before the table is asked.
    waiting: bool,
    draining: bool,
}

struct Session {
    outbox: mpsc::Sender<AttachResponse>,
    idle: usize,
    slots: usize,
    attached_at: Timestamp,
    /// What it last told of itself, and when.
    told: Option<(Condition, Timestamp)>,
}

/// A renderer that is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Its session.
    pub session: SessionId,
    /// Since when.
    pub attached_at: Timestamp,
    /// Grabs it renders at a time.
    pub slots: usize,
    /// Slots that are taken.
    pub busy: usize,
    /// What it last told of itself, and when.
    pub told: Option<(Condition, Timestamp)>,
}

struct Held {
    session: SessionId,
    grab: GrabId,
    upload_key: ImageKey,
}

/// A leased job on its way to a renderer.
pub(crate) struct Lease {
    pub(crate) grab: GrabId,
    pub(crate) token: LeaseToken,
    pub(crate) upload_key: ImageKey,
    pub(crate) spec: CaptureSpec,
    pub(crate) budget: Duration,
    pub(crate) attempt: u32,
}

/// A slot taken out of the idle ones. Dropping it without an assignment gives it back.
pub(crate) struct Reservation<'a> {
    dispatcher: &'a Dispatcher,
    session: SessionId,
    used: bool,
}

/// A renderer is gone or does not take its messages; the lease has to be released.
#[derive(Debug)]
pub(crate) struct SessionLost;

/// Two messages a slot (an assignment and its cancel) can wait at most.
const OUTBOX_PER_SLOT: usize = 2;

impl Dispatcher {
    /// A new session and the messages it is to be sent.
    pub(crate) fn attach(&self, id: SessionId, slots: usize, now: Timestamp) -> mpsc::Receiver<AttachResponse> {
        let (outbox, messages) = mpsc::channel(OUTBOX_PER_SLOT * slots.max(1));
        let mut state = self.lock();
        state.sessions.insert(id, Session { outbox, idle: slots, slots, attached_at: now, told: None });
        state.waiting = true;
        drop(state);
        self.bell.notify_one();
        messages
    }

    /// Forgets a session and the leases it held.
    pub(crate) fn detach(&self, id: SessionId) {
        let mut state = self.lock();
        state.sessions.remove(&id);
        state.leases.retain(|_, held| held.session != id);
    }

    /// Slots of a session that became free.
    pub(crate) fn ready(&self, id: SessionId, slots: usize) {
        if let Some(session) = self.lock().sessions.get_mut(&id) {
            session.idle += slots;
        }
        self.bell.notify_one();
    }

    /// What a session tells of itself.
    pub(crate) fn hear(&self, id: SessionId, condition: Condition, now: Timestamp) {
        if let Some(session) = self.lock().sessions.get_mut(&id) {
            session.told = Some((condition, now));
        }
    }

    /// A job was left in the table: somebody should look.
    pub(crate) fn ring(&self) {
        self.lock().waiting = true;
        self.bell.notify_one();
    }

    /// Resolves when there may be something to lease.
    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }

    /// From here on only those who hold the line are served; asynchronous jobs stay in the table for the next life.
    pub(crate) fn drain(&self) {
        self.lock().draining = true;
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.lock().draining
    }

    /// A slot for a job that is about to be created, unless others wait in the table and come first.
    pub(crate) fn reserve(&self) -> Option<Reservation<'_>> {
        let mut state = self.lock();
        if state.waiting {
            return None;
        }
        let (id, session) = state.sessions.iter_mut().find(|(_, session)| session.idle > 0)?;
        session.idle -= 1;
        let session = *id;
        Some(Reservation { dispatcher: self, session, used: false })
    }

    /// Every idle slot, if the table may hold something for them.
    pub(crate) fn reserve_for_waiting(&self) -> Vec<Reservation<'_>> {
        let mut state = self.lock();
        if !state.waiting || state.sessions.values().all(|session| session.idle == 0) {
            return Vec::new();
        }
        // Before the table is asked: a job committed from here on sets it again.
        state.waiting = false;
        let mut taken = Vec::new();
        for (id, session) in &mut state.sessions {
            taken.extend((0..session.idle).map(|_| *id));
            session.idle = 0;
        }
        taken.into_iter().map(|session| Reservation { dispatcher: self, session, used: false }).collect()
    }

    /// Where the picture of this lease goes, while a session of ours holds it.
    pub(crate) fn upload_key(&self, token: LeaseToken) -> Option<ImageKey> {
        self.lock().leases.get(&token).map(|held| held.upload_key.clone())
    }

    /// This lease has ended.
    pub(crate) fn forget(&self, token: LeaseToken) {
        self.lock().leases.remove(&token);
    }

    /// Tells whoever renders this grab that nobody wants it any more.
    pub(crate) fn cancel(&self, grab: GrabId) {
        let mut state = self.lock();
        let Some((token, session)) =
            state.leases.iter().find(|(_, held)| held.grab == grab).map(|(token, held)| (*token, held.session))
        else {
            return;
        };
        state.leases.remove(&token);
        if let Some(session) = state.sessions.get(&session) {
            let cancel = Cancel { lease_token: token.to_string() };
            // A full outbox means that the session is stuck; its leases end by themselves.
            let _ = session.outbox.try_send(AttachResponse { message: Some(Message::Cancel(cancel)) });
        }
    }

    /// Sessions that are attached now.
    pub(crate) fn sessions(&self) -> usize {
        self.lock().sessions.len()
    }

    /// Every renderer that is attached, who came first at the front.
    pub(crate) fn attached(&self) -> Vec<Attached> {
        let attached = |(id, session): (&SessionId, &Session)| {
            let Session { outbox: _, idle, slots, attached_at, told } = session;
            let (attached_at, slots, busy) = (*attached_at, *slots, slots.saturating_sub(*idle));
            Attached { session: *id, attached_at, slots, busy, told: told.clone() }
        };
        let mut all: Vec<Attached> = self.lock().sessions.iter().map(attached).collect();
        all.sort_by_key(|renderer| (renderer.attached_at, renderer.session));
        all
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave these maps half-changed in a way that matters: the table is the truth.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation<'_> {
    /// The session that has the slot.
    pub(crate) const fn session(&self) -> SessionId {
        self.session
    }

    /// Sends the lease to the session.
    ///
    /// # Errors
    /// When the session is gone meanwhile; the lease is then still the caller's to release.
    pub(crate) fn assign(mut self, lease: &Lease) -> Result<(), SessionLost> {
        self.used = true;
        let spec = serde_json::to_string(&lease.spec).map_err(|_| SessionLost)?;
        let assignment = Assignment {
            grab_id: lease.grab.to_string(),
            lease_token: lease.token.to_string(),
            spec,
            budget: prost_types::Duration::try_from(lease.budget).ok(),
            alone: lease.attempt > 1,
        };
        let mut state = self.dispatcher.lock();
        let session = state.sessions.get(&self.session).ok_or(SessionLost)?;
        let message = AttachResponse { message: Some(Message::Assignment(assignment)) };
        session.outbox.try_send(message).map_err(|_| SessionLost)?;
        let held = Held { session: self.session, grab: lease.grab, upload_key: lease.upload_key.clone() };
        state.leases.insert(lease.token, held);
        Ok(())
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if !self.used {
            self.dispatcher.ready(self.session, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::CaptureRequest;

    use super::*;
    use crate::chance;

    fn lease() -> Lease {
        let request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        Lease {
            grab: chance::grab_id(grabd_domain::Timestamp::from_ms(0)),
            token: chance::lease_token(),
            upload_key: ImageKey::new(1, "png"),
            spec: CaptureSpec::parse(&request).unwrap(),
            budget: Duration::from_secs(1),
            attempt: 1,
        }
    }

    fn attached(slots: usize) -> (Dispatcher, SessionId, mpsc::Receiver<AttachResponse>) {
        let dispatcher = Dispatcher::default();
        let id = chance::session_id();
        let messages = dispatcher.attach(id, slots, Timestamp::from_ms(0));
        drop(dispatcher.reserve_for_waiting());
        (dispatcher, id, messages)
    }

    #[test]
    fn a_slot_is_given_once_and_comes_back_when_unused() {
        let (dispatcher, _, _messages) = attached(1);
        let first = dispatcher.reserve().unwrap();
        assert!(dispatcher.reserve().is_none());
        drop(first);
        assert!(dispatcher.reserve().is_some());
    }

    #[test]
    fn renderers_are_shown_with_their_slots_and_what_they_last_told() {
        let (dispatcher, id, _messages) = attached(3);
        let reserved = dispatcher.reserve().unwrap();
        let condition = Condition { browser: "Chromium 1".to_owned(), ..Condition::default() };
        dispatcher.hear(id, Condition::default(), Timestamp::from_ms(1));
        dispatcher.hear(id, condition.clone(), Timestamp::from_ms(2));
        let (now, told) = (Timestamp::from_ms(0), Some((condition, Timestamp::from_ms(2))));
        let shown = Attached { session: id, attached_at: now, slots: 3, busy: 1, told };
        assert_eq!(dispatcher.attached(), std::slice::from_ref(&shown));
        drop(reserved);
        assert_eq!(dispatcher.attached(), [Attached { busy: 0, ..shown }]);
        dispatcher.detach(id);
        dispatcher.hear(id, Condition::default(), Timestamp::from_ms(3));
        assert_eq!(dispatcher.attached(), []);
    }

    #[test]
    fn newcomers_do_not_overtake_those_who_wait() {
        let (dispatcher, _, _messages) = attached(1);
        dispatcher.ring();
        assert!(dispatcher.reserve().is_none());
        assert_eq!(dispatcher.reserve_for_waiting().len(), 1);
        assert!(dispatcher.reserve().is_some());
    }

    #[test]
    fn an_assignment_reaches_its_session_and_is_known_until_it_ends() {
        let (dispatcher, id, mut messages) = attached(1);
        let lease = lease();
        dispatcher.reserve().unwrap().assign(&lease).unwrap();
        assert!(matches!(messages.try_recv().unwrap().message, Some(Message::Assignment(_))));
        assert_eq!(dispatcher.upload_key(lease.token), Some(lease.upload_key.clone()));
        dispatcher.cancel(lease.grab);
        assert!(matches!(messages.try_recv().unwrap().message, Some(Message::Cancel(_))));
        assert_eq!(dispatcher.upload_key(lease.token), None);
        assert!(dispatcher.reserve().is_none(), "the slot is the renderer's until it says ready");
        dispatcher.ready(id, 1);
        assert!(dispatcher.reserve().is_some());
    }

    #[test]
    fn a_session_that_is_gone_takes_nothing() {
        let (dispatcher, id, messages) = attached(2);
        let reserved = dispatcher.reserve().unwrap();
        dispatcher.detach(id);
        assert!(reserved.assign(&lease()).is_err());
        let (dispatcher, ..) = (attached(1).0, drop(messages));
        assert!(dispatcher.reserve().unwrap().assign(&lease()).is_err(), "its receiver is dropped");
    }
}

//! Renderer sessions, their idle slots, and the leases they hold.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::admission::{Account, kept_slots};
use grabd_domain::capture::{CaptureSpec, FileKind, Viewport};
use grabd_domain::grabs::ImageKey;
use grabd_domain::ids::{GrabId, LeaseToken, SessionId};
use grabd_domain::limits::{LEASE_MARGIN, MAX_LEASE_MARGIN, MAX_RENDER_BUDGET};
use grabd_domain::render::RendererStatus;
use tokio::sync::{Notify, mpsc};

use super::final_steps::FinalSteps;

/// Sends assignments to sessions. A slot is idle, reserved, or in use by a renderer.
#[derive(Default)]
pub(crate) struct Dispatcher {
    state: Mutex<State>,
    wakeup: Notify,
}

/// The lock is only held for a few map operations, hence a std mutex.
#[derive(Default)]
struct State {
    sessions: HashMap<SessionId, Session>,
    leases: HashMap<LeaseToken, HeldLease>,
    /// Whether the table may have an unleased job. Set after a commit that left one, cleared before the table is read.
    waiting: bool,
    /// Whether jobs of accounts that never paid wait for another slot than the kept ones.
    held_back: bool,
    /// Number of slots that are reserved for accounts that never paid, but not leased yet.
    reserved_unpaid: usize,
    draining: bool,
}

struct Session {
    outbox: mpsc::Sender<SessionMessage>,
    idle: usize,
    slots: usize,
    attached_at: Timestamp,
    /// The last reported condition, and when it was received.
    heartbeat: Option<(RendererStatus, Timestamp)>,
}

/// An attached renderer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedRenderer {
    /// Session of the renderer.
    pub session: SessionId,
    /// When it was attached.
    pub attached_at: Timestamp,
    /// Maximum number of concurrent grabs.
    pub slots: usize,
    /// Number of slots in use.
    pub busy: usize,
    /// The last reported condition, and when it was received.
    pub heartbeat: Option<(RendererStatus, Timestamp)>,
}

struct HeldLease {
    session: SessionId,
    grab: GrabId,
    upload_key: ImageKey,
    files: RequestedFiles,
    final_steps: FinalSteps,
    ended: EndedLease,
}

/// The files that a grab asks for beside its image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestedFiles {
    pub(crate) also: Vec<FileKind>,
    /// The largest height of a slice in pixels. None: no slices.
    pub(crate) slice_height: Option<u32>,
    /// Further viewports.
    pub(crate) viewports: Vec<Viewport>,
}

/// A lease that has ended, for the account of its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedLease {
    /// The account of the grab.
    pub(crate) account: Account,
    /// When the slot was assigned.
    pub(crate) since: Timestamp,
    /// Number of the attempt.
    pub(crate) attempt: u32,
}

/// How the slots of all sessions are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occupancy {
    /// All slots.
    pub(crate) slots: usize,
    /// Idle slots.
    pub(crate) idle: usize,
    /// Slots that are kept for paying accounts.
    pub(crate) kept: usize,
    /// Idle slots that all accounts may use.
    pub(crate) open_to_all: usize,
}

/// A message for a renderer.
pub enum SessionMessage {
    /// Render this grab.
    Assign(Box<Lease>),
    /// Stop the render of this lease.
    Cancel(LeaseToken),
}

/// A leased job on its way to a renderer.
pub struct Lease {
    /// The grab.
    pub grab: GrabId,
    /// Token of the lease, with which the renderer reports the result.
    pub token: LeaseToken,
    pub(crate) upload_key: ImageKey,
    /// What to capture, including its secret options.
    pub spec: CaptureSpec,
    /// Time limit of the attempt.
    pub budget: Duration,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    pub(crate) account: Account,
    /// When the slot was assigned.
    pub(crate) since: Timestamp,
}

/// A reserved slot. Dropping it without an assignment makes it idle again.
pub(crate) struct Reservation<'a> {
    dispatcher: &'a Dispatcher,
    session: SessionId,
    used: bool,
    /// Counts the slot as used by an account that never paid, until it is leased.
    _open: Option<OpenSlots<'a>>,
}

/// A number of slots that accounts that never paid may use. No other reservation or lease exceeds the rest.
pub(crate) struct OpenSlots<'a> {
    dispatcher: &'a Dispatcher,
    left: usize,
}

impl OpenSlots<'_> {
    /// Number of slots that are left.
    pub(crate) const fn left(&self) -> usize {
        self.left
    }

    /// Takes a slot that was leased.
    pub(crate) fn take(&mut self) {
        let taken = self.left.min(1);
        self.left -= taken;
        self.dispatcher.lock().reserved_unpaid -= taken;
    }
}

impl Drop for OpenSlots<'_> {
    fn drop(&mut self) {
        self.dispatcher.lock().reserved_unpaid -= self.left;
    }
}

impl State {
    fn occupancy(&self, kept_percent: u32) -> Occupancy {
        let (slots, idle) =
            self.sessions.values().fold((0, 0), |(slots, idle), session| (slots + session.slots, idle + session.idle));
        let kept = kept_slots(slots, kept_percent);
        let open_to_all = self.open_to_unpaid(slots, kept).min(idle);
        Occupancy { slots, idle, kept, open_to_all }
    }

    /// Number of further slots that accounts that never paid may use.
    fn open_to_unpaid(&self, slots: usize, kept: usize) -> usize {
        if kept == 0 {
            return slots;
        }
        let leased = self.leases.values().filter(|held| !held.ended.account.has_paid).count();
        (slots - kept).saturating_sub(leased + self.reserved_unpaid)
    }
}

/// The longest lease.
const MAX_LEASE: Duration = Duration::from_secs(MAX_RENDER_BUDGET.as_secs() + MAX_LEASE_MARGIN.as_secs());

/// The session is gone or does not accept messages. The lease must be released.
#[derive(Debug)]
pub(crate) struct SessionLost;

/// At most two messages per slot are queued: an assignment and its cancellation.
const OUTBOX_PER_SLOT: usize = 2;

impl Dispatcher {
    /// Adds a session and returns the messages to send to it.
    pub(crate) fn attach(&self, id: SessionId, slots: usize, now: Timestamp) -> mpsc::Receiver<SessionMessage> {
        let (outbox, messages) = mpsc::channel(OUTBOX_PER_SLOT * slots.max(1));
        let mut state = self.lock();
        state.sessions.insert(id, Session { outbox, idle: slots, slots, attached_at: now, heartbeat: None });
        state.waiting = true;
        drop(state);
        self.wakeup.notify_one();
        messages
    }

    /// Removes a session and its leases.
    pub(crate) fn detach(&self, id: SessionId) {
        let mut state = self.lock();
        state.sessions.remove(&id);
        state.leases.retain(|_, held| held.session != id);
    }

    /// Marks slots of a session as idle.
    pub(crate) fn ready(&self, id: SessionId, slots: usize) {
        if let Some(session) = self.lock().sessions.get_mut(&id) {
            session.idle += slots;
        }
        // The jobs may have waited for a slot of this kind.
        let mut state = self.lock();
        state.waiting |= std::mem::take(&mut state.held_back);
        drop(state);
        self.wakeup.notify_one();
    }

    /// Makes a reserved slot idle again.
    fn release(&self, id: SessionId) {
        if let Some(session) = self.lock().sessions.get_mut(&id) {
            session.idle += 1;
        }
        self.wakeup.notify_one();
    }

    /// How the slots are used, with this share of them kept for paying accounts.
    pub(crate) fn occupancy(&self, kept_percent: u32) -> Occupancy {
        self.lock().occupancy(kept_percent)
    }

    /// Claims all slots that accounts that never paid may use, with this share of all slots kept for paying accounts.
    pub(crate) fn open_slots(&self, kept_percent: u32) -> OpenSlots<'_> {
        let mut state = self.lock();
        let Occupancy { slots, kept, .. } = state.occupancy(kept_percent);
        let left = state.open_to_unpaid(slots, kept);
        state.reserved_unpaid += left;
        OpenSlots { dispatcher: self, left }
    }

    /// Notes that kept slots stay idle although the table may have jobs for other slots.
    pub(crate) fn hold_back(&self) {
        self.lock().held_back = true;
    }

    /// Records the condition reported by a session.
    pub(crate) fn record_heartbeat(&self, id: SessionId, condition: RendererStatus, now: Timestamp) {
        if let Some(session) = self.lock().sessions.get_mut(&id) {
            session.heartbeat = Some((condition, now));
        }
    }

    /// Notifies that the table has an unleased job.
    pub(crate) fn notify(&self) {
        self.lock().waiting = true;
        self.wakeup.notify_one();
    }

    /// Completes when there may be a job to lease.
    pub(crate) async fn notified(&self) {
        self.wakeup.notified().await;
    }

    /// Stops leasing asynchronous jobs. They stay in the table for the next process.
    pub(crate) fn drain(&self) {
        self.lock().draining = true;
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.lock().draining
    }

    /// Reserves a slot for a job about to be created, unless earlier jobs may be waiting in the table. An account that
    /// never paid gets none of the slots that are kept for paying accounts.
    pub(crate) fn reserve(&self, account: Account, kept_percent: u32) -> Option<Reservation<'_>> {
        let mut state = self.lock();
        if state.waiting {
            return None;
        }
        if !account.has_paid && state.occupancy(kept_percent).open_to_all == 0 {
            return None;
        }
        let (id, session) = state.sessions.iter_mut().find(|(_, session)| session.idle > 0)?;
        session.idle -= 1;
        let session = *id;
        let unpaid = usize::from(!account.has_paid);
        state.reserved_unpaid += unpaid;
        let open = Some(OpenSlots { dispatcher: self, left: unpaid });
        Some(Reservation { dispatcher: self, session, used: false, _open: open })
    }

    /// Reserves all idle slots, if the table may have jobs for them.
    pub(crate) fn reserve_for_waiting(&self) -> Vec<Reservation<'_>> {
        let mut state = self.lock();
        if !state.waiting || state.sessions.values().all(|session| session.idle == 0) {
            return Vec::new();
        }
        // Cleared before the table is read: a job committed from here on sets it again.
        state.waiting = false;
        let mut reserved = Vec::new();
        for (id, session) in &mut state.sessions {
            reserved.extend((0..session.idle).map(|_| *id));
            session.idle = 0;
        }
        reserved
            .into_iter()
            .map(|session| Reservation { dispatcher: self, session, used: false, _open: None })
            .collect()
    }

    /// Key under which the image of this lease is stored. `None` when no session holds the lease.
    pub(crate) fn upload_key(&self, token: LeaseToken) -> Option<ImageKey> {
        self.lock().leases.get(&token).map(|held| held.upload_key.clone())
    }

    /// The files that the grab of this lease asks for. None when no session holds the lease.
    pub(crate) fn requested_files(&self, token: LeaseToken) -> RequestedFiles {
        self.lock().leases.get(&token).map(|held| held.files.clone()).unwrap_or_default()
    }

    /// What is done with the image of this lease before its grab is done. Nothing when no session holds the lease.
    pub(crate) fn final_steps(&self, token: LeaseToken) -> FinalSteps {
        self.lock().leases.get(&token).map(|held| held.final_steps.clone()).unwrap_or_default()
    }

    /// Removes a lease that ended.
    pub(crate) fn forget(&self, token: LeaseToken) -> Option<EndedLease> {
        self.lock().leases.remove(&token).map(|held| held.ended)
    }

    /// Removes leases that expired long ago. Their renderers could not report a result, but are ready for others.
    pub(crate) fn forget_expired(&self, now: Timestamp) {
        self.lock().leases.retain(|_, held| now.since(held.ended.since) < MAX_LEASE + LEASE_MARGIN);
    }

    /// The lease of this grab, if any.
    pub(crate) fn lease_of(&self, grab: GrabId) -> Option<EndedLease> {
        self.lock().leases.values().find(|held| held.grab == grab).map(|held| held.ended)
    }

    /// Sends a cancellation to the renderer of this grab, if any, and removes the lease.
    pub(crate) fn cancel(&self, grab: GrabId) -> Option<EndedLease> {
        let mut state = self.lock();
        let (token, session, ended) = state
            .leases
            .iter()
            .find(|(_, held)| held.grab == grab)
            .map(|(token, held)| (*token, held.session, held.ended))?;
        state.leases.remove(&token);
        if let Some(session) = state.sessions.get(&session) {
            // The outbox is full only when the session is stuck; its leases will expire.
            let _ = session.outbox.try_send(SessionMessage::Cancel(token));
        }
        Some(ended)
    }

    /// Number of attached sessions.
    pub(crate) fn session_count(&self) -> usize {
        self.lock().sessions.len()
    }

    /// The attached renderers, oldest first.
    pub(crate) fn renderers(&self) -> Vec<AttachedRenderer> {
        let to_attached = |(id, session): (&SessionId, &Session)| {
            let Session { outbox: _, idle, slots, attached_at, heartbeat } = session;
            let (attached_at, slots, busy) = (*attached_at, *slots, slots.saturating_sub(*idle));
            AttachedRenderer { session: *id, attached_at, slots, busy, heartbeat: heartbeat.clone() }
        };
        let mut all: Vec<AttachedRenderer> = self.lock().sessions.iter().map(to_attached).collect();
        all.sort_by_key(|renderer| (renderer.attached_at, renderer.session));
        all
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Poisoning is ignored: these maps are only hints, the table is authoritative.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation<'_> {
    /// The session that owns the slot.
    pub(crate) const fn session(&self) -> SessionId {
        self.session
    }

    /// Sends the lease to the session.
    ///
    /// # Errors
    /// When the session is gone. The caller must then release the lease.
    pub(crate) fn assign(mut self, lease: Lease) -> Result<(), SessionLost> {
        self.used = true;
        let ended = EndedLease { account: lease.account, since: lease.since, attempt: lease.attempt };
        let (token, grab, upload_key) = (lease.token, lease.grab, lease.upload_key.clone());
        let CaptureSpec { also, slice_height, viewports, .. } = &lease.spec;
        let files = RequestedFiles { also: also.clone(), slice_height: *slice_height, viewports: viewports.clone() };
        let final_steps = FinalSteps::of(&lease.spec);
        let held = HeldLease { session: self.session, grab, upload_key, files, final_steps, ended };
        let mut state = self.dispatcher.lock();
        let session = state.sessions.get(&self.session).ok_or(SessionLost)?;
        session.outbox.try_send(SessionMessage::Assign(Box::new(lease))).map_err(|_| SessionLost)?;
        state.leases.insert(token, held);
        // The lease counts now. The count of the reservation is dropped after the lock.
        drop(state);
        Ok(())
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if !self.used {
            self.dispatcher.release(self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::CaptureRequest;

    use grabd_domain::ids::AccountId;
    use uuid::Uuid;

    use super::*;
    use crate::random;

    fn lease() -> Lease {
        let request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        Lease {
            grab: random::grab_id(grabd_domain::Timestamp::from_ms(0)),
            token: random::lease_token(),
            upload_key: ImageKey::new(1, "png"),
            spec: CaptureSpec::parse(&request).unwrap(),
            budget: Duration::from_secs(1),
            attempt: 1,
            account: free(1),
            since: Timestamp::from_ms(0),
        }
    }

    fn free(number: u128) -> Account {
        Account { id: AccountId(Uuid::from_u128(number)), has_paid: false }
    }

    fn paying() -> Account {
        Account { has_paid: true, ..free(9) }
    }

    fn attached(slots: usize) -> (Dispatcher, SessionId, mpsc::Receiver<SessionMessage>) {
        let dispatcher = Dispatcher::default();
        let id = random::session_id();
        let messages = dispatcher.attach(id, slots, Timestamp::from_ms(0));
        drop(dispatcher.reserve_for_waiting());
        (dispatcher, id, messages)
    }

    #[test]
    fn dropped_reservation_returns_its_slot() {
        let (dispatcher, _, _messages) = attached(1);
        let first = dispatcher.reserve(free(1), 0).unwrap();
        assert!(dispatcher.reserve(free(1), 0).is_none());
        drop(first);
        assert!(dispatcher.reserve(free(1), 0).is_some());
    }

    #[test]
    fn renderers_reports_slots_and_the_last_heartbeat() {
        let (dispatcher, id, _messages) = attached(3);
        let reserved = dispatcher.reserve(free(1), 0).unwrap();
        let condition = RendererStatus { browser: "Chromium 1".to_owned(), ..RendererStatus::default() };
        dispatcher.record_heartbeat(id, RendererStatus::default(), Timestamp::from_ms(1));
        dispatcher.record_heartbeat(id, condition.clone(), Timestamp::from_ms(2));
        let (now, heartbeat) = (Timestamp::from_ms(0), Some((condition, Timestamp::from_ms(2))));
        let expected = AttachedRenderer { session: id, attached_at: now, slots: 3, busy: 1, heartbeat };
        assert_eq!(dispatcher.renderers(), std::slice::from_ref(&expected));
        drop(reserved);
        assert_eq!(dispatcher.renderers(), [AttachedRenderer { busy: 0, ..expected }]);
        dispatcher.detach(id);
        dispatcher.record_heartbeat(id, RendererStatus::default(), Timestamp::from_ms(3));
        assert_eq!(dispatcher.renderers(), []);
    }

    #[test]
    fn reserve_returns_none_while_jobs_wait() {
        let (dispatcher, _, _messages) = attached(1);
        dispatcher.notify();
        assert!(dispatcher.reserve(free(1), 0).is_none());
        assert_eq!(dispatcher.reserve_for_waiting().len(), 1);
        assert!(dispatcher.reserve(free(1), 0).is_some());
    }

    #[test]
    fn lease_is_held_from_assignment_to_cancellation() {
        let (dispatcher, id, mut messages) = attached(1);
        let lease = lease();
        let (grab, token, key) = (lease.grab, lease.token, lease.upload_key.clone());
        dispatcher.reserve(free(1), 0).unwrap().assign(lease).unwrap();
        assert!(matches!(messages.try_recv().unwrap(), SessionMessage::Assign(lease) if lease.token == token));
        assert_eq!(dispatcher.upload_key(token), Some(key));
        dispatcher.cancel(grab);
        assert!(matches!(messages.try_recv().unwrap(), SessionMessage::Cancel(cancelled) if cancelled == token));
        assert_eq!(dispatcher.upload_key(token), None);
        assert!(dispatcher.reserve(free(1), 0).is_none(), "the slot is busy until the renderer reports ready");
        dispatcher.ready(id, 1);
        assert!(dispatcher.reserve(free(1), 0).is_some());
    }

    #[test]
    fn kept_slot_is_reserved_for_paying_accounts_only() {
        let (dispatcher, _, _messages) = attached(4);
        let reserved: Vec<_> = (0..3).map(|number| dispatcher.reserve(free(number), 25).unwrap()).collect();
        assert!(dispatcher.reserve(free(7), 25).is_none(), "the last slot is kept");
        assert_eq!(dispatcher.occupancy(25), Occupancy { slots: 4, idle: 1, kept: 1, open_to_all: 0 });
        assert_eq!(dispatcher.occupancy(0).open_to_all, 1);
        assert!(dispatcher.reserve(paying(), 25).is_some());
        // A lease counts like its reservation.
        for slot in reserved {
            slot.assign(Lease { token: random::lease_token(), ..lease() }).unwrap();
        }
        assert!(dispatcher.reserve(free(7), 25).is_none());
        assert_eq!(dispatcher.open_slots(25).left(), 0);
        assert!(dispatcher.reserve(free(7), 0).is_some(), "nothing is kept without paying accounts");
    }

    #[test]
    fn expired_lease_is_forgotten() {
        let (dispatcher, _, _messages) = attached(2);
        dispatcher.reserve(free(1), 50).unwrap().assign(lease()).unwrap();
        let expired = Timestamp::from_ms(0) + MAX_RENDER_BUDGET + MAX_LEASE_MARGIN + LEASE_MARGIN;
        dispatcher.forget_expired(expired - Duration::from_millis(1));
        assert_eq!(dispatcher.open_slots(50).left(), 0);
        dispatcher.forget_expired(expired);
        assert_eq!(dispatcher.open_slots(50).left(), 1);
    }

    #[test]
    fn ended_lease_opens_its_slot_for_all_accounts() {
        let (dispatcher, id, _messages) = attached(2);
        let lease = lease();
        let (grab, token) = (lease.grab, lease.token);
        dispatcher.reserve(free(1), 50).unwrap().assign(lease).unwrap();
        assert!(dispatcher.reserve(free(2), 50).is_none());
        dispatcher.hold_back();
        let ended = EndedLease { account: free(1), since: Timestamp::from_ms(0), attempt: 1 };
        assert_eq!(dispatcher.lease_of(grab), Some(ended));
        assert_eq!(dispatcher.forget(token), Some(ended));
        assert_eq!(dispatcher.forget(token), None);
        dispatcher.ready(id, 1);
        // Jobs that were held back go first.
        assert!(dispatcher.reserve(free(2), 50).is_none());
        let mut open = dispatcher.open_slots(50);
        assert_eq!((open.left(), dispatcher.reserve_for_waiting().len()), (1, 2));
        assert_eq!(dispatcher.open_slots(50).left(), 0, "claimed");
        open.take();
        assert_eq!(open.left(), 0);
        drop(open);
        assert!(dispatcher.reserve(free(2), 50).is_some());
    }

    #[test]
    fn assign_fails_when_the_session_is_gone() {
        let (dispatcher, id, messages) = attached(2);
        let reserved = dispatcher.reserve(free(1), 0).unwrap();
        dispatcher.detach(id);
        assert!(reserved.assign(lease()).is_err());
        let (dispatcher, ..) = (attached(1).0, drop(messages));
        assert!(dispatcher.reserve(free(1), 0).unwrap().assign(lease()).is_err(), "its receiver is dropped");
    }
}

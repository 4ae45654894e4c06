//! Renderer sessions, their idle slots, and the leases they hold.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::admission::{Payer, kept_slots};
use grabd_domain::capture::{CaptureSpec, FileKind, Viewport};
use grabd_domain::grabs::{ImageKey, Stage, Stages};
use grabd_domain::ids::{GrabId, LeaseToken, ProxyId, SessionId};
use grabd_domain::limits::LEASE_MARGIN;
use grabd_domain::proxies::ProxyRoute;
use grabd_domain::render::RendererStatus;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, mpsc};

use super::final_steps::FinalSteps;
use crate::admission::{EndedLease, Occupancy};
use ended_leases::{EndedLeases, MAX_LEASE};

/// Sends assignments to sessions. A slot is idle, reserved, or in use by a renderer.
#[derive(Default)]
pub(crate) struct Dispatcher {
    state: Mutex<State>,
    wakeup: Notify,
}

/// The lock is only held for a few map operations, hence no asynchronous one.
#[derive(Default)]
struct State {
    sessions: HashMap<SessionId, Session>,
    leases: HashMap<LeaseToken, HeldLease>,
    ended: EndedLeases,
    /// Whether the table may have an unleased job. Set after a commit that left one, cleared before the table is read.
    waiting: bool,
    /// Whether jobs of payers that never paid wait for another slot than the kept ones.
    held_back: bool,
    /// Number of slots that are reserved for payers that never paid, but not leased yet.
    reserved_unpaid: usize,
    draining: bool,
    /// Whether no job is leased any more, because the process stops.
    closed: bool,
}

struct Session {
    outbox: mpsc::Sender<SessionMessage>,
    idle: usize,
    slots: SessionSlots,
    /// For a renderer that offers its slots to several cores: the lowest number of idle ones since it was last asked
    /// for.
    lowest_idle: Option<usize>,
    /// Whether the renderer stops. None of its slots is idle then.
    is_draining: bool,
    attached_at: Timestamp,
    /// The last reported status, and when it was received.
    heartbeat: Option<(RendererStatus, Timestamp)>,
}

impl Session {
    fn set_idle(&mut self, idle: usize) {
        self.idle = idle;
        self.lowest_idle = self.lowest_idle.map(|lowest| lowest.min(idle));
    }

    const fn add_idle(&mut self, slots: usize) {
        if !self.is_draining {
            self.idle += slots;
        }
    }
}

/// The slots of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionSlots {
    /// All are for this core, and idle at first.
    Own(usize),
    /// Each is offered to one of several cores at a time.
    Offered {
        /// Number of all slots.
        all: usize,
        /// Number of cores.
        cores: usize,
    },
}

impl SessionSlots {
    /// This core's share, in thousandths of a slot. Rounded down, so that shares that are added up are not more than all.
    fn share_in_thousandths(self) -> usize {
        match self {
            Self::Own(slots) => slots.saturating_mul(1000),
            Self::Offered { all, cores } => all.saturating_mul(1000) / cores.max(1),
        }
    }

    /// All slots, also those that other cores may use.
    const fn all(self) -> usize {
        match self {
            Self::Own(all) | Self::Offered { all, .. } => all,
        }
    }

    /// This core's share in slots, rounded up.
    fn share(self) -> usize {
        self.share_in_thousandths().div_ceil(1000)
    }
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
    /// The last reported status, and when it was received.
    pub heartbeat: Option<(RendererStatus, Timestamp)>,
}

struct HeldLease {
    session: SessionId,
    grab: GrabId,
    upload_key: ImageKey,
    files: RequestedFiles,
    final_steps: FinalSteps,
    /// The proxy that its page is loaded through.
    proxy: Option<ProxyId>,
    /// The stages that the attempt has reached, for watchers.
    stages: Stages,
    /// Until when the image may be stored.
    store_until: Timestamp,
    ended: EndedLease,
    /// Whether the renderer has reported its result, which is being recorded.
    is_reported: bool,
}

/// The attachments that a renderer makes for a grab.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestedFiles {
    /// Those that the grab asks for, and those for its evidence.
    pub(crate) also: Vec<FileKind>,
    /// The largest height of a slice in pixels. None: no slices.
    pub(crate) slice_height: Option<u32>,
    /// Further viewports.
    pub(crate) viewports: Vec<Viewport>,
    /// The names of the images that steps take.
    pub(crate) step_images: Vec<String>,
}

/// A message for a renderer.
pub enum SessionMessage {
    /// Render this grab.
    Assign(Box<Lease>),
    /// Stop the render of this lease.
    Cancel(LeaseToken),
    /// This number of offered slots was not used.
    Return(usize),
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
    /// The proxy of the team that the page is loaded through, with its login.
    pub proxy: Option<Arc<ProxyRoute>>,
    /// Time limit of the attempt.
    pub budget: Duration,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    pub(crate) payer: Payer,
    /// When the slot was assigned.
    pub(crate) since: Timestamp,
}

/// A reserved slot. Dropping it without an assignment makes it idle again.
pub(crate) struct Reservation<'a> {
    dispatcher: &'a Dispatcher,
    session: SessionId,
    used: bool,
    /// Counts the slot as used by a payer that never paid, until it is leased.
    _open: Option<OpenSlots<'a>>,
}

/// A number of slots that payers that never paid may use. No other reservation or lease exceeds the rest.
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
        let usable = self.sessions.values().filter(|session| !session.is_draining);
        let (thousandths, idle) = usable.fold((0_usize, 0), |(thousandths, idle), session| {
            (thousandths.saturating_add(session.slots.share_in_thousandths()), idle + session.idle)
        });
        // Rounded up once. With each session's share rounded up, cores that share many renderers would together count far
        // more slots than there are.
        let slots = thousandths.div_ceil(1000);
        let kept = kept_slots(slots, kept_percent);
        let open_to_all = self.open_to_unpaid(slots, kept).min(idle);
        Occupancy { slots, idle, kept, open_to_all }
    }

    /// Number of further slots that payers that never paid may use.
    fn open_to_unpaid(&self, slots: usize, kept: usize) -> usize {
        if kept == 0 {
            return slots;
        }
        let leased = self.leases.values().filter(|held| !held.ended.payer.has_paid).count();
        (slots - kept).saturating_sub(leased + self.reserved_unpaid + self.unpaid_in_use())
    }
}

/// The part of a lease's margin that is left for the transaction when the image is stored.
const COMMIT_TIME: Duration = Duration::from_secs(1);

/// The session is gone or does not accept messages. The lease must be released.
#[derive(Debug)]
pub(crate) struct SessionLost;

/// At most three messages per slot are queued: an assignment, its cancellation, and the return of the slot.
const OUTBOX_PER_SLOT: usize = 3;

impl Dispatcher {
    /// Adds a session and returns the messages to send to it.
    pub(crate) fn attach(&self, id: SessionId, slots: SessionSlots, now: Timestamp) -> mpsc::Receiver<SessionMessage> {
        let (all, idle, lowest_idle) = match slots {
            SessionSlots::Own(all) => (all, all, None),
            SessionSlots::Offered { all, .. } => (all, 0, Some(0)),
        };
        let (outbox, messages) = mpsc::channel(OUTBOX_PER_SLOT * all.max(1));
        let mut state = self.lock();
        let (is_draining, attached_at, heartbeat) = (false, now, None);
        state.sessions.insert(id, Session { outbox, idle, slots, lowest_idle, is_draining, attached_at, heartbeat });
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
        state.ended.forget_session(id);
    }

    /// Removes all sessions and their leases. Their streams end.
    pub(crate) fn end_sessions(&self) {
        let mut state = self.lock();
        state.sessions.clear();
        state.leases.clear();
        state.ended = EndedLeases::default();
    }

    /// Marks slots of a session as idle.
    pub(crate) fn ready(&self, id: SessionId, slots: usize) {
        if let Some(session) = self.lock().sessions.get_mut(&id) {
            session.add_idle(slots);
        }
        // The jobs may have waited for a slot of this kind.
        let mut state = self.lock();
        state.waiting |= std::mem::take(&mut state.held_back);
        drop(state);
        self.wakeup.notify_one();
    }

    /// Uses no slot of a session any more. It keeps its leases.
    pub(crate) fn drain_session(&self, id: SessionId) {
        if let Some(session) = self.lock().sessions.get_mut(&id) {
            session.is_draining = true;
            session.set_idle(0);
        }
    }

    /// Returns offered slots of a session that stayed idle since the last call, so that another core may use them.
    pub(crate) fn return_unused(&self, id: SessionId) {
        let mut state = self.lock();
        let Some(session) = state.sessions.get_mut(&id) else { return };
        let Some(unused) = session.lowest_idle else { return };
        // The outbox is full only when the session is stuck; then the slots are of no use to others either.
        if unused > 0 && session.outbox.try_send(SessionMessage::Return(unused)).is_ok() {
            session.idle -= unused;
        }
        session.lowest_idle = Some(session.idle);
    }

    /// Makes a reserved slot idle again.
    fn release(&self, id: SessionId) {
        if let Some(session) = self.lock().sessions.get_mut(&id) {
            session.add_idle(1);
        }
        self.wakeup.notify_one();
    }

    /// How the slots are used, with this share of them kept for payers that have paid.
    pub(crate) fn occupancy(&self, kept_percent: u32) -> Occupancy {
        self.lock().occupancy(kept_percent)
    }

    /// Claims all slots that payers that never paid may use, with this share of all slots kept for payers that have paid.
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

    /// Records the status reported by a session.
    pub(crate) fn record_heartbeat(&self, id: SessionId, status: RendererStatus, now: Timestamp) {
        if let Some(session) = self.lock().sessions.get_mut(&id) {
            session.heartbeat = Some((status, now));
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

    /// Leases nothing any more. Returns the number of leases that are held.
    pub(crate) fn close(&self) -> usize {
        let mut state = self.lock();
        state.closed = true;
        state.leases.len()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.lock().draining
    }

    /// Reserves a slot for a job about to be created, unless earlier jobs may be waiting in the table. A payer that
    /// never paid gets none of the slots that are kept for payers that have paid.
    pub(crate) fn reserve(&self, payer: Payer, kept_percent: u32) -> Option<Reservation<'_>> {
        let mut state = self.lock();
        if state.waiting || state.closed {
            return None;
        }
        if !payer.has_paid && state.occupancy(kept_percent).open_to_all == 0 {
            return None;
        }
        let (id, session) = state.sessions.iter_mut().find(|(_, session)| session.idle > 0)?;
        session.set_idle(session.idle - 1);
        let session = *id;
        let unpaid = usize::from(!payer.has_paid);
        state.reserved_unpaid += unpaid;
        let open = Some(OpenSlots { dispatcher: self, left: unpaid });
        Some(Reservation { dispatcher: self, session, used: false, _open: open })
    }

    /// Reserves all idle slots, if the table may have jobs for them.
    pub(crate) fn reserve_for_waiting(&self) -> Vec<Reservation<'_>> {
        let mut state = self.lock();
        if !state.waiting || state.closed || state.sessions.values().all(|session| session.idle == 0) {
            return Vec::new();
        }
        // Cleared before the table is read: a job committed from here on sets it again.
        state.waiting = false;
        let mut reserved = Vec::new();
        for (id, session) in &mut state.sessions {
            reserved.extend((0..session.idle).map(|_| *id));
            session.set_idle(0);
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

    /// The proxy of the grab of this lease. Nothing when no session holds the lease.
    pub(crate) fn proxy(&self, token: LeaseToken) -> Option<ProxyId> {
        self.lock().leases.get(&token).and_then(|held| held.proxy)
    }

    /// Records a stage of a lease that this session holds. Returns its grab and all stages, or `None` if that is no news.
    pub(crate) fn record_stage(
        &self,
        session: SessionId,
        token: LeaseToken,
        stage: Stage,
        ms: u32,
    ) -> Option<(GrabId, Stages)> {
        let mut state = self.lock();
        let held = state.leases.get_mut(&token).filter(|held| held.session == session)?;
        held.stages.reach(stage, ms).then_some((held.grab, held.stages))
    }

    /// The stages that the attempt at this grab has reached. `None` if no session holds a lease of it.
    pub(crate) fn stages_of(&self, grab: GrabId) -> Option<Stages> {
        self.lock().leases.values().find(|held| held.grab == grab).map(|held| held.stages)
    }

    /// How long the image of this lease may take to be stored, so that the attempt is recorded before the lease ends.
    pub(crate) fn storing_time(&self, token: LeaseToken, now: Timestamp) -> Duration {
        let until = self.lock().leases.get(&token).map(|held| held.store_until);
        until.map_or(Duration::ZERO, |until| until.since(now))
    }

    /// Removes a lease that ended.
    pub(crate) fn forget(&self, token: LeaseToken) -> Option<EndedLease> {
        self.lock().end_lease(token)
    }

    /// Removes leases that expired long ago. Their renderers could not report a result, but are ready for others.
    pub(crate) fn forget_expired(&self, now: Timestamp) {
        let mut state = self.lock();
        state.leases.retain(|_, held| now.since(held.ended.since) < MAX_LEASE + LEASE_MARGIN);
        state.ended.forget_expired(now);
    }

    /// The lease of this grab, if any.
    pub(crate) fn lease_of(&self, grab: GrabId) -> Option<EndedLease> {
        self.lock().leases.values().find(|held| held.grab == grab).map(|held| held.ended)
    }

    /// Notes that the result of a lease is being recorded. This process decides its end from here on.
    pub(crate) fn note_report(&self, token: LeaseToken) {
        if let Some(held) = self.lock().leases.get_mut(&token) {
            held.is_reported = true;
        }
    }

    /// The grabs that are being rendered.
    pub(crate) fn rendering(&self) -> Vec<GrabId> {
        self.lock().leases.values().filter(|held| !held.is_reported).map(|held| held.grab).collect()
    }

    /// Sends a cancellation to the renderer of this grab, if any, and removes the lease.
    pub(crate) fn cancel(&self, grab: GrabId) -> Option<EndedLease> {
        let mut state = self.lock();
        let (token, session, ended) = state
            .leases
            .iter()
            .find(|(_, held)| held.grab == grab)
            .map(|(token, held)| (*token, held.session, held.ended))?;
        state.end_lease(token);
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
        let state = self.lock();
        let to_attached = |(id, session): (&SessionId, &Session)| {
            let Session { outbox: _, idle, slots, lowest_idle, is_draining, attached_at, heartbeat } = session;
            let (attached_at, slots) = (*attached_at, slots.share());
            let busy = match lowest_idle {
                None if !is_draining => slots.saturating_sub(*idle),
                // Slots that are not idle may be offered to other cores, or to none.
                _ => state.leases.values().filter(|held| held.session == *id).count(),
            };
            AttachedRenderer { session: *id, attached_at, slots, busy, heartbeat: heartbeat.clone() }
        };
        let mut all: Vec<AttachedRenderer> = state.sessions.iter().map(to_attached).collect();
        drop(state);
        all.sort_by_key(|renderer| (renderer.attached_at, renderer.session));
        all
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Poisoning is ignored: these maps are only hints, the table is authoritative.
        self.state.lock()
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
        let lost = self.dispatcher.lock().ended.take_lost(lease.grab);
        let ended = EndedLease { payer: lease.payer, since: lease.since, attempt: lease.attempt, lost };
        let (token, grab, upload_key) = (lease.token, lease.grab, lease.upload_key.clone());
        let CaptureSpec { slice_height, viewports, secrets, .. } = &lease.spec;
        let also = lease.spec.page_files();
        let step_images = secrets.image_names();
        let files = RequestedFiles { also, slice_height: *slice_height, viewports: viewports.clone(), step_images };
        let final_steps = FinalSteps::of(&lease.spec);
        let stages = Stages::of_attempt(lease.attempt);
        // What is done with the image afterwards has its own part of the lease.
        let store_until = lease.since + lease.budget + LEASE_MARGIN.saturating_sub(COMMIT_TIME);
        let held = HeldLease {
            session: self.session,
            grab,
            upload_key,
            files,
            final_steps,
            proxy: lease.spec.proxy,
            stages,
            store_until,
            ended,
            is_reported: false,
        };
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

mod ended;
mod ended_leases;
#[cfg(test)]
mod stage_tests;
#[cfg(test)]
mod tests;

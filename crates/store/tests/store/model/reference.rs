//! The reference model: lots, grabs and keys in plain lists, and the expected outcome of each command.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::admission::Payer;
use grabd_domain::credentials::Environment;
use grabd_domain::credits::{Lot, LotKind};
use grabd_domain::grabs::{Class, ImageKey};
use grabd_domain::idempotency::{IdempotencyKey, LIFE};
use grabd_domain::ids::{GrabId, LeaseToken, LotId, SessionId, TeamId};
use grabd_domain::limits::{LEASE_FLOOR, LEASE_MARGIN, MAX_ATTEMPTS, RENDER_BUDGET, SYNC_DEADLINE};
use grabd_store::Store;
use grabd_store::credits::{Grant, GrantOutcome};
use grabd_store::grabs::{
    BACK_OFF, Completion, Created, FailGrab, FailureSource, LeaseRequest, LostLeases, NewGrab, NewLease, NewRecord,
    ReleaseOutcome, Repeat,
};
use proptest::sample::Index;

use super::Ids;
use super::commands::Command;
use crate::harness::{NOW, blocked, facts, spec};

/// Limit of open asynchronous grabs; small, so that cases reach it.
const ASYNC_LIMIT: u32 = 3;
/// More items than a case ever has.
const MANY: u32 = 1000;

pub(super) struct Model {
    pub(super) teams: [TeamId; 2],
    pub(super) now: Timestamp,
    pub(super) grabs: Vec<Grab>,
    lots: Vec<OwnedLot>,
    keys: Vec<Key>,
    /// All attempts so far: grab, lease token and upload key.
    attempts: Vec<(GrabId, LeaseToken, ImageKey)>,
    latest_grant: Option<(Grant, LotId)>,
}

pub(super) struct OwnedLot {
    team: TeamId,
    pub(super) lot: Lot,
}

pub(super) struct Grab {
    pub(super) id: GrabId,
    pub(super) team: TeamId,
    pub(super) lot: LotId,
    class: Class,
    deadline_at: Timestamp,
    not_before: Timestamp,
    attempts: u32,
    lease: Option<(LeaseToken, Timestamp)>,
    state: GrabState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GrabState {
    Open,
    Done,
    Failed,
}

struct Key {
    team: TeamId,
    key: u8,
    request: u8,
    grab: GrabId,
    since: Timestamp,
}

impl Grab {
    pub(super) fn is_open(&self) -> bool {
        self.state == GrabState::Open
    }

    pub(super) fn is_done(&self) -> bool {
        self.state == GrabState::Done
    }

    fn is_leasable(&self, class: Class, now: Timestamp) -> bool {
        self.is_open()
            && self.class == class
            && self.lease.is_none()
            && self.not_before <= now
            && self.deadline_at > now + LEASE_FLOOR
    }

    fn is_leased_by(&self, token: LeaseToken) -> bool {
        self.is_open() && self.lease.is_some_and(|(held, _)| held == token)
    }
}

impl Model {
    pub(super) fn new(teams: [TeamId; 2]) -> Self {
        let (grabs, lots, keys, attempts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { teams, now: NOW, grabs, lots, keys, attempts, latest_grant: None }
    }

    /// In spending order: subscriptions by expiry, then prepaid lots by age.
    pub(super) fn lots_of(&self, team: TeamId) -> impl Iterator<Item = &OwnedLot> {
        let mut lots: Vec<_> = self.lots.iter().filter(|lot| lot.team == team).collect();
        lots.sort_by_key(|owned| (owned.lot.kind, owned.lot.expires_at, owned.lot.id));
        lots.into_iter()
    }

    /// Number of credits that creates could hold now.
    pub(super) fn spendable(&self, team: TeamId) -> u64 {
        let usable = self.lots_of(team).filter(|owned| owned.lot.expires_at.is_none_or(|end| end > self.now));
        usable.map(|owned| u64::from(owned.lot.remaining - owned.lot.held)).sum()
    }

    fn lot(&mut self, id: LotId) -> &mut Lot {
        &mut self.lots.iter_mut().find(|owned| owned.lot.id == id).unwrap().lot
    }

    fn grab(&mut self, id: GrabId) -> &mut Grab {
        self.grabs.iter_mut().find(|grab| grab.id == id).unwrap()
    }

    /// Applies the command to the store and to the model and compares the outcomes.
    pub(super) async fn step(&mut self, store: &Store, ids: &Ids, command: &Command) {
        match command {
            Command::Grant { team, kind, credits, term_s, again } => {
                self.grant(store, ids, *team, (*kind, *credits, *term_s), *again).await;
            }
            Command::Create { team, class, slot, key } => {
                self.create(store, ids, self.teams[*team], *class, *slot, *key).await;
            }
            Command::Lease { class, slots } => self.lease(store, ids, *class, *slots).await,
            Command::Complete { attempt, twice } => {
                for _ in 0..=u8::from(*twice) {
                    self.complete(store, attempt).await;
                }
            }
            Command::Fail { attempt } => {
                let Some((grab, token, _)) = self.attempt(attempt) else { return };
                let ends = self.grab(grab).is_leased_by(token);
                self.fail(store, grab, FailureSource::Lease(token), ends).await;
            }
            Command::TimeOut { grab } => {
                let now = self.now;
                let Some(grab) = self.pick(grab) else { return };
                let (id, ends) = (grab.id, grab.is_open() && grab.deadline_at <= now);
                self.fail(store, id, FailureSource::Deadline, ends).await;
            }
            Command::Cancel { grab } => {
                let Some(grab) = self.pick(grab) else { return };
                let (id, ends) = (grab.id, grab.is_open());
                self.fail(store, id, FailureSource::Cancel, ends).await;
                if ends {
                    self.keys.retain(|key| key.grab != id);
                }
            }
            Command::Release { attempt } => {
                let Some((grab, token, _)) = self.attempt(attempt) else { return };
                let released = store.grabs().release(grab, token, self.now).await.unwrap();
                self.released(grab, token, &released);
            }
            Command::Delete { grab } => {
                let Some(id) = self.pick(grab).map(|grab| grab.id) else { return };
                let team = self.grab(id).team;
                assert!(store.grabs().delete_grab(team, Environment::Live, id, self.now).await.unwrap());
                self.keys.retain(|key| key.grab != id);
            }
            Command::Reclaim => self.reclaim(store).await,
            Command::ExpireJobs => self.expire_jobs(store).await,
            Command::ExpireLots => self.expire_lots(store).await,
            Command::PurgeKeys => self.purge_keys(store).await,
            Command::CancelSubscriptions { team } => self.cancel_subscriptions(store, self.teams[*team]).await,
            Command::Jump { ms } => self.now = Timestamp::from_ms(self.now.as_ms() + ms),
        }
    }

    /// Ends all open grabs by deadline and all subscription terms.
    pub(super) async fn end(&mut self, store: &Store) {
        self.now = self.now + LIFE * 365;
        self.expire_jobs(store).await;
        self.expire_lots(store).await;
        self.purge_keys(store).await;
        assert!(self.keys.is_empty());
    }

    fn pick(&mut self, index: &Index) -> Option<&mut Grab> {
        if self.grabs.is_empty() { None } else { Some(index.get_mut(&mut self.grabs)) }
    }

    fn attempt(&self, index: &Index) -> Option<(GrabId, LeaseToken, ImageKey)> {
        if self.attempts.is_empty() { None } else { Some(index.get(&self.attempts).clone()) }
    }

    async fn grant(&mut self, store: &Store, ids: &Ids, team: usize, terms: (LotKind, u32, u64), again: bool) {
        if let (true, Some((grant, lot))) = (again, &self.latest_grant) {
            assert_eq!(store.credits().grant(grant.clone()).await.unwrap(), GrantOutcome::Repeated(*lot));
            return;
        }
        let (team, (kind, credits, term_s)) = (self.teams[team], terms);
        let expires_at = match kind {
            LotKind::Subscription => Some(self.now + Duration::from_secs(term_s)),
            LotKind::Prepaid => None,
        };
        let source_ref = format!("payment {}", ids.next());
        let grant = Grant { team, kind, credits, expires_at, source_ref, now: self.now };
        let GrantOutcome::New(id) = store.credits().grant(grant.clone()).await.unwrap() else {
            panic!("expected a new lot")
        };
        let lot = Lot { id, kind, granted: credits, remaining: credits, held: 0, expires_at, cancelled: false };
        self.lots.push(OwnedLot { team, lot });
        self.latest_grant = Some((grant, id));
    }

    async fn create(
        &mut self,
        store: &Store,
        ids: &Ids,
        team: TeamId,
        class: Class,
        slot: bool,
        key: Option<(u8, u8)>,
    ) {
        let (id, token) = (GrabId(ids.next()), LeaseToken(ids.next()));
        let deadline_at = self.now + SYNC_DEADLINE;
        let until = deadline_at + LEASE_MARGIN;
        let session = SessionId(ids.next());
        // The class is part of the request's fingerprint.
        let key = key.map(|(key, request)| (key, request + if class == Class::Async { 2 } else { 0 }));
        let new = NewGrab {
            id,
            team,
            payer: Payer::of_team(team),
            creator: None,
            class,
            spec: spec(),
            secrets: None,
            now: self.now,
            deadline_at,
            async_limit: ASYNC_LIMIT,
            lease: slot.then(|| NewLease { token, until, session, random: ids.next().as_u128() }),
            wait: None,
            idempotency: key.map(|(key, request)| NewRecord {
                key: IdempotencyKey::parse(&format!("key-{key}")).unwrap(),
                fingerprint: [request; 32],
                only_of: None,
            }),
            fingerprint: None,
            ceiling: None,
        };
        let created = store.grabs().create(new).await.unwrap();

        if let Some(expected) = key.and_then(|(key, request)| self.repeat(team, key, request)) {
            let seen = if let Created::Repeated(Repeat::Replay(grab)) = &created {
                format!("replay {}", grab.id)
            } else {
                format!("{created:?}")
            };
            assert_eq!(seen, expected);
            return;
        }
        let open = self.grabs.iter().filter(|grab| grab.is_open() && grab.team == team && grab.class == Class::Async);
        if class == Class::Async && open.count() >= usize::try_from(ASYNC_LIMIT).unwrap() {
            assert_eq!(created, Created::QueueLimit { limit: ASYNC_LIMIT });
            return;
        }
        let now = self.now;
        let usable = |lot: &Lot| lot.remaining > lot.held && lot.expires_at.is_none_or(|end| end > now);
        let Some(lot) = self.lots_of(team).find(|owned| usable(&owned.lot)).map(|owned| owned.lot.id) else {
            assert_eq!(created, Created::CreditsExhausted);
            return;
        };
        let has_waiting = self.grabs.iter().any(|grab| grab.is_leasable(class, now));
        let lease = if let Created::Leased { upload_key } = created {
            assert!(slot && !has_waiting);
            self.attempts.push((id, token, upload_key));
            Some((token, until))
        } else {
            assert_eq!(created, Created::Pending);
            assert!(!slot || has_waiting);
            None
        };
        self.lot(lot).held += 1;
        let attempts = u32::from(lease.is_some());
        let (not_before, state) = (now, GrabState::Open);
        self.grabs.push(Grab { id, team, lot, class, deadline_at, not_before, attempts, lease, state });
        if let Some((key, request)) = key {
            self.keys.retain(|known| (known.team, known.key) != (team, key));
            self.keys.push(Key { team, key, request, grab: id, since: now });
        }
    }

    /// The expected outcome of a repeated key.
    fn repeat(&mut self, team: TeamId, key: u8, request: u8) -> Option<String> {
        let known = self.keys.iter().find(|known| (known.team, known.key) == (team, key))?;
        let (id, same) = (known.grab, known.request == request);
        let over = known.since + LIFE <= self.now;
        let grab = self.grab(id);
        match (grab.is_open(), grab.class) {
            (false, _) if over => None,
            _ if !same => Some(format!("{:?}", Created::Repeated(Repeat::Mismatch))),
            (true, Class::Sync) => Some(format!("{:?}", Created::Repeated(Repeat::InFlight))),
            (true, Class::Async) | (false, _) => Some(format!("replay {id}")),
        }
    }

    /// Does not check which leasable grabs are leased; the fairness tests do.
    async fn lease(&mut self, store: &Store, ids: &Ids, class: Class, slots: usize) {
        let slots: Vec<_> = (0..slots).map(|_| (LeaseToken(ids.next()), ids.next().as_u128())).collect();
        let (count, now) = (slots.len(), self.now);
        let session = SessionId(ids.next());
        let leased = store.grabs().lease(LeaseRequest { class, session, now, slots, only_paid: false }).await.unwrap();
        let may = self.grabs.iter().filter(|grab| grab.is_leasable(class, now)).count();
        assert_eq!(leased.len(), may.min(count));
        for job in leased {
            let grab = self.grab(job.grab);
            assert!(grab.is_leasable(class, now));
            grab.attempts += 1;
            assert_eq!((job.attempt, job.team), (grab.attempts, grab.team));
            grab.lease = Some((job.token, grab.deadline_at.min(now + RENDER_BUDGET) + LEASE_MARGIN));
            self.attempts.push((job.grab, job.token, job.upload_key));
        }
    }

    async fn complete(&mut self, store: &Store, attempt: &Index) {
        let Some((grab, token, upload_key)) = self.attempt(attempt) else { return };
        let (size_bytes, execution_ms, now) = (1, 1, self.now);
        let completion = Completion { grab, token, upload_key, size_bytes, execution_ms, metadata: facts(), now };
        let ended = store.grabs().complete(completion).await.unwrap().is_some();
        let model = self.grab(grab);
        assert_eq!(ended, model.is_leased_by(token));
        if ended {
            model.state = GrabState::Done;
            let lot = model.lot;
            let lot = self.lot(lot);
            (lot.remaining, lot.held) = (lot.remaining - 1, lot.held - 1);
        }
    }

    async fn fail(&mut self, store: &Store, grab: GrabId, source: FailureSource, ends: bool) {
        let failing = FailGrab { grab, source, failure: blocked(), metadata: facts(), now: self.now };
        assert_eq!(store.grabs().fail(failing).await.unwrap().is_some(), ends, "{source:?}");
        if ends {
            self.failed(grab);
        }
    }

    fn failed(&mut self, grab: GrabId) {
        let grab = self.grab(grab);
        grab.state = GrabState::Failed;
        let lot = grab.lot;
        self.lot(lot).held -= 1;
    }

    fn released(&mut self, id: GrabId, token: LeaseToken, released: &ReleaseOutcome) {
        let now = self.now;
        let grab = self.grab(id);
        match released {
            ReleaseOutcome::Stale => assert!(!grab.is_leased_by(token)),
            ReleaseOutcome::Requeued(attempts) => {
                assert!(grab.is_leased_by(token) && grab.attempts == *attempts && *attempts < MAX_ATTEMPTS);
                (grab.lease, grab.not_before) = (None, now + BACK_OFF * *attempts);
            }
            ReleaseOutcome::GivenUp(_) => {
                assert!(grab.is_leased_by(token) && grab.attempts == MAX_ATTEMPTS);
                self.failed(id);
            }
        }
    }

    async fn reclaim(&mut self, store: &Store) {
        let now = self.now;
        let reclaimed = store.grabs().reclaim_leases(LostLeases::Expired, now, MANY).await.unwrap();
        let overdue = |grab: &&Grab| grab.is_open() && grab.lease.is_some_and(|(_, until)| until <= now);
        assert_eq!(reclaimed.len(), self.grabs.iter().filter(overdue).count());
        for (id, released) in reclaimed {
            let (token, _) = self.grab(id).lease.unwrap();
            assert_ne!(released, ReleaseOutcome::Stale);
            self.released(id, token, &released);
        }
    }

    async fn expire_jobs(&mut self, store: &Store) {
        let now = self.now;
        let mut ended: Vec<_> =
            store.grabs().expire_jobs(now, MANY).await.unwrap().iter().map(|grab| grab.id).collect();
        let overdue = self.grabs.iter().filter(|grab| grab.is_open() && grab.deadline_at <= now);
        let mut expected: Vec<_> = overdue.map(|grab| grab.id).collect();
        ended.sort_unstable();
        expected.sort_unstable();
        assert_eq!(ended, expected);
        for grab in ended {
            self.failed(grab);
        }
    }

    async fn expire_lots(&mut self, store: &Store) {
        let now = self.now;
        let mut lapsed = 0;
        for OwnedLot { lot, .. } in &mut self.lots {
            if lot.expires_at.is_some_and(|end| end <= now) && lot.remaining > lot.held {
                lot.remaining = lot.held;
                lapsed += 1;
            }
        }
        assert_eq!(store.credits().expire_lots(now, MANY).await.unwrap(), lapsed);
    }

    async fn purge_keys(&mut self, store: &Store) {
        let (now, grabs) = (self.now, &self.grabs);
        let open = |id: GrabId| grabs.iter().any(|grab| grab.id == id && grab.is_open());
        let before = self.keys.len();
        self.keys.retain(|key| key.since + LIFE > now || open(key.grab));
        let purged = store.grabs().purge_keys(now, MANY).await.unwrap();
        assert_eq!(usize::try_from(purged).unwrap(), before - self.keys.len());
    }

    async fn cancel_subscriptions(&mut self, store: &Store, team: TeamId) {
        let now = self.now;
        let mut cancelled = 0;
        for OwnedLot { team: of, lot } in &mut self.lots {
            if *of == team && lot.expires_at.is_some_and(|end| end > now) && !lot.cancelled {
                lot.cancelled = true;
                cancelled += 1;
            }
        }
        assert_eq!(store.credits().cancel_subscriptions(team, now).await.unwrap(), cancelled);
    }
}

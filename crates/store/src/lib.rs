//! Persistent storage: teams, keys, people and their apps, credits, grabs and jobs in one database, and image files.
//!
//! - `transactions/` has one file per change. Each rule of the job path or of the credits is the body of one
//!   `Transaction::apply`. Statements take their locks in this order: team, job, grab, team storage, lot.
//! - `queries/` has one file per kind of read.
//! - `database/` opens the two databases and runs transactions on them.
//! - `entities/` has one file per table, and `codes.rs` the integer codes of enums.
//! - [`images`] stores the files.
//!
//! To add a change, add a file in `transactions/` with its argument type, `impl Transaction` for it and a method on
//! [`Store`]. To add a column, add a migration step, extend the entity and fix what no longer compiles.
//!
//! *Invariant:* this crate reads no clock and generates no random numbers: `now`, ids, tokens and random bits are
//! arguments; the database's clock is read only to confirm the program's. No entity and no type of the database library
//! is public, and a transaction waits for nothing but the database.

pub mod images;

mod codes;
mod database;
mod entities;
mod error;
mod queries;
mod set_aside;
mod transactions;

pub use database::{Kind, OtherService, ServiceLock};
pub use error::{Cause, Error, Result};
pub use images::{DiskSpace, Images, Upload};
pub use queries::accounts::{Key, KeyCaller, Suspension, Team};
pub use queries::audit::AuditEntry;
pub use queries::days::DailyOutcomeCount;
pub use queries::domains::StoredDomainRule;
pub use queries::drift::Drift;
pub use queries::export::{ExportCursor, ExportPage};
pub use queries::holdings::Holding;
pub use queries::images::StoredFile;
pub use queries::key_usage::KeyUsage;
pub use queries::ledger::Entry;
pub use queries::links::LinkSigner;
pub use queries::list::{Cursor, GrabList, PageRequest};
pub use queries::oauth::{Client, Connection};
pub use queries::operator::failures::{FailedGrab, FailureCursor};
pub use queries::operator::figures::{ClassQueue, DeliveryBacklog, OutcomeCount, Queue, TeamQueue};
pub use queries::operator::teams::{TeamCursor, TeamFilter, TeamSummary};
pub use queries::people::{Device, Login, OpenSession, Person};
pub use queries::teams::{Invitation, Member, SessionInfo};
pub use queries::usage::GrabCounts;
pub use queries::webhooks::{Deliveries, Message};
pub use transactions::accounts::{NewKey, NewTeam};
pub use transactions::audit::Actor;
pub use transactions::claw_back::{Clawback, ClawbackOutcome, Dispute, DisputeState, Purchase, Share};
pub use transactions::complete::{Completion, EndedGrab};
pub use transactions::create::{Created, NewGrab, NewLease};
pub use transactions::devices::NewDevice;
pub use transactions::domains::MAX_DOMAIN_RULES;
pub use transactions::erase::{DeletePersonOutcome, Erasure};
pub use transactions::expire_jobs::timeout_failure;
pub use transactions::fail::{FailGrab, FailureSource};
pub use transactions::grant::{Grant, GrantOutcome};
pub use transactions::idempotency::{NewRecord, Repeat};
pub use transactions::lease::{LeaseRequest, LeasedJob};
pub use transactions::oauth::consent::{ConsentOutcome, NewConsent};
pub use transactions::oauth::consent_request::NewConsentRequest;
pub use transactions::oauth::exchange::Exchange;
pub use transactions::oauth::refresh::Refresh;
pub use transactions::oauth::register::NewClient;
pub use transactions::oauth::revoke::RevokeOutcome;
pub use transactions::oauth::{NewTokenPair, TokenOutcome};
pub use transactions::operators::{OperatorGrant, OperatorGrantOutcome};
pub use transactions::passwords::PasswordChange;
pub use transactions::people::{CreatePersonOutcome, InitialTeam, NewPerson, NewSession};
pub use transactions::placeholder::NewPlaceholder;
pub use transactions::reclaim::LostLeases;
pub use transactions::release::{BACK_OFF, ReleaseOutcome};
pub use transactions::reseal::SealedEndpoint;
pub use transactions::reuse::{ReuseGrab, ReuseOutcome};
pub use transactions::suspend::SuspendOutcome;
pub use transactions::teams::accept::{InvitedSignUp, SignUpOutcome};
pub use transactions::teams::invite::NewInvitation;
pub use transactions::teams::{TeamResult, TeamRuleError};
pub use transactions::trial::TRIAL_PREFIX;
pub use transactions::webhooks::change::EndpointRef;
pub use transactions::webhooks::lease::{DeliveryAttempt, MessageContent, SendCapacity};
pub use transactions::webhooks::record::{AfterDelivery, DeliveryAttemptResult};
pub use transactions::webhooks::register::{NewEndpoint, RegisterOutcome};
pub use transactions::webhooks::resend::ResendOutcome;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use database::Database;
use set_aside::SetAside;

/// Handle to the database. Cheap to clone; clones share the connections.
#[derive(Clone, Debug)]
pub struct Store {
    database: Database,
    set_aside: Arc<SetAside>,
    /// Who makes the changes, for the audit trail.
    actor: Option<Arc<Actor>>,
}

impl Store {
    /// Opens the database at `url`: `sqlite:///path/grabd.sqlite`, `sqlite::memory:` or `postgres://…`.
    ///
    /// A missing SQLite file is created, readable by its owner only. The schema is not changed.
    ///
    /// # Errors
    /// [`Error::Url`] when the scheme is unsupported, [`Error::Unavailable`] when the database cannot be opened.
    pub async fn open(url: &str) -> Result<Self> {
        Ok(Self { database: Database::open(url).await?, set_aside: Arc::default(), actor: None })
    }

    /// Brings the schema up to date. Idempotent.
    ///
    /// # Errors
    /// Database errors. A failed step is rolled back. [`Error::NewerSchema`] and [`Error::EditedStep`] when the applied
    /// steps are not those of this program; nothing is changed then.
    pub async fn migrate(&self) -> Result<()> {
        self.database.migrate().await
    }

    /// Whether every migration known to this program is applied.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the database cannot be reached; [`Error::NewerSchema`] and [`Error::EditedStep`] as
    /// for [`Store::migrate`].
    pub async fn schema_is_current(&self) -> Result<bool> {
        self.database.schema_is_current().await
    }

    /// Makes this process the only service on the database, as long as the lock is held. Waits up to `patience` for a
    /// service that is about to exit. The inner error is the service that uses the database. Commands need no lock.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the database cannot be reached.
    pub async fn lock_service(&self, patience: Duration) -> Result<Result<ServiceLock, OtherService>> {
        self.database.lock_service(patience).await
    }

    /// Copies a consistent state of an SQLite database to a new file, readable by its owner only. Services and commands
    /// may write meanwhile.
    ///
    /// # Errors
    /// [`Error::Full`] and [`Error::Unavailable`] when the file cannot be written, [`Error::Inconsistent`] for
    /// PostgreSQL, whose own program `pg_dump` does this.
    pub async fn copy_database(&self, path: &Path) -> Result<()> {
        self.database.copy_to(path).await
    }

    /// Checks that the database responds.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it does not.
    pub async fn ping(&self) -> Result<()> {
        self.database.ping().await
    }

    /// Completes the queued writes and closes the connections. Later calls return [`Error::Closed`].
    pub async fn close(self) {
        self.database.close().await;
    }

    /// The kind of database.
    pub const fn kind(&self) -> Kind {
        self.database.kind()
    }
}

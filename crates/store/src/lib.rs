//! What outlives a restart: teams, keys, people and their apps, credits, grabs and their jobs in one database, and the
//! images beside it.
//!
//! - `transactions/` has one file for each change. A rule of the job path or of the credits is the body of one
//!   `Transaction::apply`; the statements are in the order their locks must be taken in: team, job, grab, lot.
//! - `queries/` has one file for each thing that is only read.
//! - `database/` knows the two databases: how they are opened, and how a transaction is run on each.
//! - `entities/` has one file for each table, and `codes.rs` the numbers that stand for words in it.
//! - [`images`] keeps the files.
//!
//! To add a change: a file in `transactions/` with its argument type, `impl Transaction` for it and a method on
//! [`Store`]. To add a column: a step in the migrations, the entity, and whatever then no longer compiles.
//!
//! *Invariant:* nothing here reads a clock or draws a random number: `now`, ids, tokens and random bits are arguments.
//! No entity and no type of the database library leaves the crate, and no transaction waits for anything but the
//! database.

pub mod images;

mod codes;
mod database;
mod entities;
mod error;
mod queries;
mod transactions;

pub use database::Kind;
pub use error::{Cause, Error, Result};
pub use images::Images;
pub use queries::accounts::{Key, Team};
pub use queries::days::EndedOnDay;
pub use queries::drift::Drift;
pub use queries::holdings::Holding;
pub use queries::ledger::Entry;
pub use queries::list::{Cursor, Listed, Page};
pub use queries::oauth::{Client, Connection};
pub use queries::operator::failures::{Failed, FailedAt};
pub use queries::operator::figures::{EndedAs, Queue, QueueOfTeam, Undelivered, Waiting};
pub use queries::operator::teams::{TeamPlace, TeamSummary, TeamsWanted};
pub use queries::people::{Login, OpenSession, Person};
pub use queries::teams::{Invitation, ListedSession, Member};
pub use queries::usage::GrabCounts;
pub use queries::webhooks::{Deliveries, Message};
pub use transactions::accounts::{NewKey, NewTeam};
pub use transactions::complete::{Completion, Ended};
pub use transactions::create::{Created, NewGrab, NewLease};
pub use transactions::expire_jobs::timed_out;
pub use transactions::fail::{By, Failing};
pub use transactions::grant::{Grant, Granted};
pub use transactions::idempotency::{NewRecord, Repeat};
pub use transactions::lease::{Ask, Leased};
pub use transactions::oauth::consent::{Consented, NewConsent};
pub use transactions::oauth::end::Revoked;
pub use transactions::oauth::exchange::Exchange;
pub use transactions::oauth::refresh::Refresh;
pub use transactions::oauth::register::NewClient;
pub use transactions::oauth::ticket::NewTicket;
pub use transactions::oauth::{Exchanged, NewPair};
pub use transactions::operators::{OperatorGrant, OperatorGranted};
pub use transactions::passwords::PasswordChange;
pub use transactions::people::{NewPerson, NewSession, Place, Welcomed};
pub use transactions::placeholder::NewPlaceholder;
pub use transactions::release::{BACK_OFF, Released};
pub use transactions::rescue::Dead;
pub use transactions::take_back::{Share, TakeBack, TakenBack};
pub use transactions::teams::arrive::{Arrival, Arrived};
pub use transactions::teams::invite::NewInvitation;
pub use transactions::teams::{Answered, Refusal};
pub use transactions::webhooks::change::Mine;
pub use transactions::webhooks::register::{NewEndpoint, Registered};
pub use transactions::webhooks::resend::Resent;
pub use transactions::webhooks::settle::{Attempted, Then};
pub use transactions::webhooks::take::{Attempt, Owed, Room};

use database::Database;

/// The database. Cheap to clone; every clone is the same one.
#[derive(Clone, Debug)]
pub struct Store {
    database: Database,
}

impl Store {
    /// Opens the database at `url`: `sqlite:///path/grabd.sqlite`, `sqlite::memory:` or `postgres://…`.
    ///
    /// A SQLite file that is not there is created, readable by its owner only. The schema is not touched.
    ///
    /// # Errors
    /// [`Error::Url`] when the address is of neither kind, [`Error::Unavailable`] when it cannot be opened.
    pub async fn open(url: &str) -> Result<Self> {
        Ok(Self { database: Database::open(url).await? })
    }

    /// Brings the schema up to date. Running it twice is fine.
    ///
    /// # Errors
    /// Whatever the database says; a step that fails leaves nothing behind.
    pub async fn migrate(&self) -> Result<()> {
        self.database.migrate().await
    }

    /// Is every schema step this program knows applied? Later ones do not matter: a step only ever widens.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the database does not answer.
    pub async fn schema_is_current(&self) -> Result<bool> {
        self.database.schema_is_current().await
    }

    /// Asks the database for an answer.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when there is none.
    pub async fn ping(&self) -> Result<()> {
        self.database.ping().await
    }

    /// Finishes the writes that are waiting and closes the connections. Later calls answer [`Error::Closed`].
    pub async fn close(self) {
        self.database.close().await;
    }

    /// Which database this is.
    pub const fn kind(&self) -> Kind {
        self.database.kind()
    }
}

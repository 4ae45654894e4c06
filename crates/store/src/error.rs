//! Database errors, classified by what a caller can do about them.

use std::fmt;

use sea_orm::sqlx::error::{DatabaseError, ErrorKind};
use sea_orm::{ConnAcquireErr, DbErr, RuntimeErr, SqlxError};

/// Result of a store operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of a store operation. Nothing was written, except that `Unavailable` during a commit leaves the result
/// unknown. Every change of the job path is safe to repeat.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// No connection, a timeout, or a lock held for too long. A later retry may succeed.
    #[error("the database cannot be reached")]
    Unavailable(#[source] Cause),
    /// The write queue is full.
    #[error("the write queue is full")]
    Overloaded,
    /// The database's disk is full.
    #[error("the database's disk is full")]
    Full(#[source] Cause),
    /// A constraint of the schema rejected the change.
    #[error("a schema constraint rejected the change")]
    Constraint(#[source] Cause),
    /// The schema does not match this version of the program.
    #[error("the schema does not match this version of the program")]
    Schema(#[source] Cause),
    /// A step was applied that this program does not have.
    #[error(
        "the database was upgraded by grabd {version} (step {step}), and this is grabd {own}: use grabd {version}, or \
         restore the backup from before the upgrade"
    )]
    NewerSchema {
        /// The unknown step.
        step: String,
        /// The version that applied it.
        version: String,
        /// The version of this program.
        own: &'static str,
    },
    /// A step was applied in another form than that of this program.
    #[error(
        "the database was upgraded by grabd {version} with another form of step {step} than that of this grabd {own}: \
         use the program that upgraded it, or restore the backup from before the upgrade"
    )]
    EditedStep {
        /// The step.
        step: String,
        /// The version that applied it.
        version: String,
        /// The version of this program.
        own: &'static str,
    },
    /// The tables contain data that no transaction writes, or the arguments are contradictory.
    #[error("inconsistent: {0}")]
    Inconsistent(&'static str),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// The URL has an unsupported scheme.
    #[error("the database URL must begin with sqlite: or postgres:")]
    Url,
    /// The servers in the URL are not named as they should be.
    #[error("the database URL is not valid: {0}")]
    InvalidUrl(&'static str),
}

/// The underlying database error. For logs only: it may name tables and addresses.
#[derive(Clone)]
pub struct Cause(pub(crate) DbErr);

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Cause {}

impl Error {
    /// Whether the cause may be the data of single rows, while others can be processed.
    pub(crate) const fn concerns_row(&self) -> bool {
        match self {
            Self::Constraint(_) | Self::Schema(_) | Self::Inconsistent(_) => true,
            Self::Unavailable(_)
            | Self::Overloaded
            | Self::Full(_)
            | Self::Closed
            | Self::Url
            | Self::InvalidUrl(_)
            | Self::NewerSchema { .. }
            | Self::EditedStep { .. } => false,
        }
    }

    /// Whether the database does not respond, or has no capacity. Trying again in a few seconds may help.
    pub const fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Overloaded | Self::Closed)
    }

    /// Whether the database aborted the transaction only because of concurrent transactions.
    pub(crate) fn is_transient(&self) -> bool {
        const SERIALIZATION_FAILURE: &str = "40001";
        const DEADLOCK_DETECTED: &str = "40P01";
        let Self::Unavailable(Cause(error)) = self else { return false };
        sqlx_error(error)
            .and_then(SqlxError::as_database_error)
            .and_then(DatabaseError::code)
            .is_some_and(|code| code == SERIALIZATION_FAILURE || code == DEADLOCK_DETECTED)
    }
}

impl From<DbErr> for Error {
    fn from(error: DbErr) -> Self {
        if matches!(error, DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed)) {
            return Self::Closed;
        }
        let Some(sqlx_error) = sqlx_error(&error) else {
            let is_connection_error = matches!(error, DbErr::Conn(_) | DbErr::ConnectionAcquire(_));
            return if is_connection_error { Self::Unavailable(Cause(error)) } else { Self::Schema(Cause(error)) };
        };
        if let Some(database) = sqlx_error.as_database_error() {
            return classify(database)(Cause(error));
        }
        let is_schema_mismatch = matches!(
            sqlx_error,
            SqlxError::ColumnDecode { .. }
                | SqlxError::ColumnIndexOutOfBounds { .. }
                | SqlxError::ColumnNotFound(_)
                | SqlxError::Decode(_)
                | SqlxError::TypeNotFound { .. }
        );
        if is_schema_mismatch { Self::Schema(Cause(error)) } else { Self::Unavailable(Cause(error)) }
    }
}

/// An error of the driver outside of a statement: it could not connect.
pub(crate) fn connection_error(error: SqlxError) -> Error {
    DbErr::Conn(RuntimeErr::SqlxError(error.into())).into()
}

/// Whether the connection was lost, or leads to a server that accepts no writes, so that others probably do too.
pub(crate) fn is_connection_lost(error: &DbErr) -> bool {
    const READ_ONLY: &str = "25006";
    let Some(error) = sqlx_error(error) else { return false };
    if let Some(code) = error.as_database_error().and_then(DatabaseError::code) {
        // Class 08: connection exceptions. Class 57P: the server is shut down, has crashed, or is starting.
        return code == READ_ONLY || code.starts_with("57P") || code.starts_with("08");
    }
    matches!(error, SqlxError::Io(_) | SqlxError::Protocol(_) | SqlxError::Tls(_) | SqlxError::WorkerCrashed)
}

fn sqlx_error(error: &DbErr) -> Option<&SqlxError> {
    let (DbErr::Conn(cause) | DbErr::Exec(cause) | DbErr::Query(cause)) = error else { return None };
    let RuntimeErr::SqlxError(sqlx_error) = cause else { return None };
    Some(sqlx_error)
}

/// PostgreSQL codes have five characters, of which the first two are the class. SQLite codes are numbers whose low byte
/// is the primary result code.
fn classify(error: &dyn DatabaseError) -> fn(Cause) -> Error {
    if !matches!(error.kind(), ErrorKind::Other) {
        return Error::Constraint;
    }
    let code = error.code().unwrap_or_default();
    if code.len() == 5 {
        return match (code.as_ref(), &code[..2]) {
            ("53100", _) => Error::Full,
            ("P0001", _) | (_, "23") => Error::Constraint,
            (_, "42" | "22" | "3F") => Error::Schema,
            _ => Error::Unavailable,
        };
    }
    const SQLITE_ERROR: u32 = 1;
    const SQLITE_FULL: u32 = 13;
    const SQLITE_CONSTRAINT: u32 = 19;
    match code.parse::<u32>().map(|code| code & 0xff) {
        Ok(SQLITE_FULL) => Error::Full,
        Ok(SQLITE_CONSTRAINT) => Error::Constraint,
        Ok(SQLITE_ERROR) => Error::Schema,
        Ok(_) | Err(_) => Error::Unavailable,
    }
}

//! What can go wrong with the database, as far as a caller can act on it.

use std::fmt;

use sea_orm::sqlx::error::{DatabaseError, ErrorKind};
use sea_orm::{ConnAcquireErr, DbErr, RuntimeErr, SqlxError};

/// The answer of the store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the store could not do it. Nothing was written, except where `Unavailable` came in the middle of a commit: then
/// nobody knows, and every change of the job path may safely be repeated.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// No connection, no answer in time, or locked for too long. Trying again later may help.
    #[error("the database cannot be reached")]
    Unavailable(#[source] Cause),
    /// More writes are waiting than the queue holds.
    #[error("too many writes are waiting")]
    Overloaded,
    /// No room left on the database's disk.
    #[error("the database's disk is full")]
    Full(#[source] Cause),
    /// A rule of the schema refused the change.
    #[error("a rule of the schema refused the change")]
    Constraint(#[source] Cause),
    /// The schema is not the one this program was written for.
    #[error("the schema is not the one this program knows")]
    Schema(#[source] Cause),
    /// The tables hold what no transaction of ours writes, or a caller asked for what cannot be.
    #[error("inconsistent: {0}")]
    Inconsistent(&'static str),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// The address names neither kind of database.
    #[error("a database address must begin with sqlite: or postgres:")]
    Url,
}

/// What the database said. For logs: it may name tables and addresses.
#[derive(Clone)]
pub struct Cause(DbErr);

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
    /// Did the database end the transaction only because of what others were doing at the same time?
    pub(crate) fn is_transient(&self) -> bool {
        const SERIALIZATION_FAILURE: &str = "40001";
        const DEADLOCK_DETECTED: &str = "40P01";
        let Self::Unavailable(Cause(error)) = self else { return false };
        sqlx(error)
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
        let Some(sqlx) = sqlx(&error) else {
            let unreachable = matches!(error, DbErr::Conn(_) | DbErr::ConnectionAcquire(_));
            return if unreachable { Self::Unavailable(Cause(error)) } else { Self::Schema(Cause(error)) };
        };
        if let Some(database) = sqlx.as_database_error() {
            return classify(database)(Cause(error));
        }
        let does_not_fit = matches!(
            sqlx,
            SqlxError::ColumnDecode { .. }
                | SqlxError::ColumnIndexOutOfBounds { .. }
                | SqlxError::ColumnNotFound(_)
                | SqlxError::Decode(_)
                | SqlxError::TypeNotFound { .. }
        );
        if does_not_fit { Self::Schema(Cause(error)) } else { Self::Unavailable(Cause(error)) }
    }
}

fn sqlx(error: &DbErr) -> Option<&SqlxError> {
    let (DbErr::Conn(cause) | DbErr::Exec(cause) | DbErr::Query(cause)) = error else { return None };
    let RuntimeErr::SqlxError(sqlx) = cause else { return None };
    Some(sqlx)
}

/// PostgreSQL's codes are five letters whose first two are a class; SQLite's are numbers whose low byte is the kind.
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

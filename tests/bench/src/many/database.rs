//! A database of its own for a measurement, deleted when it is dropped.

use anyhow::Result;
use clap::ValueEnum;
use grabd_tests::postgres_server::PostgresServer;

/// The kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DatabaseKind {
    /// A file, as in the default configuration.
    Sqlite,
    /// A server, without fsync.
    Postgres,
}

impl std::fmt::Display for DatabaseKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        })
    }
}

/// A database of its own.
pub(super) enum OwnDatabase {
    Sqlite(tempfile::TempDir),
    Postgres(PostgresServer),
}

impl OwnDatabase {
    pub(super) async fn create(kind: DatabaseKind) -> Result<Self> {
        Ok(match kind {
            DatabaseKind::Sqlite => Self::Sqlite(tempfile::tempdir()?),
            DatabaseKind::Postgres => Self::Postgres(PostgresServer::start().await?),
        })
    }

    pub(super) fn url(&self) -> String {
        match self {
            Self::Sqlite(directory) => format!("sqlite://{}", directory.path().join("grabd.db").display()),
            Self::Postgres(server) => server.url(),
        }
    }
}

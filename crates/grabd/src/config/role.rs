//! The role of the process.

use serde::Deserialize;

/// The part of the work that this process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ProcessRole {
    /// Everything.
    All,
    /// Public interfaces over the database: no queue, no browser.
    Edge,
    /// The queue, gRPC, and the listener for renderers: no pages, no browser.
    Core,
    /// Browsers only: no database, no keys, no images.
    Renderer,
}

impl ProcessRole {
    /// Its name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Edge => "edge",
            Self::Core => "core",
            Self::Renderer => "renderer",
        }
    }
}

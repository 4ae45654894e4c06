//! Whether the caller of a capture waits for it.

/// Whether the caller waits for the result. Determines the priority in the queue and the queue limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The caller waits for the result.
    Sync,
    /// The caller polls or gets a webhook.
    Async,
}

impl Class {
    /// All classes, by descending priority.
    pub const ALL: [Self; 2] = [Self::Sync, Self::Async];
}

//! An entry of the ledger, as users see it.

pub use grabd_store::credits::Entry;

/// A ledger entry, and what is known about it elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    /// The entry.
    pub entry: Entry,
    /// The credits that the team had after it, including held ones.
    pub balance: i64,
    /// What was captured for the credit.
    pub captured: Option<Captured>,
    /// The page with the receipt of the payment. Only purchases have one.
    pub receipt: Option<String>,
}

/// What a grab captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Captured {
    /// A page of this host.
    Host(String),
    /// A document of the caller.
    Document,
}

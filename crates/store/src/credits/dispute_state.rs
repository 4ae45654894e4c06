//! How far a dispute of a payment has come.

/// State of a dispute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisputeState {
    /// Not decided. All remaining credits of the purchase are taken back.
    Open,
    /// Decided for the seller. The credits are given back.
    Won,
    /// Decided for the buyer. The credits stay taken back.
    Lost,
}

//! Credits: lots, ledger entries, balances and plans.

use crate::ids::LotId;
use crate::timestamp::Timestamp;

/// The threshold in credits below which the owners of a team get an alert, until they choose another one.
pub const ALERT_BELOW: u32 = 100;
/// The highest threshold. 0 means no alerts.
pub const ALERT_BELOW_MAX: u32 = 1_000_000;
/// Maximum number of members that a team chooses to get alerts instead of its owners.
pub const ALERT_RECIPIENTS: usize = 3;

/// The percentages of what was bought or granted at which the owners of a team get an alert, highest first.
pub const ALERT_PERCENTS: [u32; 3] = [50, 20, 0];
/// The stage of a balance that has fallen to all of [`ALERT_PERCENTS`].
pub const ALERT_STAGES: u8 = 3;
/// With fewer credits, only the last of them counts: half of few credits is no news.
const ALERT_MIN_GRANTED: u64 = 100;

/// How many of [`ALERT_PERCENTS`] the unspent credits have fallen to, of the `granted` credits of the lots that are not used
/// up.
pub fn alert_stage(unspent: u64, granted: u64) -> u8 {
    let has_fallen_to = |percent: &&u32| match **percent {
        0 => unspent == 0,
        percent => {
            granted < ALERT_MIN_GRANTED || u128::from(unspent) * 100 <= u128::from(granted) * u128::from(percent)
        }
    };
    let reached = ALERT_PERCENTS.iter().filter(has_fallen_to).count();
    u8::try_from(reached).unwrap_or(ALERT_STAGES)
}

/// The origin of a lot. Subscription lots are spent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LotKind {
    /// Expires at the end of the term.
    Subscription,
    /// Bought as a top-up. Does not expire.
    Prepaid,
}

/// The kind of a ledger entry. Holds are not in the ledger: credits are spent when a grab is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// Credits were added.
    Grant,
    /// One credit for one done live grab.
    Spend,
    /// The unspent credits of a subscription lot at the end of its term.
    Expire,
    /// Adjustment by an operator.
    Adjust,
}

impl EntryKind {
    /// The name that operators see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Grant => "grant",
            Self::Spend => "spend",
            Self::Expire => "expire",
            Self::Adjust => "adjust",
        }
    }
}

/// The current state of a lot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lot {
    /// The lot's id.
    pub id: LotId,
    /// Its origin.
    pub kind: LotKind,
    /// Credits granted initially.
    pub granted: u32,
    /// Unspent credits, including held ones.
    pub remaining: u32,
    /// Credits held for open grabs.
    pub held: u32,
    /// When the remaining credits expire. Only set for subscriptions.
    pub expires_at: Option<Timestamp>,
    /// Whether the subscription was cancelled. The credits remain until the end of the term.
    pub cancelled: bool,
}

impl Lot {
    /// Returns whether the lot has not expired.
    pub fn is_usable(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| end > now)
    }

    /// Credits available for new grabs.
    pub const fn free(&self) -> u32 {
        self.remaining.saturating_sub(self.held)
    }
}

/// The credit balance of a team.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Available credits from subscriptions.
    pub subscription: u64,
    /// Available credits from prepaid lots.
    pub prepaid: u64,
    /// Credits held for open grabs. Not included in the other fields.
    pub held: u64,
}

impl Balance {
    /// Computes the balance of the lots at `now`.
    pub fn of(lots: &[Lot], now: Timestamp) -> Self {
        let free = |kind| {
            lots.iter().filter(|lot| lot.kind == kind && lot.is_usable(now)).map(|lot| u64::from(lot.free())).sum()
        };
        Self {
            subscription: free(LotKind::Subscription),
            prepaid: free(LotKind::Prepaid),
            held: lots.iter().map(|lot| u64::from(lot.held)).sum(),
        }
    }

    /// All available credits.
    pub const fn total(&self) -> u64 {
        self.subscription + self.prepaid
    }
}

/// The plan in the usage response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// `annual` during a subscription's term, else `prepaid`, or `none` without any lot.
    pub name: &'static str,
    /// `active`, `cancelled` (credits remain until the end of the term) or `inactive`.
    pub status: &'static str,
    /// The end of the last term.
    pub expires_at: Option<Timestamp>,
}

impl Plan {
    /// Derives the plan from the lots at `now`.
    pub fn of(lots: &[Lot], now: Timestamp) -> Self {
        let term = lots
            .iter()
            .filter(|lot| lot.kind == LotKind::Subscription && lot.is_usable(now))
            .max_by_key(|lot| lot.expires_at);
        match term {
            Some(lot) => Self {
                name: "annual",
                status: if lot.cancelled { "cancelled" } else { "active" },
                expires_at: lot.expires_at,
            },
            None if lots.iter().any(|lot| lot.kind == LotKind::Prepaid) => {
                Self { name: "prepaid", status: "active", expires_at: None }
            }
            None => Self { name: "none", status: "inactive", expires_at: None },
        }
    }
}

/// State of a dispute of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisputeState {
    /// Not decided. All remaining credits of the purchase are taken back.
    Open,
    /// Decided for the seller. The credits are given back.
    Won,
    /// Decided for the buyer. The credits stay taken back.
    Lost,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lot(kind: LotKind, remaining: u32, held: u32, expires: Option<i64>) -> Lot {
        Lot {
            id: LotId(1),
            kind,
            granted: 100,
            remaining,
            held,
            expires_at: expires.map(Timestamp::from_ms),
            cancelled: false,
        }
    }

    #[test]
    fn stage_is_the_number_of_percentages_that_were_reached() {
        for (unspent, granted, expected) in [
            (10_000, 10_000, 0),
            (5_001, 10_000, 0),
            (5_000, 10_000, 1),
            (2_001, 10_000, 1),
            (2_000, 10_000, 2),
            (1, 10_000, 2),
            (0, 10_000, 3),
            (0, 0, 3),
            (100, 100, 0),
            // Few credits: only the last one is an event.
            (99, 99, 2),
            (1, 99, 2),
            (0, 99, 3),
            (u64::MAX, u64::MAX, 0),
        ] {
            assert_eq!(alert_stage(unspent, granted), expected, "{unspent} of {granted}");
        }
        assert_eq!(usize::from(ALERT_STAGES), ALERT_PERCENTS.len());
    }

    #[test]
    fn balance_counts_only_free_credits_of_usable_lots() {
        let lots = [
            lot(LotKind::Subscription, 10, 3, Some(1_000)),
            lot(LotKind::Subscription, 50, 1, Some(10)),
            lot(LotKind::Prepaid, 7, 7, None),
            lot(LotKind::Prepaid, 5, 0, None),
        ];
        let balance = Balance::of(&lots, Timestamp::from_ms(10));
        assert_eq!(balance, Balance { subscription: 7, prepaid: 5, held: 11 });
        assert_eq!(balance.total(), 12);
    }

    #[test]
    fn plan_depends_on_lot_kinds_and_expiry() {
        let now = Timestamp::from_ms(10);
        assert_eq!(Plan::of(&[], now).name, "none");
        assert_eq!(Plan::of(&[lot(LotKind::Prepaid, 0, 0, None)], now).name, "prepaid");
        let mut term = lot(LotKind::Subscription, 1, 0, Some(11));
        assert_eq!(Plan::of(&[term], now).status, "active");
        term.cancelled = true;
        assert_eq!(Plan::of(&[term], now).status, "cancelled");
        assert_eq!(Plan::of(&[term], Timestamp::from_ms(11)).name, "none");
    }
}

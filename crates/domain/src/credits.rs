//! Credits: lots that are granted, held for open grabs and spent by finished ones.

use crate::ids::LotId;
use crate::timestamp::Timestamp;

/// Where a lot comes from, which decides the order of spending: subscriptions first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LotKind {
    /// Expires at the term's end.
    Subscription,
    /// Bought separately; does not expire.
    Prepaid,
}

/// What a ledger entry records. Holds are not among them: nothing is taken before a grab is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// Credits came in.
    Grant,
    /// One credit for one done live grab.
    Spend,
    /// A subscription's rest at its term's end.
    Expire,
    /// By an operator's hand.
    Adjust,
}

impl EntryKind {
    /// The operator's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Grant => "grant",
            Self::Spend => "spend",
            Self::Expire => "expire",
            Self::Adjust => "adjust",
        }
    }
}

/// A lot as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lot {
    /// Its number.
    pub id: LotId,
    /// Where it comes from.
    pub kind: LotKind,
    /// Credits granted at its beginning.
    pub granted: u32,
    /// Credits not yet spent, held ones included.
    pub remaining: u32,
    /// Credits promised to open grabs.
    pub held: u32,
    /// When the rest lapses; only subscriptions have one.
    pub expires_at: Option<Timestamp>,
    /// Has the subscription behind it been cancelled? It keeps its credits until the term ends.
    pub cancelled: bool,
}

impl Lot {
    /// May a create still take from it?
    pub fn is_usable(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| end > now)
    }

    /// What a create may still take.
    pub const fn free(&self) -> u32 {
        self.remaining.saturating_sub(self.held)
    }
}

/// What a team can still spend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// From subscriptions.
    pub subscription: u64,
    /// From prepaid lots.
    pub prepaid: u64,
    /// Promised to open grabs, and in neither of the two.
    pub held: u64,
}

impl Balance {
    /// The balance of these lots at `now`.
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

    /// Everything that can still be spent.
    pub const fn total(&self) -> u64 {
        self.subscription + self.prepaid
    }
}

/// The plan line of the usage answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// `annual` while a subscription's term runs, else `prepaid`, or `none` before the first grant.
    pub name: &'static str,
    /// `active`, `cancelled` (credits stay until the term ends) or `inactive`.
    pub status: &'static str,
    /// The end of the term that ends last.
    pub expires_at: Option<Timestamp>,
}

impl Plan {
    /// The plan these lots amount to at `now`.
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
    fn a_balance_is_what_a_create_will_accept() {
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
    fn plans() {
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

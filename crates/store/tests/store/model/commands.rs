//! The commands of the property test.

use grabd_domain::credits::LotKind;
use grabd_domain::grabs::Class;
use proptest::prelude::*;
use proptest::sample::Index;

/// A command. An [`Index`] selects one of the items that exist when it runs.
#[derive(Clone, Debug)]
pub(super) enum Command {
    /// Grant credits, or repeat the latest grant.
    Grant { team: usize, kind: LotKind, credits: u32, term_s: u64, again: bool },
    /// Create a grab, optionally with a free slot and with one of a few keys and requests.
    Create { team: usize, class: Class, slot: bool, key: Option<(u8, u8)> },
    /// Lease jobs to slots.
    Lease { class: Class, slots: usize },
    /// Complete an attempt, running or lost, once or twice.
    Complete { attempt: Index, twice: bool },
    /// Fail an attempt, running or lost.
    Fail { attempt: Index },
    /// Release an attempt, running or lost.
    Release { attempt: Index },
    /// Fail a grab by its deadline.
    TimeOut { grab: Index },
    /// Cancel a grab.
    Cancel { grab: Index },
    /// Delete a grab's image.
    Delete { grab: Index },
    /// Reclaim expired leases.
    Reclaim,
    /// Fail overdue grabs.
    ExpireJobs,
    /// Expire lots whose term has ended.
    ExpireLots,
    /// Purge expired keys.
    PurgeKeys,
    /// Cancel a team's subscriptions.
    CancelSubscriptions { team: usize },
    /// Move the clock.
    Jump { ms: i64 },
}

pub(super) fn any() -> impl Strategy<Value = Command> {
    let team = 0..2_usize;
    let class = || prop_oneof![3 => Just(Class::Sync), 1 => Just(Class::Async)];
    let kind = prop_oneof![Just(LotKind::Subscription), Just(LotKind::Prepaid)];
    let key = proptest::option::of((0..3_u8, 0..2_u8));
    let day = 24 * 60 * 60 * 1000;
    let jump = prop_oneof![
        6 => 0..20_000_i64,
        2 => -20_000..0_i64,
        2 => 0..400_000_i64,
        1 => -400_000..0_i64,
        1 => Just(day),
        1 => Just(-day),
    ];
    let index = || proptest::arbitrary::any::<Index>();
    prop_oneof![
        4 => (team.clone(), kind, 1..4_u32, 0..300_u64, proptest::bool::weighted(0.2))
            .prop_map(|(team, kind, credits, term_s, again)| Command::Grant { team, kind, credits, term_s, again }),
        8 => (team.clone(), class(), proptest::bool::ANY, key)
            .prop_map(|(team, class, slot, key)| Command::Create { team, class, slot, key }),
        4 => (class(), 1..4_usize).prop_map(|(class, slots)| Command::Lease { class, slots }),
        5 => (index(), proptest::bool::ANY).prop_map(|(attempt, twice)| Command::Complete { attempt, twice }),
        2 => index().prop_map(|attempt| Command::Fail { attempt }),
        2 => index().prop_map(|attempt| Command::Release { attempt }),
        1 => index().prop_map(|grab| Command::TimeOut { grab }),
        1 => index().prop_map(|grab| Command::Cancel { grab }),
        2 => index().prop_map(|grab| Command::Delete { grab }),
        1 => Just(Command::Reclaim),
        1 => Just(Command::ExpireJobs),
        2 => Just(Command::ExpireLots),
        1 => Just(Command::PurgeKeys),
        1 => team.prop_map(|team| Command::CancelSubscriptions { team }),
        4 => jump.prop_map(|ms| Command::Jump { ms }),
    ]
}

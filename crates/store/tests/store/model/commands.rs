//! What may happen.

use grabd_domain::credits::LotKind;
use grabd_domain::grabs::Class;
use proptest::prelude::*;
use proptest::sample::Index;

/// One thing that happens. An [`Index`] points at one of whatever there is by then.
#[derive(Clone, Debug)]
pub(super) enum Command {
    /// Credits come in, or the latest grant is repeated.
    Grant { team: usize, kind: LotKind, credits: u32, term_s: u64, again: bool },
    /// A create, perhaps with a free slot and with one of a few keys and requests.
    Create { team: usize, class: Class, slot: bool, key: Option<(u8, u8)> },
    /// Slots ask for work.
    Lease { class: Class, slots: usize },
    /// An attempt, running or lost, reports a picture; perhaps twice.
    Complete { attempt: Index, twice: bool },
    /// An attempt, running or lost, reports that there is none.
    Fail { attempt: Index },
    /// An attempt, running or lost, is given back.
    Release { attempt: Index },
    /// Somebody calls a grab's deadline over.
    TimeOut { grab: Index },
    /// A grab's caller takes it back.
    Cancel { grab: Index },
    /// A grab's picture is deleted.
    Delete { grab: Index },
    /// Overdue leases are looked for.
    Rescue,
    /// Overdue grabs are looked for.
    ExpireJobs,
    /// Ended terms are looked for.
    ExpireLots,
    /// Old keys are looked for.
    PurgeKeys,
    /// A team's subscriptions are cancelled.
    CancelSubscriptions { team: usize },
    /// The clock jumps.
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
        1 => Just(Command::Rescue),
        1 => Just(Command::ExpireJobs),
        2 => Just(Command::ExpireLots),
        1 => Just(Command::PurgeKeys),
        1 => team.prop_map(|team| Command::CancelSubscriptions { team }),
        4 => jump.prop_map(|ms| Command::Jump { ms }),
    ]
}

//! How busy slots are, in this process and in others of its cluster.

use std::time::Duration;

use grabd_domain::admission::{Payer, Throughput, WaitLimit};
use grabd_domain::limits::LEASE_FLOOR;
use grabd_store::nodes::NodeLoad;

/// How the slots of all sessions are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occupancy {
    /// All slots.
    pub(crate) slots: usize,
    /// Idle slots.
    pub(crate) idle: usize,
    /// Slots that are kept for payers that have paid.
    pub(crate) kept: usize,
    /// Idle slots that all payers may use.
    pub(crate) open_to_all: usize,
}

/// Slots, and how long renders usually take in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) occupancy: Occupancy,
    /// Of all renders.
    pub(crate) render: Duration,
    /// Of renders for payers that have paid.
    pub(crate) paid_render: Duration,
}

impl Load {
    /// What another process wrote with its last heartbeat.
    pub(crate) fn of_node(slots: u32, load: NodeLoad) -> Self {
        let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let NodeLoad { idle, open_idle, kept, render_ms, paid_render_ms } = load;
        Self {
            occupancy: Occupancy {
                slots: number(slots),
                idle: number(idle),
                kept: number(kept),
                open_to_all: number(open_idle),
            },
            render: Duration::from_millis(render_ms.into()),
            paid_render: Duration::from_millis(paid_render_ms.into()),
        }
    }

    /// What this process writes with its heartbeat: the number of slots, and the rest.
    pub(crate) fn to_node(self) -> (u32, NodeLoad) {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let ms = |duration: Duration| u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
        let Occupancy { slots, idle, kept, open_to_all } = self.occupancy;
        let load = NodeLoad {
            idle: number(idle),
            open_idle: number(open_to_all),
            kept: number(kept),
            render_ms: ms(self.render),
            paid_render_ms: ms(self.paid_render),
        };
        (number(slots), load)
    }

    /// The slots of both, which work off one queue.
    pub(crate) fn with(self, other: Self) -> Self {
        let (own, others) = (self.occupancy, other.occupancy);
        let render = |own_time, other_time| mean((own.slots, own_time), (others.slots, other_time));
        Self {
            render: render(self.render, other.render),
            paid_render: render(self.paid_render, other.paid_render),
            occupancy: Occupancy {
                slots: own.slots + others.slots,
                idle: own.idle + others.idle,
                kept: own.kept + others.kept,
                open_to_all: own.open_to_all + others.open_to_all,
            },
        }
    }

    /// The limit of the expected wait of a synchronous grab with this much time left. The last seconds do not count: a
    /// job with so little time left is not leased.
    pub(crate) fn wait_limit(self, payer: Payer, left: Duration) -> WaitLimit {
        let Self { occupancy: Occupancy { slots, idle, kept, open_to_all }, render: all, paid_render: paid } = self;
        let longest = left.saturating_sub(LEASE_FLOOR);
        if payer.has_paid {
            let kept = Throughput { slots: kept, idle: idle.saturating_sub(open_to_all), render: paid };
            let shared = Throughput { slots, idle: open_to_all, render: all };
            WaitLimit { longest, shared, kept: (kept.slots > 0).then_some(kept) }
        } else {
            let shared = Throughput { slots: slots.saturating_sub(kept), idle: open_to_all, render: all };
            WaitLimit { longest, shared, kept: None }
        }
    }
}

/// The mean of two durations, weighted by numbers of slots. The first one if there are none.
fn mean((slots, time): (usize, Duration), (others, other): (usize, Duration)) -> Duration {
    let weight = |slots: usize| u32::try_from(slots).unwrap_or(u32::MAX);
    match weight(slots).saturating_add(weight(others)) {
        0 => time,
        all => (time.saturating_mul(weight(slots)).saturating_add(other.saturating_mul(weight(others)))) / all,
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::admission::QueueAhead;
    use grabd_domain::ids::TeamId;
    use uuid::Uuid;

    use super::*;

    const S: Duration = Duration::from_secs(1);
    const NONE: Occupancy = Occupancy { slots: 0, idle: 0, kept: 0, open_to_all: 0 };

    #[test]
    fn process_without_slots_expects_the_wait_of_the_others() {
        let own = Load { occupancy: NONE, render: 2 * S, paid_render: 2 * S };
        let busy = NodeLoad { idle: 0, open_idle: 0, kept: 0, render_ms: 20_000, paid_render_ms: 20_000 };
        let unpaid = Payer::of_team(TeamId(Uuid::from_u128(1)));
        let ahead = QueueAhead { all: 7, paid: 0 };
        assert_eq!(own.wait_limit(unpaid, 25 * S).exceeded(ahead), None, "unknown without slots");
        let one = own.with(Load::of_node(2, busy));
        assert_eq!(one.wait_limit(unpaid, 25 * S).exceeded(ahead), Some(80 * S));
        // A second one with twice the slots and half the time per render.
        let idle = NodeLoad { idle: 4, open_idle: 3, kept: 1, render_ms: 10_000, paid_render_ms: 4_000 };
        let both = one.with(Load::of_node(4, idle));
        assert_eq!(both.occupancy, Occupancy { slots: 6, idle: 4, kept: 1, open_to_all: 3 });
        assert_eq!((both.render.as_millis(), both.paid_render.as_millis()), (13_333, 9_333));
        assert_eq!(both.wait_limit(unpaid, 25 * S).exceeded(ahead), None);
        let (slots, load) = Load::of_node(4, idle).to_node();
        assert_eq!((slots, load), (4, idle));
    }
}

//! Settings of what is kept, how long and how much of it.

use std::time::Duration;

use grabd_domain::storage::Counted;

/// How long things are kept, and how much. `None`: until they are deleted on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Images of live grabs, from the end of the grab.
    pub images: Option<Duration>,
    /// Live grabs, from their end. Must not be shorter than the window of the usage counts.
    pub grabs: Option<Duration>,
    /// Test grabs, from their end.
    pub test_grabs: Option<Duration>,
    /// Live grabs that failed, from their end. Must not be shorter than the window of the usage counts.
    pub failed_grabs: Option<Duration>,
    /// Accounts whose address was never verified, and with which nothing was done, from their creation.
    pub unverified: Option<Duration>,
    /// Maximum size of the images of a team's live grabs, in megabytes. `None`: not limited.
    pub team_megabytes: Option<u64>,
    /// Maximum size of the test grabs of an account, in megabytes, if there are strangers. `None`: not limited.
    pub test_megabytes: Option<u64>,
    /// Maximum size of everything else of an account that never paid, with its images, if there are strangers.
    pub unpaid_megabytes: Option<u64>,
    /// Maximum size of what an account stores without having spent a credit for it, for each environment.
    pub uncharged_megabytes: Option<u64>,
    /// Percentage of the images' disk that must be free for creates, and at least 1 GiB. 0: creates need no free space.
    pub min_free_percent: u8,
}

impl Retention {
    /// Megabytes that the test grabs of an account may take.
    pub const fn test_limit(&self, has_strangers: bool) -> Option<u64> {
        if has_strangers { self.test_megabytes } else { self.uncharged_megabytes }
    }

    /// What is counted of the live grabs of an account, and how many megabytes it may be.
    pub const fn live_limit(&self, has_strangers: bool, has_paid: bool) -> (Counted, Option<u64>) {
        match has_strangers && !has_paid {
            true => (Counted::Live, self.unpaid_megabytes),
            false => (Counted::Uncharged, self.uncharged_megabytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_depend_on_strangers_and_payments() {
        let retention = Retention {
            test_megabytes: Some(1),
            unpaid_megabytes: Some(2),
            uncharged_megabytes: Some(3),
            ..Retention::default()
        };
        assert_eq!((retention.test_limit(true), retention.test_limit(false)), (Some(1), Some(3)));
        for (has_strangers, has_paid, expected) in [
            (true, false, (Counted::Live, Some(2))),
            (true, true, (Counted::Uncharged, Some(3))),
            (false, false, (Counted::Uncharged, Some(3))),
            (false, true, (Counted::Uncharged, Some(3))),
        ] {
            assert_eq!(retention.live_limit(has_strangers, has_paid), expected);
        }
    }
}

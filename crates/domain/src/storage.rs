//! What accounts store, and how much they may.

/// Bytes that a team or an account stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredBytes {
    /// Images of live grabs, and their attachments.
    pub images: i64,
    /// Rows of test keys.
    pub test: i64,
    /// Live rows for which no credit was spent: failed grabs with their webhook messages, and idempotency keys.
    pub uncharged: i64,
    /// Live rows of done grabs, each of which cost a credit.
    pub charged: i64,
}

/// Which bytes a limit is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Those of test keys.
    Test,
    /// All of live keys.
    Live,
    /// Those of live rows that cost nothing, beyond as many as those of done grabs: who captures much for credits may also
    /// have many failures.
    Uncharged,
}

impl Counted {
    /// What is counted, for messages.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Test => "test captures",
            Self::Live => "captures and their images",
            Self::Uncharged => "failed captures and their webhook messages",
        }
    }

    /// What its owner can do, for messages.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Test => "Test captures are deleted some days after they were made.",
            Self::Live => "Delete captures that are no longer needed, or buy credits.",
            Self::Uncharged => "Failed captures are deleted some weeks after they were made.",
        }
    }
}

impl StoredBytes {
    /// The bytes that a limit is about.
    pub const fn counted(&self, counted: Counted) -> i64 {
        match counted {
            Counted::Test => self.test,
            Counted::Live => self.images.saturating_add(self.uncharged).saturating_add(self.charged),
            Counted::Uncharged => self.uncharged.saturating_sub(self.charged),
        }
    }

    /// Everything.
    pub const fn total(&self) -> i64 {
        self.counted(Counted::Live).saturating_add(self.test)
    }
}

/// What a team may store, in view of what the other teams of its account do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageCeiling {
    /// What is counted.
    pub counted: Counted,
    /// The team may create nothing as soon as it has this much.
    pub bytes: i64,
}

impl StorageCeiling {
    /// The ceiling of a team whose account may store `limit` bytes, and whose other teams store this.
    pub const fn beside(others: &StoredBytes, counted: Counted, limit: i64) -> Self {
        Self { counted, bytes: limit.saturating_sub(others.counted(counted)) }
    }

    /// Whether the team may create nothing.
    pub const fn is_reached(self, own: &StoredBytes) -> bool {
        own.counted(self.counted) >= self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORED: StoredBytes = StoredBytes { images: 1000, test: 100, uncharged: 50, charged: 20 };

    #[test]
    fn each_limit_counts_its_own_bytes() {
        for (counted, expected) in [(Counted::Test, 100), (Counted::Live, 1070), (Counted::Uncharged, 30)] {
            assert_eq!(STORED.counted(counted), expected, "{counted:?}");
        }
        assert_eq!(STORED.total(), 1170);
    }

    #[test]
    fn other_teams_of_the_account_leave_less_for_a_team() {
        let others = StoredBytes { test: 60, ..StoredBytes::default() };
        for (limit, expected) in [(161, false), (160, true), (0, true)] {
            let ceiling = StorageCeiling::beside(&others, Counted::Test, limit);
            assert_eq!(ceiling.is_reached(&STORED), expected, "{limit}");
        }
        // Captures that were paid for leave more room for those that were not.
        let others = StoredBytes { charged: 25, ..StoredBytes::default() };
        assert!(!StorageCeiling::beside(&others, Counted::Uncharged, 10).is_reached(&STORED));
        assert!(StorageCeiling::beside(&others, Counted::Uncharged, 5).is_reached(&STORED));
    }
}

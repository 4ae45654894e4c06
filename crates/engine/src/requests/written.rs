//! Counts the recorded requests of teams, so that old ones are deleted again and again.

use std::collections::{BTreeMap, HashMap};

use grabd_domain::ids::TeamId;

/// Requests of a team and kind after which the old ones are deleted again.
const TRIM_AFTER: u32 = 100;
/// Teams and kinds that are counted at a time.
const COUNTED: usize = 10_000;

/// A team, and whether its requests were refused.
pub(super) type TeamAndKind = (TeamId, bool);

/// Requests since old ones were deleted.
#[derive(Default)]
pub(super) struct Written(HashMap<TeamAndKind, u32>);

impl Written {
    /// Counts requests. Returns those teams and kinds of which old ones must be deleted now: also those that are new here,
    /// because an earlier process may have written many.
    pub(super) fn add(&mut self, requests: &[TeamAndKind]) -> Vec<TeamAndKind> {
        if self.0.len() > COUNTED {
            self.0.clear();
        }
        let mut added: BTreeMap<TeamAndKind, u32> = BTreeMap::new();
        for kind in requests {
            *added.entry(*kind).or_default() += 1;
        }
        let is_due = |(kind, count): (TeamAndKind, u32)| {
            let total = self.0.get(&kind).map_or(TRIM_AFTER, |before| before.saturating_add(count));
            let is_due = total >= TRIM_AFTER;
            self.0.insert(kind, if is_due { 0 } else { total });
            is_due.then_some(kind)
        };
        added.into_iter().filter_map(is_due).collect()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn old_requests_are_deleted_at_first_and_then_after_a_number_of_new_ones() {
        let (one, two) = (TeamId(Uuid::from_u128(1)), TeamId(Uuid::from_u128(2)));
        let mut written = Written::default();
        assert_eq!(written.add(&[(one, true), (one, true), (two, false)]), [(one, true), (two, false)]);
        assert_eq!(written.add(&[(one, true); 99]), []);
        assert_eq!(written.add(&[(one, false)]), [(one, false)], "the other kind is counted apart");
        assert_eq!(written.add(&[(one, true)]), [(one, true)]);
        assert_eq!(written.add(&[(one, true)]), []);
        assert_eq!(written.add(&[]), []);
    }
}

//! Failed live grabs of all teams.

use std::collections::{BTreeMap, BTreeSet};

use grabd_domain::grabs::FailureReason;
use grabd_domain::ids::TeamId;
use grabd_domain::{Day, ErrorCause};
use grabd_store::operator::{FailedGrab, FailureCursor, FailureFilter, FoundFailures};

use super::Operator;
use super::filters::{MatchedTeams, bounds};
use crate::error::Error;
use crate::service::Core;

/// Failures on a page.
const PAGE: u32 = 50;
/// The latest failures that are grouped by host.
pub const GROUPED_FAILURES: u32 = 1000;
/// Hosts that are listed.
const HOSTS: usize = 10;

/// Which failures are wanted. Each condition applies if it is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureSearch {
    /// The id of a team, or a part of the name. May be empty.
    pub team: String,
    /// The reason.
    pub reason: Option<FailureReason>,
    /// Whose fault it is.
    pub cause: Option<ErrorCause>,
    /// The day in UTC.
    pub day: Option<Day>,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailuresOutcome {
    /// A page of failures.
    Page(FailuresPage),
    /// The text for the team matches more than [`MAX_FILTER_TEAMS`](super::MAX_FILTER_TEAMS).
    TooManyTeams,
}

/// A page of failed grabs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailuresPage {
    /// Latest first.
    pub failures: Vec<FailedGrab>,
    /// The hosts with the most of the latest [`GROUPED_FAILURES`] that match. Only on the first page.
    pub hosts: Vec<FailedHost>,
    /// Cursor of the next, earlier page; `None` on the last page.
    pub next: Option<FailureCursor>,
    /// Whether the search ended before it had looked at all failures. It continues on the next page.
    pub is_partial: bool,
}

/// The failures of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedHost {
    /// The host.
    pub host: String,
    /// Their number.
    pub failures: u64,
    /// Number of teams.
    pub teams: u64,
    /// The most frequent reason.
    pub reason: FailureReason,
}

/// A page of the failed grabs that match, latest first, optionally only those before a cursor.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "operator.list_failures", skip_all)]
pub async fn list_failures(
    core: &Core,
    _: &Operator,
    search: &FailureSearch,
    before: Option<FailureCursor>,
) -> Result<FailuresOutcome, Error> {
    let FailureSearch { team, reason, cause, day } = search;
    let teams = match MatchedTeams::find(core, team).await? {
        MatchedTeams::All => None,
        MatchedTeams::Some(teams) => Some(teams),
        MatchedTeams::TooMany => return Ok(FailuresOutcome::TooManyTeams),
    };
    let (since, until) = bounds(*day);
    let filter = FailureFilter { teams, reason: *reason, cause: *cause, since, until };
    // One more row shows whether there is another page.
    let limit = if before.is_some() { PAGE + 1 } else { GROUPED_FAILURES };
    let FoundFailures { mut failures, searched_to } = core.store.operator().list_failed(&filter, before, limit).await?;
    let hosts = if before.is_some() { Vec::new() } else { by_host(&failures) };
    let page = usize::try_from(PAGE).unwrap_or(usize::MAX);
    let has_more = failures.len() > page;
    failures.truncate(page);
    let last = failures.last().filter(|_| has_more);
    let next = last.map(|last| FailureCursor { at: last.finished_at, grab: last.grab });
    let is_partial = next.is_none() && searched_to.is_some();
    Ok(FailuresOutcome::Page(FailuresPage { failures, hosts, next: next.or(searched_to), is_partial }))
}

/// The hosts with the most failures.
fn by_host(failures: &[FailedGrab]) -> Vec<FailedHost> {
    #[derive(Default)]
    struct Group {
        teams: BTreeSet<TeamId>,
        reasons: BTreeMap<&'static str, (u64, Option<FailureReason>)>,
        failures: u64,
    }
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for failure in failures {
        let group = groups.entry(failure.host.to_string()).or_default();
        group.failures += 1;
        group.teams.insert(failure.team);
        let (count, reason) = group.reasons.entry(failure.reason.code().as_str()).or_default();
        *count += 1;
        *reason = Some(failure.reason);
    }
    let host = |(host, Group { teams, reasons, failures }): (String, Group)| {
        let most = reasons.into_values().max_by_key(|(count, _)| *count);
        let teams = u64::try_from(teams.len()).unwrap_or(u64::MAX);
        most.and_then(|(_, reason)| reason).map(|reason| FailedHost { host, failures, teams, reason })
    };
    let mut hosts: Vec<FailedHost> = groups.into_iter().filter_map(host).collect();
    hosts.sort_by(|a, b| b.failures.cmp(&a.failures).then_with(|| a.host.cmp(&b.host)));
    hosts.truncate(HOSTS);
    hosts
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;
    use grabd_domain::ids::GrabId;
    use grabd_domain::target::TargetHost;
    use uuid::Uuid;

    use super::*;

    fn failure(host: &str, team: u128, reason: FailureReason) -> FailedGrab {
        FailedGrab {
            grab: GrabId(Uuid::nil()),
            team: TeamId(Uuid::from_u128(team)),
            team_name: String::new(),
            reason,
            cause: reason.cause(),
            host: TargetHost::Name(host.to_owned()),
            session: None,
            attempts: 1,
            finished_at: Timestamp::from_ms(0),
        }
    }

    #[test]
    fn failures_are_grouped_by_host_most_first() {
        use FailureReason::{InternalError, RenderBlocked, RenderFailed};
        let failures = [
            failure("b.example", 1, RenderFailed),
            failure("a.example", 1, RenderBlocked),
            failure("c.example", 1, InternalError),
            failure("b.example", 2, RenderBlocked),
            failure("b.example", 1, RenderBlocked),
        ];
        let hosts = by_host(&failures);
        let seen: Vec<_> = hosts.iter().map(|of| (of.host.as_str(), of.failures, of.teams, of.reason)).collect();
        let expected = [
            ("b.example", 3, 2, RenderBlocked),
            ("a.example", 1, 1, RenderBlocked),
            ("c.example", 1, 1, InternalError),
        ];
        assert_eq!(seen, expected);
        let many: Vec<FailedGrab> = (0..30).map(|n| failure(&format!("{n}.example"), 1, RenderFailed)).collect();
        assert_eq!(by_host(&many).len(), HOSTS);
    }
}

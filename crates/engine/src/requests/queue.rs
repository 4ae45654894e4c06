//! The requests that wait to be written. Each team has places of its own, so that no team keeps out those of others.

use std::collections::HashMap;

use grabd_domain::ids::TeamId;
use grabd_store::requests::ApiRequest;
use parking_lot::Mutex;

use super::written::{TeamAndKind, Written};

/// Refused requests of one team that wait at a time, and as many accepted ones. They are written every second.
pub const WAITING_PER_TEAM: u32 = 25;
/// All requests that wait at a time: about 500 kB.
const WAITING: usize = 500;

/// The requests that wait to be written.
#[derive(Default)]
pub(crate) struct RequestQueue {
    waiting: Mutex<Waiting>,
    written: Mutex<Written>,
}

#[derive(Default)]
struct Waiting {
    requests: Vec<ApiRequest>,
    teams: HashMap<TeamId, OfTeam>,
}

#[derive(Default)]
struct OfTeam {
    refused: u32,
    accepted: u32,
    /// Requests that found no place.
    omitted: u32,
}

impl RequestQueue {
    /// Adds a request. Returns `false` if there is no place for it.
    pub(crate) fn push(&self, request: ApiRequest) -> bool {
        let mut waiting = self.waiting.lock();
        let Waiting { requests, teams } = &mut *waiting;
        let is_full = requests.len() >= WAITING;
        // A full queue has no more teams than requests.
        if is_full && !teams.contains_key(&request.team) {
            return false;
        }
        let team = teams.entry(request.team).or_default();
        let count = if request.is_refused() { &mut team.refused } else { &mut team.accepted };
        if is_full || *count >= WAITING_PER_TEAM {
            team.omitted = team.omitted.saturating_add(1);
            return false;
        }
        *count += 1;
        requests.push(request);
        true
    }

    /// Takes all requests, oldest first. The last one of each team has the number of those that found no place.
    pub(crate) fn take(&self) -> Vec<ApiRequest> {
        let Waiting { mut requests, mut teams } = std::mem::take(&mut *self.waiting.lock());
        for request in requests.iter_mut().rev() {
            if let Some(team) = teams.remove(&request.team) {
                request.omitted = team.omitted;
            }
        }
        requests
    }

    /// Counts requests that were written. Returns the teams and kinds of which old ones must be deleted now.
    pub(super) fn count_written(&self, requests: &[TeamAndKind]) -> Vec<TeamAndKind> {
        self.written.lock().add(requests)
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;
    use grabd_domain::credentials::{Environment, Principal};
    use grabd_domain::ids::{ApiRequestId, KeyId};
    use uuid::Uuid;

    use super::*;

    fn request(team: u128, number: u128, status: u16) -> ApiRequest {
        ApiRequest {
            id: ApiRequestId(Uuid::from_u128(number)),
            team: TeamId(Uuid::from_u128(team)),
            at: Timestamp::from_ms(1),
            environment: Environment::Test,
            principal: Principal::Key(KeyId(Uuid::nil())),
            request_id: None,
            method: "POST".to_owned(),
            path: "/v1/grabs".to_owned(),
            status,
            code: None,
            message: None,
            host: None,
            options: Vec::new(),
            grab: None,
            latency_ms: 0,
            omitted: 0,
        }
    }

    #[test]
    fn team_fills_only_its_own_places_and_refusals_have_theirs() {
        let queue = RequestQueue::default();
        let places = u128::from(WAITING_PER_TEAM);
        assert!((0..places).all(|number| queue.push(request(1, number, 202))));
        assert!(!queue.push(request(1, places, 202)) && !queue.push(request(1, places, 200)));
        assert!(queue.push(request(1, places + 1, 429)), "refusals have places of their own");
        assert!(queue.push(request(2, places + 2, 202)), "so have other teams");
        let taken = queue.take();
        let omitted: Vec<_> = taken.iter().filter(|request| request.omitted > 0).collect();
        assert_eq!((taken.len(), omitted.len()), (27, 1));
        assert_eq!((omitted[0].omitted, omitted[0].status), (2, 429), "the last request of the team has the number");
        assert!(queue.take().is_empty());
        assert!(queue.push(request(1, 99, 202)), "the places are free again");
        assert_eq!(queue.take()[0].omitted, 0);
    }

    #[test]
    fn queue_is_bounded_for_all_teams_together() {
        let queue = RequestQueue::default();
        let accepted = (0..2000).filter(|team| queue.push(request(*team, *team, 400))).count();
        assert_eq!((accepted, queue.waiting.lock().teams.len()), (WAITING, WAITING));
        assert!(!queue.push(request(0, 9999, 400)), "also for teams that have places left");
        let taken = queue.take();
        assert_eq!((taken.len(), taken[0].omitted, taken[1].omitted), (WAITING, 1, 0));
    }
}

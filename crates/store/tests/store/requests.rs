//! Recorded API requests: written in batches, listed for one team, and deleted by age, by number and with the team.

use std::time::Duration;

use grabd_domain::credentials::{Environment, Principal};
use grabd_domain::ids::{ApiRequestId, GrantId, KeyId, TeamId};
use grabd_domain::{Day, Timestamp};
use grabd_store::requests::{ApiRequest, REQUESTS_KEPT, RequestFilter, RequestOutcome};
use uuid::Uuid;

use crate::harness::{NOW, TestDb, on_both};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn id_at(db: &TestDb, at: Timestamp) -> ApiRequestId {
    let ms = u128::try_from(at.as_ms()).unwrap();
    // The test's ids have their counter in the upper half.
    ApiRequestId(Uuid::from_u128(ms << 80 | db.id().as_u128() >> 64))
}

/// A refused request of a key.
fn refused(db: &TestDb, team: TeamId, at: Timestamp) -> ApiRequest {
    ApiRequest {
        id: id_at(db, at),
        team,
        at,
        environment: Environment::Live,
        principal: Principal::Key(KeyId(db.id())),
        request_id: Some("id-of-the-caller".into()),
        method: "POST".into(),
        path: "/v1/grabs".into(),
        status: 400,
        code: Some("invalid_viewport".into()),
        message: Some("`width` must be an integer from 320 to 1920; got 100.".into()),
        host: Some("example.com".into()),
        options: vec!["width".into(), "headers".into()],
        grab: None,
        latency_ms: 12,
        omitted: 3,
    }
}

fn accepted(db: &TestDb, team: TeamId, at: Timestamp) -> ApiRequest {
    let refused = refused(db, team, at);
    ApiRequest { status: 202, code: None, message: None, options: Vec::new(), request_id: None, omitted: 0, ..refused }
}

async fn list(db: &TestDb, team: TeamId, filter: RequestFilter) -> Vec<ApiRequest> {
    db.store.requests().list_requests(team, &filter, None, 100).await.unwrap()
}

async fn record(db: &TestDb, requests: &[ApiRequest]) {
    db.store.requests().record_requests(requests.to_vec()).await.unwrap();
}

on_both! {
    async fn requests_are_listed_for_their_team_only_newest_first_and_in_pages(db) {
        let (team, other) = (db.team(0).await, db.team(0).await);
        let mut own: Vec<_> = (0..5).map(|second| refused(db, team, NOW + Duration::from_secs(second))).collect();
        let foreign = accepted(db, other, NOW);
        record(db, &[own.as_slice(), std::slice::from_ref(&foreign)].concat()).await;
        record(db, &[]).await;
        own.reverse();
        assert_eq!(list(db, team, RequestFilter::default()).await, own);
        assert_eq!(list(db, other, RequestFilter::default()).await, std::slice::from_ref(&foreign));
        let page = db.store.requests().list_requests(team, &RequestFilter::default(), Some(own[1].id), 2).await.unwrap();
        assert_eq!(page, own[2..4]);

        assert_eq!(db.store.requests().find_request(team, own[0].id).await.unwrap(), Some(own[0].clone()));
        assert_eq!(db.store.requests().find_request(team, foreign.id).await.unwrap(), None);
        assert_eq!(db.store.requests().find_request(other, own[0].id).await.unwrap(), None);
    }

    async fn batches_of_any_size_are_complete(db) {
        let team = db.team(0).await;
        for size in [1, 2, 3, 63, 64, 65, 100] {
            let batch: Vec<_> = (0..size).map(|_| accepted(db, team, NOW + Duration::from_secs(size))).collect();
            record(db, &batch).await;
            let listed = db.store.requests().list_requests(team, &RequestFilter::default(), None, 1000).await.unwrap();
            let of_batch = listed.iter().filter(|request| request.at == NOW + Duration::from_secs(size)).count();
            assert_eq!(of_batch, batch.len());
        }
    }

    async fn filters_select_by_caller_outcome_code_day_and_request_id(db) {
        let team = db.team(0).await;
        let grant = GrantId(db.id());
        let old = ApiRequest { principal: Principal::Grant(grant), ..accepted(db, team, NOW - DAY) };
        let bad = refused(db, team, NOW);
        let failed = ApiRequest {
            status: 500,
            code: Some("render_failed".into()),
            request_id: Some("another".into()),
            ..refused(db, team, NOW + Duration::from_millis(1))
        };
        record(db, &[old.clone(), bad.clone(), failed.clone()]).await;
        let all = RequestFilter::default;
        for (filter, expected) in [
            (RequestFilter { principal: Some(Principal::Grant(grant)), ..all() }, &old),
            (RequestFilter { principal: Some(bad.principal), ..all() }, &bad),
            (RequestFilter { outcome: Some(RequestOutcome::Accepted), ..all() }, &old),
            (RequestFilter { outcome: Some(RequestOutcome::Refused), ..all() }, &bad),
            (RequestFilter { outcome: Some(RequestOutcome::Failed), ..all() }, &failed),
            (RequestFilter { code: Some("render_failed".into()), ..all() }, &failed),
            (RequestFilter { day: Some(Day::of(NOW - DAY)), ..all() }, &old),
            (RequestFilter { request_id: Some("another".into()), ..all() }, &failed),
        ] {
            assert_eq!(list(db, team, filter.clone()).await, std::slice::from_ref(expected), "{filter:?}");
        }
        let nothing = RequestFilter { day: Some(Day::of(NOW + DAY)), ..all() };
        assert_eq!(list(db, team, nothing).await, []);
        assert!(db.store.requests().app_names(team, &[grant]).await.unwrap().is_empty(), "the grant does not exist");
    }

    async fn only_the_newest_of_a_day_are_kept_refused_and_accepted_apart(db) {
        let (team, other) = (db.team(0).await, db.team(0).await);
        let at = |second: u64| NOW + Duration::from_secs(second);
        let mut requests: Vec<_> = (0..6).map(|second| refused(db, team, at(second))).collect();
        requests.push(accepted(db, team, at(0)));
        requests.push(refused(db, team, NOW - DAY));
        requests.push(refused(db, other, at(0)));
        record(db, &requests).await;
        let trim = |is_refused, kept| db.store.requests().trim_requests(team, is_refused, Day::of(NOW), kept);
        assert_eq!((trim(true, 6).await.unwrap(), trim(false, 6).await.unwrap()), (0, 0));
        assert_eq!(trim(true, 2).await.unwrap(), 4);
        let left = list(db, team, RequestFilter::default()).await;
        let expected = [&requests[5], &requests[4], &requests[6], &requests[7]];
        assert_eq!(left.iter().collect::<Vec<_>>(), expected);
        assert_eq!(list(db, other, RequestFilter::default()).await.len(), 1);
    }

    async fn old_requests_are_purged_in_batches(db) {
        let team = db.team(0).await;
        let old: Vec<_> = (1..4).map(|ms| refused(db, team, NOW - REQUESTS_KEPT - Duration::from_millis(ms))).collect();
        let kept = refused(db, team, NOW - REQUESTS_KEPT);
        record(db, &old).await;
        record(db, std::slice::from_ref(&kept)).await;
        assert_eq!(db.store.requests().purge_requests(NOW, 2).await.unwrap(), 2);
        assert_eq!(db.store.requests().purge_requests(NOW, 2).await.unwrap(), 1);
        assert_eq!(db.store.requests().purge_requests(NOW, 2).await.unwrap(), 0);
        assert_eq!(list(db, team, RequestFilter::default()).await, [kept]);
    }

    async fn requests_are_erased_with_their_team_and_not_recorded_afterwards(db) {
        let (ada, team) = db.owned_team("ada@example.com").await;
        let other = db.team(0).await;
        let requests: Vec<_> = (0..3).map(|second| refused(db, team, NOW + Duration::from_secs(second))).collect();
        record(db, &requests).await;
        db.store.retention().delete_team(team, Some(ada), NOW).await.unwrap().unwrap();
        assert!(db.store.retention().erase_team(team, NOW, 2).await.unwrap());
        assert!(!db.store.retention().erase_team(team, NOW, 2).await.unwrap());
        assert_eq!(list(db, team, RequestFilter::default()).await, []);
        let (late, foreign) = (refused(db, team, NOW), refused(db, other, NOW));
        record(db, &[late, foreign.clone()]).await;
        assert_eq!(list(db, team, RequestFilter::default()).await, []);
        assert_eq!(list(db, other, RequestFilter::default()).await, [foreign]);
    }
}

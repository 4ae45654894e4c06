//! Grab lists, counts and access.

use std::time::Duration;

use grabd_domain::credentials::Environment::{Live, Test};
use grabd_domain::credentials::Principal;
use grabd_domain::grabs::{Class, ImageKey, State, Status};
use grabd_domain::ids::{GrabId, KeyId, TeamId};
use grabd_store::grabs::{Cursor, FailureSource, GrabCounts, NewPlaceholder, PageRequest};

use crate::harness::{NOW, TestDb, completion, facts, failing, on_both, spec};

fn page(limit: u32, cursor: Option<Cursor>) -> PageRequest {
    PageRequest { limit, status: None, cursor, ..PageRequest::default() }
}

async fn listed(db: &TestDb, team: TeamId, page: PageRequest) -> (Vec<GrabId>, bool) {
    let listed = db.store.grabs().list_grabs(team, Live, page).await.unwrap().expect("known cursor");
    (listed.grabs.iter().map(|grab| grab.id).collect(), listed.has_more)
}

/// Creates grabs at these seconds and returns them in list order.
async fn history(db: &TestDb, team: TeamId, seconds: &[u64]) -> Vec<GrabId> {
    let mut grabs = Vec::new();
    for second in seconds {
        let mut new = db.new_grab(team, Class::Sync);
        new.now = NOW + Duration::from_secs(*second);
        grabs.push((new.now, new.id));
        db.store.grabs().create(new).await.unwrap();
    }
    grabs.sort_unstable();
    grabs.into_iter().rev().map(|(_, id)| id).collect()
}

async fn placeholder(db: &TestDb, team: TeamId) -> GrabId {
    let id = GrabId(db.id());
    let image = Some(ImageKey::new(id.0.as_u128(), "png"));
    let outcome = State::Done { finished_at: NOW, image, size_bytes: 1, execution_ms: 1, metadata: facts() };
    let new = NewPlaceholder {
        id,
        team,
        creator: None,
        spec: spec(),
        now: NOW,
        outcome,
        idempotency: None,
        fingerprint: None,
        ceiling: None,
    };
    db.store.grabs().create_placeholder(new).await.unwrap();
    id
}

on_both! {
    async fn list_pages_forward_and_backward(db) {
        let team = db.team(20).await;
        // Out of order, and some with equal creation times.
        let all = history(db, team, &[5, 1, 3, 3, 3, 2, 9]).await;
        let (first, more) = listed(db, team, page(3, None)).await;
        assert_eq!((&first[..], more), (&all[..3], true));
        let (second, more) = listed(db, team, page(3, Some(Cursor::After(first[2])))).await;
        assert_eq!((&second[..], more), (&all[3..6], true));
        let (third, more) = listed(db, team, page(3, Some(Cursor::After(second[2])))).await;
        assert_eq!((&third[..], more), (&all[6..], false));
        let (none, more) = listed(db, team, page(3, Some(Cursor::After(all[6])))).await;
        assert_eq!((none, more), (Vec::new(), false));

        let (up, more) = listed(db, team, page(3, Some(Cursor::Before(all[6])))).await;
        assert_eq!((&up[..], more), (&all[3..6], true));
        let (up, more) = listed(db, team, page(3, Some(Cursor::Before(all[3])))).await;
        assert_eq!((&up[..], more), (&all[..3], false));
        let (exact, more) = listed(db, team, page(7, None)).await;
        assert_eq!((&exact[..], more), (&all[..], false));
    }

    async fn list_of_the_oldest_grabs_pages_in_both_directions(db) {
        let team = db.team(20).await;
        let mut all = history(db, team, &[5, 1, 3, 3, 3, 2, 9]).await;
        all.reverse();
        let oldest = |limit, cursor| PageRequest { oldest_first: true, ..page(limit, cursor) };
        let (first, more) = listed(db, team, oldest(3, None)).await;
        assert_eq!((&first[..], more), (&all[..3], true));
        let (rest, more) = listed(db, team, oldest(9, Some(Cursor::After(all[2])))).await;
        assert_eq!((&rest[..], more), (&all[3..], false));
        let (back, more) = listed(db, team, oldest(2, Some(Cursor::Before(all[4])))).await;
        assert_eq!((&back[..], more), (&all[2..4], true));
    }

    async fn pages_are_stable_when_grabs_are_added(db) {
        let team = db.team(20).await;
        let all = history(db, team, &[1, 2, 3, 4]).await;
        let (first, _) = listed(db, team, page(2, None)).await;
        history(db, team, &[8, 9]).await;
        let (second, more) = listed(db, team, page(2, Some(Cursor::After(first[1])))).await;
        assert_eq!((&second[..], more), (&all[2..], false));
    }

    async fn list_filters_by_each_status(db) {
        let team = db.team(20).await;
        let done = db.leased(team).await;
        db.store.grabs().complete(completion(&done)).await.unwrap().unwrap();
        let failed = db.leased(team).await;
        db.store.grabs().fail(failing(failed.grab, FailureSource::Lease(failed.token), NOW)).await.unwrap().unwrap();
        let processing = db.leased(team).await.grab;
        let pending = [db.pending(team).await, db.pending(team).await];
        let expected = [
            (Status::Done, vec![done.grab]),
            (Status::Failed, vec![failed.grab]),
            (Status::Processing, vec![processing]),
            (Status::Pending, vec![pending[1], pending[0]]),
        ];
        for (status, grabs) in expected {
            let only = PageRequest { status: Some(status), ..page(9, None) };
            assert_eq!(listed(db, team, only).await, (grabs.clone(), false), "{status:?}");
            let found = db.store.grabs().find_grabs(&grabs).await.unwrap();
            assert!(found.iter().all(|grab| grab.status() == status));
            let one = PageRequest { limit: 1, ..only };
            assert_eq!(listed(db, team, one).await, (vec![grabs[0]], grabs.len() > 1));
            let after = PageRequest { cursor: Some(Cursor::After(grabs[0])), ..only };
            assert_eq!(listed(db, team, after).await, (grabs[1..].to_vec(), false));
        }
    }

    async fn list_can_be_limited_to_a_key(db) {
        let team = db.team(20).await;
        let keys = [KeyId(db.id()), KeyId(db.id())];
        let mut grabs = Vec::new();
        for (second, key) in (0..).zip([Some(keys[0]), Some(keys[1]), None, Some(keys[0])]) {
            let mut new = db.new_grab(team, Class::Sync);
            (new.now, new.creator) = (NOW + Duration::from_secs(second), key.map(Principal::Key));
            grabs.push(new.id);
            db.store.grabs().create(new).await.unwrap();
        }
        let only = |key| PageRequest { key: Some(key), ..page(9, None) };
        assert_eq!(listed(db, team, only(keys[0])).await, (vec![grabs[3], grabs[0]], false));
        assert_eq!(listed(db, team, only(keys[1])).await, (vec![grabs[1]], false));
        let after = PageRequest { cursor: Some(Cursor::After(grabs[2])), ..only(keys[0]) };
        assert_eq!(listed(db, team, after).await, (vec![grabs[0]], false));
        // Keys of other teams find nothing.
        let other = db.team(20).await;
        assert_eq!(listed(db, other, only(keys[0])).await, (vec![], false));
    }

    async fn list_can_be_limited_to_a_period(db) {
        let team = db.team(20).await;
        let all = history(db, team, &[1, 2, 3, 4, 5]).await;
        let at = |seconds| Some(NOW + Duration::from_secs(seconds));
        for (from, before, expected) in [
            (at(2), None, &all[..4]),
            (None, at(4), &all[2..]),
            (at(2), at(4), &all[2..4]),
            (at(6), None, &[]),
        ] {
            let period = PageRequest { from, before, ..page(9, None) };
            assert_eq!(listed(db, team, period).await, (expected.to_vec(), false), "{from:?} {before:?}");
        }
        let rest = PageRequest { from: at(2), ..page(9, Some(Cursor::After(all[1]))) };
        assert_eq!(listed(db, team, rest).await, (all[2..4].to_vec(), false));
    }

    async fn grabs_of_other_teams_and_environments_are_invisible(db) {
        let (team, other) = (db.team(5).await, db.team(5).await);
        let mine = db.pending(team).await;
        let theirs = db.pending(other).await;
        let test = placeholder(db, team).await;
        assert!(db.store.grabs().find_grab(team, Live, mine).await.unwrap().is_some());
        for (environment, id) in [(Live, theirs), (Test, mine), (Live, test), (Live, GrabId(db.id()))] {
            assert_eq!(db.store.grabs().find_grab(team, environment, id).await.unwrap(), None);
            for cursor in [Cursor::After(id), Cursor::Before(id)] {
                assert_eq!(db.store.grabs().list_grabs(team, environment, page(9, Some(cursor))).await.unwrap(), None);
            }
        }
        assert_eq!(listed(db, team, page(9, None)).await, (vec![mine], false));
        let tests = db.store.grabs().list_grabs(team, Test, page(9, None)).await.unwrap().unwrap();
        assert_eq!(tests.grabs.iter().map(|grab| grab.id).collect::<Vec<_>>(), [test]);
        let open = PageRequest { status: Some(Status::Pending), ..page(9, None) };
        assert_eq!(db.store.grabs().list_grabs(team, Test, open).await.unwrap().unwrap().grabs, []);
    }

    async fn count_grabs_counts_one_team_since_a_time(db) {
        let (team, other) = (db.team(9).await, db.team(9).await);
        history(db, team, &[1, 5, 6]).await;
        history(db, other, &[5]).await;
        placeholder(db, team).await;
        let since = |seconds| NOW + Duration::from_secs(seconds);
        let count = |from| db.store.grabs().count_grabs(team, from);
        assert_eq!(count(since(0)).await.unwrap(), GrabCounts { all: 4, live: 3 });
        assert_eq!(count(since(5)).await.unwrap(), GrabCounts { all: 2, live: 2 });
        assert_eq!(count(since(7)).await.unwrap(), GrabCounts::default());
    }

    async fn find_grabs_reads_many_grabs(db) {
        let team = db.team(40).await;
        let mut ids = history(db, team, &[1; 33]).await;
        ids.sort_unstable();
        let mut found: Vec<_> = db.store.grabs().find_grabs(&ids).await.unwrap().iter().map(|grab| grab.id).collect();
        found.sort_unstable();
        assert_eq!(found, ids);
        assert_eq!(db.store.grabs().find_grabs(&[]).await.unwrap(), []);
    }
}

//! Pages of grabs, counts, and whose they are.

use std::time::Duration;

use grabd_domain::credentials::Environment::{Live, Test};
use grabd_domain::grabs::{Class, ImageKey, State, Status};
use grabd_domain::ids::{GrabId, TeamId};
use grabd_store::{By, Cursor, GrabCounts, NewPlaceholder, Page};

use crate::harness::{NOW, World, completion, facts, failing, on_both, spec};

fn page(limit: u32, cursor: Option<Cursor>) -> Page {
    Page { limit, status: None, cursor }
}

async fn listed(world: &World, team: TeamId, page: Page) -> (Vec<GrabId>, bool) {
    let listed = world.store.list_grabs(team, Live, page).await.unwrap().expect("the cursor is known");
    (listed.grabs.iter().map(|grab| grab.id).collect(), listed.has_more)
}

/// Grabs at these seconds, in the order of the list.
async fn history(world: &World, team: TeamId, seconds: &[u64]) -> Vec<GrabId> {
    let mut grabs = Vec::new();
    for second in seconds {
        let mut new = world.new_grab(team, Class::Sync);
        new.now = NOW + Duration::from_secs(*second);
        grabs.push((new.now, new.id));
        world.store.create(new).await.unwrap();
    }
    grabs.sort_unstable();
    grabs.into_iter().rev().map(|(_, id)| id).collect()
}

async fn placeholder(world: &World, team: TeamId) -> GrabId {
    let id = GrabId(world.id());
    let image = Some(ImageKey::new(id.0.as_u128(), "png"));
    let outcome = State::Done { finished_at: NOW, image, size_bytes: 1, execution_ms: 1, facts: facts() };
    let new = NewPlaceholder { id, team, spec: spec(), now: NOW, outcome, idempotency: None };
    world.store.create_placeholder(new).await.unwrap();
    id
}

on_both! {
    async fn pages_go_down_the_list_and_up_again(world) {
        let team = world.team(20).await;
        // Out of order, and some in the same millisecond.
        let all = history(world, team, &[5, 1, 3, 3, 3, 2, 9]).await;
        let (first, more) = listed(world, team, page(3, None)).await;
        assert_eq!((&first[..], more), (&all[..3], true));
        let (second, more) = listed(world, team, page(3, Some(Cursor::After(first[2])))).await;
        assert_eq!((&second[..], more), (&all[3..6], true));
        let (third, more) = listed(world, team, page(3, Some(Cursor::After(second[2])))).await;
        assert_eq!((&third[..], more), (&all[6..], false));
        let (none, more) = listed(world, team, page(3, Some(Cursor::After(all[6])))).await;
        assert_eq!((none, more), (Vec::new(), false));

        let (up, more) = listed(world, team, page(3, Some(Cursor::Before(all[6])))).await;
        assert_eq!((&up[..], more), (&all[3..6], true));
        let (up, more) = listed(world, team, page(3, Some(Cursor::Before(all[3])))).await;
        assert_eq!((&up[..], more), (&all[..3], false));
        let (exact, more) = listed(world, team, page(7, None)).await;
        assert_eq!((&exact[..], more), (&all[..], false));
    }

    async fn pages_do_not_shift_under_new_grabs(world) {
        let team = world.team(20).await;
        let all = history(world, team, &[1, 2, 3, 4]).await;
        let (first, _) = listed(world, team, page(2, None)).await;
        history(world, team, &[8, 9]).await;
        let (second, more) = listed(world, team, page(2, Some(Cursor::After(first[1])))).await;
        assert_eq!((&second[..], more), (&all[2..], false));
    }

    async fn a_status_is_found_whatever_the_job_says(world) {
        let team = world.team(20).await;
        let done = world.leased(team).await;
        world.store.complete(completion(&done)).await.unwrap().unwrap();
        let failed = world.leased(team).await;
        world.store.fail(failing(failed.grab, By::Lease(failed.token), NOW)).await.unwrap().unwrap();
        let processing = world.leased(team).await.grab;
        let pending = [world.pending(team).await, world.pending(team).await];
        let expected = [
            (Status::Done, vec![done.grab]),
            (Status::Failed, vec![failed.grab]),
            (Status::Processing, vec![processing]),
            (Status::Pending, vec![pending[1], pending[0]]),
        ];
        for (status, grabs) in expected {
            let only = Page { status: Some(status), ..page(9, None) };
            assert_eq!(listed(world, team, only).await, (grabs.clone(), false), "{status:?}");
            let found = world.store.find_grabs(&grabs).await.unwrap();
            assert!(found.iter().all(|grab| grab.status() == status));
            let one = Page { limit: 1, ..only };
            assert_eq!(listed(world, team, one).await, (vec![grabs[0]], grabs.len() > 1));
            let after = Page { cursor: Some(Cursor::After(grabs[0])), ..only };
            assert_eq!(listed(world, team, after).await, (grabs[1..].to_vec(), false));
        }
    }

    async fn nobody_sees_what_is_not_theirs(world) {
        let (team, other) = (world.team(5).await, world.team(5).await);
        let mine = world.pending(team).await;
        let theirs = world.pending(other).await;
        let test = placeholder(world, team).await;
        assert!(world.store.find_grab(team, Live, mine).await.unwrap().is_some());
        for (environment, id) in [(Live, theirs), (Test, mine), (Live, test), (Live, GrabId(world.id()))] {
            assert_eq!(world.store.find_grab(team, environment, id).await.unwrap(), None);
            for cursor in [Cursor::After(id), Cursor::Before(id)] {
                assert_eq!(world.store.list_grabs(team, environment, page(9, Some(cursor))).await.unwrap(), None);
            }
        }
        assert_eq!(listed(world, team, page(9, None)).await, (vec![mine], false));
        let tests = world.store.list_grabs(team, Test, page(9, None)).await.unwrap().unwrap();
        assert_eq!(tests.grabs.iter().map(|grab| grab.id).collect::<Vec<_>>(), [test]);
        let open = Page { status: Some(Status::Pending), ..page(9, None) };
        assert_eq!(world.store.list_grabs(team, Test, open).await.unwrap().unwrap().grabs, []);
    }

    async fn counts_are_of_one_team_since_a_time(world) {
        let (team, other) = (world.team(9).await, world.team(9).await);
        history(world, team, &[1, 5, 6]).await;
        history(world, other, &[5]).await;
        placeholder(world, team).await;
        let since = |seconds| NOW + Duration::from_secs(seconds);
        let count = |from| world.store.count_grabs(team, from);
        assert_eq!(count(since(0)).await.unwrap(), GrabCounts { all: 4, live: 3 });
        assert_eq!(count(since(5)).await.unwrap(), GrabCounts { all: 2, live: 2 });
        assert_eq!(count(since(7)).await.unwrap(), GrabCounts::default());
    }

    async fn many_watched_grabs_are_read_at_once(world) {
        let team = world.team(40).await;
        let mut ids = history(world, team, &[1; 33]).await;
        ids.sort_unstable();
        let mut found: Vec<_> = world.store.find_grabs(&ids).await.unwrap().iter().map(|grab| grab.id).collect();
        found.sort_unstable();
        assert_eq!(found, ids);
        assert_eq!(world.store.find_grabs(&[]).await.unwrap(), []);
    }
}

//! Nothing is lost and nobody pays twice, whenever the service dies.
//!
//! Customers go on asking while lives of the service come and go; `customer` judges every answer at once, `books` looks
//! at the sums and `tables` at single rows all the time, and `judge` looks at everything when it is quiet, at `messages`
//! too. The real binary is killed at random, or at a named step of `steps`; it is `target/debug/grabd`, which
//! `cargo build -p grabd` and every build of the workspace make.
//!
//! What is left to chance is decided by a seed, which each run prints: `GRABD_TEST_SEED` repeats it, as far as the
//! machine is as fast. A run of the suite is short; `GRABD_TEST_LIVES` is for a longer one, as many lives of each of the
//! two runs of chance, which the suite's runner would end for its length:
//!
//! ```text
//! GRABD_TEST_LIVES=100 cargo test -p grabd-tests --test it -- --nocapture nothing_is_lost
//! ```

mod books;
mod chance;
mod customer;
mod judge;
mod life;
mod messages;
mod steps;
mod tables;
mod world;

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use tokio::time::{interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use chance::Chance;
use customer::Page;
use life::{Began, Life, SLOTS, fired};
use steps::{STEPS, die_at, pairs};
use tables::Tables;
use world::World;

/// The longest a whole run may take, and what each life beyond the usual ones adds to it.
const LIMIT: Duration = Duration::from_secs(115);
const FURTHER_LIFE: Duration = Duration::from_secs(12);
/// How many lives a run of chance has, unless `GRABD_TEST_LIVES` has another number.
const LIVES: u32 = 5;
/// How much of the run each life has: on a machine that is slow, what is left over has to wait for another run.
const SHARE: Duration = Duration::from_secs(4);
/// The longest a life goes on that was to be killed after some ends.
const LIFE: Duration = Duration::from_secs(3);
/// How many customers ask at once, and how many of their grabs must not have ended when the service is killed.
const CUSTOMERS: usize = 50;
const IN_FLIGHT: i64 = 40;
/// How many ask where the step decides, and not the crowd.
const FEW: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn when_it_is_killed_at_any_moment() -> Result<()> {
    let length = Length::of_run()?;
    let mut chance = Chance::of_run()?;
    // Three teams that can pay for all they ask, and three whose lots run out.
    let rich = 2000 + 200 * length.lives;
    let world = World::new(&[rich, rich, rich, 150, 40, 5]).await?;
    let mut moments = chance.fork();
    let lives = async |world: &World| {
        for number in 0..length.lives {
            if length.is_over(world, number) {
                break;
            }
            let life = world.begin("").await?;
            in_flight(world).await?;
            let ends = usize::try_from(moments.next() % 40)?;
            // However slow the machine is: the moment is chance anyhow.
            let _ = timeout(LIFE, world.grabs_end(ends)).await;
            // The moment is what is random here.
            sleep(moments.ms(0..200)).await;
            world.kill(life).await?;
        }
        Ok(())
    };
    run(&world, length.limit, CUSTOMERS, chance, lives).await?;
    // Every attempt that was lost was under way when the service was killed, or it was given back.
    let tables = Tables::open(&world.home).await?;
    let lost = tables.lost_attempts().await?;
    let most = i64::from(length.lives * SLOTS) + i64::try_from(world.times_said("a render was given back"))?;
    println!("{lost} attempts were lost");
    ensure!(lost <= most, "{lost} attempts were lost, of {most} that may have been under way");
    tables.close().await
}

/// How long a run of chance is.
struct Length {
    lives: u32,
    limit: Duration,
}

impl Length {
    fn of_run() -> Result<Self> {
        let lives = match std::env::var_os("GRABD_TEST_LIVES") {
            Some(lives) => lives.to_string_lossy().parse().context("GRABD_TEST_LIVES")?,
            None => LIVES,
        };
        Ok(Self { lives, limit: LIMIT + FURTHER_LIFE * lives.saturating_sub(LIVES) })
    }

    /// Has the run no time for the life of this number any more?
    fn is_over(&self, world: &World, number: u32) -> bool {
        let is_over = world.age() > SHARE * self.lives;
        if is_over {
            println!("{} {number} lives instead of {}", world.clock(), self.lives);
        }
        is_over
    }
}

/// Waits until as many grabs as wanted have not ended.
async fn in_flight(world: &World) -> Result<()> {
    let tables = Tables::open(&world.home).await?;
    let enough = async {
        let mut look = interval(Duration::from_millis(20));
        loop {
            look.tick().await;
            let open = tables.open_grabs().await?;
            if open >= IN_FLIGHT {
                return Ok::<_, anyhow::Error>(open);
            }
        }
    };
    let open = timeout(LIMIT, enough).await.context("too few grabs are in flight")??;
    println!("{} {open} grabs are in flight", world.clock());
    tables.close().await
}

#[tokio::test(flavor = "multi_thread")]
async fn when_it_dies_at_any_step() -> Result<()> {
    let world = World::new(&[5000, 5000]).await?;
    let lives = async |world: &World| {
        for step in STEPS {
            die_at(world, step).await.with_context(|| step)?;
        }
        Ok(())
    };
    run(&world, LIMIT, FEW, Chance::of_run()?, lives).await
}

#[tokio::test(flavor = "multi_thread")]
async fn when_two_things_go_wrong_with_one_grab() -> Result<()> {
    let length = Length::of_run()?;
    let mut chance = Chance::of_run()?;
    let pairs = pairs(&mut chance);
    let world = World::new(&[5000, 5000]).await?;
    // The grab that the first fault has met has to come to the step of the second.
    world.pages_refuse.store(false, Ordering::SeqCst);
    let lives = async |world: &World| {
        for (number, pair) in (0..length.lives).zip(pairs.iter().cycle()) {
            if length.is_over(world, number) {
                break;
            }
            die_at(world, pair).await.with_context(|| pair.clone())?;
            // Whatever is left from lives that ended in the middle has few tries left, and the first fault of the next
            // pair may take the last of them: then the grab never comes to the step of the second.
            let life = world.begin("").await?;
            world.grabs_end(FEW).await?;
            world.stop(life).await?;
        }
        Ok(())
    };
    run(&world, length.limit, FEW, chance, lives).await
}

#[tokio::test(flavor = "multi_thread")]
async fn when_every_attempt_dies() -> Result<()> {
    let world = World::new(&[1]).await?;
    let (team, page) = (&world.teams[0], Page::Colour([1, 2, 3], 0));
    let life = world.begin("stored=abort").await?;
    let asked = world.asynchronous(team, &page, "given-up").await?;
    world.died(life).await?;
    for _ in 0..2 {
        match world.try_begin("stored=abort").await? {
            Began::Up(life) => world.died(*life).await?,
            Began::Died(said) => ensure!(fired(&said) == 1, "it did not start: {said:?}"),
        }
    }
    // Three pictures lie there, none of which is anybody's.
    let life = world.begin("").await?;
    timeout(LIMIT, world.follow(team, &asked, &page)).await.context("a grab that never ends")??;
    ensure!(world.credits(team).await? == (1, 0), "an attempt of ours was charged: {:?}", world.credits(team).await?);
    world.judge(life).await
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_picture_comes_after_it_was_collected() -> Result<()> {
    // The lease is lost before the page is rendered, and the report hangs until whatever the lost attempt may have stored
    // was deleted. Then it stores a picture, which nobody would look for again.
    let world = World::new(&[1]).await?;
    let life = world.begin("assigned=lose>rendered=14000").await?;
    let (team, page) = (&world.teams[0], Page::Colour([1, 2, 3], 0));
    let asked = world.asynchronous(team, &page, "late").await?;
    let collected = async {
        world.follow(team, &asked, &page).await?;
        let tables = Tables::open(&world.home).await?;
        tables.time_passes().await?;
        tables.nothing_is_owed().await?;
        tables.close().await
    };
    let late = async { tokio::try_join!(collected, world.pictures_lie_there(2)) };
    timeout(LIMIT, late).await.context("a picture that never comes")??;
    world.judge(life).await
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_render_outlives_its_lease() -> Result<()> {
    // The first look at this page is refused; its report hangs until the sweep has called the lease overdue and the
    // second look was begun. It must not count, or the page would have failed.
    let world = World::new(&[1]).await?;
    let life = world.begin("rendered=36500").await?;
    let team = &world.teams[0];
    let outlived = async {
        let asked = world.asynchronous(team, &Page::RefusesOnce("late".into()), "late").await?;
        world.follow(team, &asked, &Page::RefusesOnce("late".into())).await
    };
    timeout(LIMIT, outlived).await.context("a lease that never ends")??;
    world.judge(life).await
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_lost_render_reports_a_failure() -> Result<()> {
    let world = World::new(&[1]).await?;
    let life = world.begin("rendered=lose").await?;
    let team = &world.teams[0];
    let page = Page::RefusesOnce("lost".into());
    let asked = world.asynchronous(team, &page, "lost").await?;
    timeout(LIMIT, world.follow(team, &asked, &page)).await.context("a grab that never ends")??;
    world.judge(life).await
}

/// Customers ask as long as lives come and go; then a last life finishes everything and all is judged.
async fn run(
    world: &World,
    limit: Duration,
    customers: usize,
    mut chance: Chance,
    lives: impl AsyncFnOnce(&World) -> Result<()>,
) -> Result<()> {
    let stop = CancellationToken::new();
    let customers = (0..customers).map(|_| world.customer(chance.fork(), &stop)).collect::<Vec<_>>();
    let asking = async {
        tokio::select! {
            asked = try_join_all(customers) => asked.map(drop),
            broken = world.watch_books() => broken,
            broken = world.watch_tables() => broken,
        }
    };
    let living = async {
        lives(world).await?;
        let last = world.begin("").await?;
        stop.cancel();
        Ok::<Life, anyhow::Error>(last)
    };
    let whole = async {
        let ((), last) = tokio::try_join!(asking, living)?;
        println!("{} everybody has gone home", world.clock());
        world.judge(last).await
    };
    let outcome = timeout(limit, whole).await.context("the run did not end in time").flatten();
    if outcome.is_err() {
        world.print_what_was_said();
    }
    outcome
}

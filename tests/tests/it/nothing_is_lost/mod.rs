//! Nothing is lost and nobody pays twice, whenever the service dies.
//!
//! Customers go on asking while lives of the service come and go; `customer` judges every answer at once, `books` looks
//! at the sums all the time, and `judge` looks at everything when it is quiet. The real binary is killed at random, or
//! at a named step; it is `target/debug/grabd`, which `cargo build -p grabd` and every build of the workspace make.

mod books;
mod chance;
mod customer;
mod judge;
mod life;
mod world;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use chance::Chance;
use customer::Page;
use life::{Began, Life, fired, kill_all, processes_in};
use world::World;

/// The longest a whole run may take.
const LIMIT: Duration = Duration::from_secs(115);

#[tokio::test(flavor = "multi_thread")]
async fn when_it_is_killed_at_any_moment() -> Result<()> {
    const KILLS: usize = 6;
    let mut chance = Chance::of_run();
    // Two teams that can pay for all they ask, and three whose lots run out.
    let world = World::new(&[5000, 5000, 60, 20, 5]).await?;
    let mut moments = chance.fork();
    let lives = async |world: &World| {
        for _ in 0..KILLS {
            let life = world.begin("").await?;
            // The moment is what is random here.
            sleep(moments.ms(200..3000)).await;
            world.kill(life).await?;
        }
        Ok(())
    };
    run(&world, 50, chance, lives).await
}

#[tokio::test(flavor = "multi_thread")]
async fn when_it_dies_at_any_step() -> Result<()> {
    /// What fires in each life, one life after the other: what one leaves behind the next one takes up.
    const STEPS: [&str; 10] = [
        "created=abort@3",
        "assigned=abort@3",
        "rendered=abort@2",
        "rendered=lose@2",
        "stored=abort@2",
        "taking_over=abort",
        "stored=lose@2",
        "completed=abort@2",
        "completed=error@2",
        "releasing=abort",
    ];
    let world = World::new(&[5000, 5000]).await?;
    let lives = async |world: &World| {
        for step in STEPS {
            die_at(world, step).await.with_context(|| step)?;
        }
        Ok(())
    };
    run(&world, 8, Chance::of_run(), lives).await
}

/// A life in which everything armed fires.
async fn die_at(world: &World, step: &str) -> Result<()> {
    let mut life = match world.try_begin(step).await? {
        Began::Up(life) => *life,
        Began::Died(said) => {
            // What an earlier life left is taken up before this one says that it is up.
            ensure!(step.contains("abort") && fired(&said) == 1, "it did not start: {said:?}");
            return Ok(());
        }
    };
    let armed = step.split(',').count();
    if step.starts_with("releasing") {
        // A renderer gives back what it renders when its browser dies.
        world.site_is_asked_again().await?;
        kill_all(&processes_in(&world.home.run_dir()));
    }
    life.fires(armed).await?;
    if step.contains("abort") {
        world.died(life).await
    } else {
        // What has failed goes on, and has to come to its end before the next life.
        world.grabs_end(2).await?;
        world.kill(life).await
    }
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
    timeout(LIMIT, whole).await.context("the run did not end in time")?
}

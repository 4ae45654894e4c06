//! Steps of a grab's path at which something is to go wrong, and a life in which it does.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_tests::remains::processes_in;
use tokio::time::timeout;

use super::chance::Chance;
use super::life::{Began, fired, kill_all};
use super::world::World;

/// What fires in each life, one life after the other: what one leaves behind the next one takes up.
pub(super) const STEPS: [&str; 11] = [
    "created=abort@3",
    "created=error@3",
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

/// A fault, and another one that meets the same grab.
pub(super) const PAIRS: [&str; 19] = [
    // Nobody has the job that was created, and then:
    "created=lose>stored=abort",
    // The assignment was sent and its lease is gone, so the grab is rendered twice.
    "assigned=lose>rendered=abort",
    "assigned=lose>stored=lose",
    "assigned=lose>stored=1500",
    // The assignment was not sent, and giving it back fails or happens twice.
    "assigned=error>releasing=error",
    "assigned=error>releasing=lose",
    // The picture comes under a lease that is gone: while the job waits, and when the next one has it.
    "rendered=error>rendered=lose",
    "rendered=lose>stored=error",
    "rendered=lose>stored=abort",
    "rendered=lose>stored=1500",
    "stored=error>stored=lose",
    "stored=error>completed=error",
    "stored=lose>stored=abort",
    "stored=lose>completed=error",
    "stored=lose>completed=abort",
    // It is done, and is reported again.
    "completed=error>rendered=lose",
    "completed=error>stored=abort",
    "completed=error>completed=error",
    "completed=error>completed=abort",
];

/// The pairs, in an order and at turns that chance decides.
pub(super) fn pairs(chance: &mut Chance) -> Vec<String> {
    let turned = |pair: &str| (chance.next(), pair.replacen('>', &format!("@{}>", 1 + chance.next() % 3), 1));
    let mut pairs: Vec<_> = PAIRS.into_iter().map(turned).collect();
    pairs.sort_unstable();
    pairs.into_iter().map(|(_, pair)| pair).collect()
}

/// A life in which everything armed fires.
pub(super) async fn die_at(world: &World, step: &str) -> Result<()> {
    let armed = step.split([',', '>']).count();
    let mut life = match world.try_begin(step).await? {
        Began::Up(life) => *life,
        Began::Died(said) => {
            // What an earlier life left is taken up before this one says that it is up.
            ensure!(step.contains("abort") && fired(&said) == armed, "it did not start: {said:?}");
            return Ok(());
        }
    };
    if step.starts_with("releasing") {
        world.browsers_die.store(true, Ordering::SeqCst);
        // A renderer gives back what it renders when its browser dies. One that has just finished has nothing to give.
        while !life.has_fired(armed) {
            world.site_is_asked_again().await?;
            kill_all(&processes_in(&world.home.run_dir()));
            let _ = timeout(Duration::from_secs(2), life.fires(armed)).await;
        }
    }
    life.fires(armed).await?;
    if step.contains("abort") {
        world.died(life).await
    } else {
        // What has failed goes on, and has to come to its end before the next life.
        world.grabs_end(2).await.with_context(|| step.to_owned())?;
        world.kill(life).await
    }
}

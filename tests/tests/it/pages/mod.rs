//! The pages and OAuth as people and their apps have them.
//!
//! To check a new page, have one of the walks in `tests/pages` go to it in each of its states: `walk.mjs` through signing in
//! and apps, `grabs.mjs` through captures, `account.mjs` through keys and accounts, `teams.mjs` through teams, `billing.mjs`
//! through usage and purchases, `webhooks.mjs` through webhooks, `operator.mjs` through what operators see; `journey.mjs` is
//! one person's way through all of it. Their eyes (`eyes.mjs`) are axe, pa11y and Lighthouse, and the validator of HTML reads
//! what they leave. How quickly pages are shown is measured by `script/bench pages`. A new page of a team also gets its row in
//! `team` or `people`, one of operators in `operator`.

mod billing;
mod clients;
mod crossings;
mod grabs;
mod limits;
mod log;
mod looks;
mod mail;
mod operator;
mod people;
mod requests;
mod sessions;
mod start;
mod team;
mod visitor;
mod webhooks;

use anyhow::{Result, ensure};
use grabd_tests::programs::{node, root, run};
use serde_json::Value;

/// Runs one of the scripts of `tests/pages`; what it said.
async fn run_script(script: &str, arguments: &Value) -> Result<String> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("arguments.json");
    std::fs::write(&file, arguments.to_string())?;
    let script = root().join("tests/pages").join(script);
    let (is_content, said) = run(&node(), &[&script, &file].map(|path| path.display().to_string())).await?;
    ensure!(is_content, "{} said: {said} (is a package missing? run script/setup --tests)", script.display());
    Ok(said)
}

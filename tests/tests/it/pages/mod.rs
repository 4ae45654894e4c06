//! The web app and OAuth, as people and their apps use them.
//!
//! To check a new page, add it in each of its states to one of the browser walks in `tests/pages`: `walk.mjs` for
//! sign-in and apps, `grabs.mjs` for captures, `account.mjs` for keys and accounts, `second_factor.mjs` for the second
//! factor, `passkeys.mjs` for passkeys, `teams.mjs` for teams,
//! `billing.mjs` for usage and purchases, `webhooks.mjs` for webhooks, `monitors.mjs` for monitors, `sites.mjs` for site jobs, `operator.mjs` for the operator pages, and
//! `journey.mjs` for one user's way through all of it. `audits.mjs` checks each page with axe and pa11y, and how it
//! loads, and an HTML validator checks the pages that the walks save. `script/bench pages` measures page speed. A new
//! page of a team also gets a row in `team` or `users`, and an operator page a row in `operator`.

mod app_access;
mod audit_trail;
mod billing;
mod connect;
mod csrf;
mod deletion;
mod device_codes;
mod docs;
mod gallery;
mod grabs;
mod keys;
mod limits;
mod log;
mod looks;
mod mail;
mod monitors;
mod oauth;
mod oauth_library;
mod one_grab;
mod operator;
mod operator_lists;
mod passkeys;
mod proxies;
mod purchases;
mod requests;
mod roles;
mod second_factor;
mod secrets;
mod sessions;
mod sites;
mod start_page;
mod suspension;
pub(crate) mod team;
mod users;
mod verify_email;
mod webhooks;

use anyhow::{Result, ensure};
use grabd_tests::programs::{node, root, run};
use grabd_tests::visitor;
use serde_json::Value;

/// Runs a script of `tests/pages` and returns its output.
async fn run_script(script: &str, arguments: &Value) -> Result<String> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("arguments.json");
    std::fs::write(&file, arguments.to_string())?;
    let script = root().join("tests/pages").join(script);
    let (success, output) = run(&node(), &[&script, &file].map(|path| path.display().to_string())).await?;
    ensure!(success, "{} failed (is a package missing? run script/setup --tests):\n{output}", script.display());
    Ok(output)
}

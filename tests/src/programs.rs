//! Programs of others that judge us: clients, libraries, browsers, validators.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use tokio::process::Command;

/// How long a program may take. It only bounds a test that fails.
const PATIENCE: Duration = Duration::from_secs(1800);

/// The repository, where npm and Python have put them.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The Node.js that npm brought, since some of these want a newer one than systems have.
pub fn node() -> PathBuf {
    let brought = ["x64", "arm64"].map(|cpu| root().join(format!("node_modules/node-linux-{cpu}/bin/node")));
    brought.into_iter().find(|node| node.exists()).unwrap_or_else(|| "node".into())
}

/// Runs a program to its end; whether it was content, and what it said.
///
/// # Errors
/// When it is not there, or does not end.
pub async fn run(program: &Path, arguments: &[String]) -> anyhow::Result<(bool, String)> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root()).stdin(Stdio::null()).kill_on_drop(true).env("NO_COLOR", "1");
    let output = tokio::time::timeout(PATIENCE, command.output())
        .await
        .with_context(|| format!("{arguments:?} does not end"))?
        .with_context(|| format!("{} is missing: run script/setup --tests", program.display()))?;
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    Ok((output.status.success(), said.concat()))
}

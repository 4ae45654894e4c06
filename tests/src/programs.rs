//! Runs third-party programs: clients, libraries, browsers, validators.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use tokio::process::Command;

/// Time limit for a program. Only reached by failing tests.
const WAIT_LIMIT: Duration = Duration::from_secs(1800);

/// The repository root, below which npm and Python packages are installed.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The Node.js that npm installed, because some scripts need a newer version than systems provide.
pub fn node() -> PathBuf {
    let installed = ["x64", "arm64"].map(|cpu| root().join(format!("node_modules/node-linux-{cpu}/bin/node")));
    installed.into_iter().find(|node| node.exists()).unwrap_or_else(|| "node".into())
}

/// Runs a program to its end. Returns whether it succeeded, and its output.
///
/// # Errors
/// If the program is missing or does not end in time.
pub async fn run(program: &Path, arguments: &[String]) -> anyhow::Result<(bool, String)> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root()).stdin(Stdio::null()).kill_on_drop(true).env("NO_COLOR", "1");
    let process = tokio::time::timeout(WAIT_LIMIT, command.output())
        .await
        .with_context(|| format!("{arguments:?} did not end in time"))?
        .with_context(|| format!("{} is missing: run script/setup --tests", program.display()))?;
    let output = [process.stdout, process.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    Ok((process.status.success(), output.concat()))
}

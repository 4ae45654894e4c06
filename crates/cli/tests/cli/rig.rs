//! Runs the program against a test service.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use grabd_tests::harness::TestApp;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

/// How long the program may run.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A service and the working directory of the program.
pub(crate) struct Rig {
    pub(crate) harness: TestApp,
    dir: TempDir,
}

/// The output of the program.
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Rig {
    pub(crate) async fn start(credits: u32, overlay: &[(&'static str, &str)]) -> Self {
        Self { harness: TestApp::start(credits, overlay).await.unwrap(), dir: tempfile::tempdir().unwrap() }
    }

    /// A service that only has placeholders.
    pub(crate) async fn without_browser() -> Self {
        Self { harness: TestApp::start_without_browser(0, &[]).await.unwrap(), dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs the program with the live key.
    pub(crate) async fn live(&self, args: &[&str]) -> CommandOutput {
        self.run(Some(self.harness.live()), args).await
    }

    /// Runs the program with the test key.
    pub(crate) async fn test(&self, args: &[&str]) -> CommandOutput {
        self.run(Some(self.harness.test()), args).await
    }

    /// Runs the program with the given key, if any.
    pub(crate) async fn run(&self, key: Option<&str>, args: &[&str]) -> CommandOutput {
        let mut command = self.command();
        if let Some(key) = key {
            command.env("GRAB_API_KEY", key);
        }
        run(command.args(args)).await
    }

    /// The program with the service's address and without this machine's configuration.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_grab"));
        command
            .env_clear()
            .env("GRAB_BASE_URL", self.harness.base())
            .env("XDG_CONFIG_HOME", self.file("config"))
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

/// Runs a command until it exits.
pub(crate) async fn run(command: &mut Command) -> CommandOutput {
    let output =
        tokio::time::timeout(TIMEOUT, command.output()).await.expect("the program did not exit in time").unwrap();
    CommandOutput {
        code: output.status.code().unwrap(),
        stdout: output.stdout,
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl CommandOutput {
    /// Fails the test unless the program exited with this code.
    #[track_caller]
    pub(crate) fn expect_exit(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.text(), self.stderr);
        self
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The lines of stdout as JSON.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

//! A service and a way to run the program against it.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use grabd_tests::harness::Harness;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

/// How long the program may take before the test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A service, and a directory in which the program runs.
pub(crate) struct Rig {
    pub(crate) harness: Harness,
    dir: TempDir,
}

/// What the program said.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Rig {
    pub(crate) async fn start(credits: u32, overlay: &[(&'static str, &str)]) -> Self {
        Self { harness: Harness::start(credits, overlay).await.unwrap(), dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs the program with the live key.
    pub(crate) async fn live(&self, args: &[&str]) -> Said {
        self.run(Some(self.harness.live()), args).await
    }

    /// Runs the program with the test key.
    pub(crate) async fn test(&self, args: &[&str]) -> Said {
        self.run(Some(self.harness.test()), args).await
    }

    /// Runs the program with this key or none.
    pub(crate) async fn run(&self, key: Option<&str>, args: &[&str]) -> Said {
        let mut command = self.command();
        if let Some(key) = key {
            command.env("GRAB_API_KEY", key);
        }
        run(command.args(args)).await
    }

    /// The program with the service's address and nothing of the machine's own configuration.
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

/// Runs a command to its end.
pub(crate) async fn run(command: &mut Command) -> Said {
    let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("the program ends").unwrap();
    Said {
        code: output.status.code().unwrap(),
        stdout: output.stdout,
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Said {
    /// Fails the test unless the program ended so.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
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

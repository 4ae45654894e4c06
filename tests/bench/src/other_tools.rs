//! The process that captures pages with other screenshot tools, one capture at a time: `tests/peers/capture.mjs`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context;
use grabd_tests::programs;
use serde::{Deserialize, Serialize};

/// The process that runs the other tools.
pub(crate) struct Peers {
    process: Child,
    tasks: Option<ChildStdin>,
    responses: BufReader<ChildStdout>,
}

/// What a tool is to capture.
#[derive(Serialize)]
pub(crate) struct Task<'a> {
    pub(crate) contender: &'a str,
    pub(crate) url: &'a str,
    pub(crate) mode: &'a str,
    pub(crate) selector: Option<&'a str>,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// `desktop` or `phone`. Only Playwright shows a page as on a phone, and in its dark design.
    pub(crate) device: &'a str,
    pub(crate) dark: bool,
    pub(crate) file: &'a Path,
}

/// How long a tool took, and why it has no image.
#[derive(Deserialize)]
pub(crate) struct PeerResponse {
    pub(crate) ms: f64,
    pub(crate) error: Option<String>,
}

impl Peers {
    pub(crate) fn start() -> anyhow::Result<Self> {
        Self::start_with(&[])
    }

    /// Starts the tools in browsers that know no host but this one.
    pub(crate) fn start_isolated(host: &str) -> anyhow::Result<Self> {
        Self::start_with(&[("GRABD_PEERS_ONLY_HOST", host)])
    }

    fn start_with(environment: &[(&str, &str)]) -> anyhow::Result<Self> {
        let root = programs::root();
        let installed = root.join("target/peers");
        anyhow::ensure!(
            installed.join("node_modules").is_dir(),
            "the other tools are missing: run script/bench pictures"
        );
        let mut process = Command::new(programs::node())
            .arg(root.join("tests/peers/capture.mjs").canonicalize()?)
            .current_dir(installed)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let tasks = process.stdin.take();
        let responses = BufReader::new(process.stdout.take().context("stdout")?);
        Ok(Self { process, tasks, responses })
    }

    pub(crate) fn capture(&mut self, task: &Task<'_>) -> anyhow::Result<PeerResponse> {
        let tasks = self.tasks.as_mut().context("the other tools are not running")?;
        writeln!(tasks, "{}", serde_json::to_string(task)?)?;
        tasks.flush()?;
        let mut line = String::new();
        self.responses.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("invalid response of the other tools: {line}"))
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // Closing its standard input makes it close its browsers and exit.
        self.tasks = None;
        let _ = self.process.wait();
    }
}

//! A screenshot tool from npm, in a process of its own with its browsers.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use grabd_tests::process_tree::ProcessTree;
use grabd_tests::programs;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::page::{ImageSize, VIEWPORT};

/// Time limit of a capture. The tools have a limit of 30 seconds themselves.
const CAPTURE_LIMIT: Duration = Duration::from_secs(60);
/// Time limit for closing the browsers.
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// Answers to one task: one with the image, and one at its end.
const ANSWERS: usize = 2;

/// One of the tools that `tests/peers/speed.mjs` drives. Its process ends when this is dropped.
pub(super) struct NodeTool {
    pub(super) name: &'static str,
    pid: u32,
    process: Child,
    tasks: tokio::sync::Mutex<ChildStdin>,
    open: Arc<Mutex<HashMap<u64, mpsc::Sender<Answer>>>>,
    next_id: AtomicU64,
}

#[derive(Deserialize)]
struct Answer {
    id: u64,
    image: Option<ImageSize>,
    #[serde(default)]
    end: bool,
    error: Option<String>,
}

impl NodeTool {
    pub(super) fn start(name: &'static str) -> anyhow::Result<Self> {
        Self::start_with(name, &[])
    }

    /// Starts a tool with further variables of the environment.
    pub(super) fn start_with(name: &'static str, environment: &[(&str, &str)]) -> anyhow::Result<Self> {
        let root = programs::root();
        let installed = root.join("target/peers");
        anyhow::ensure!(installed.join("node_modules").is_dir(), "the tools are missing: run script/bench peers");
        let mut process = Command::new(programs::node().canonicalize().unwrap_or_else(|_| "node".into()))
            .arg(root.join("tests/peers/speed.mjs").canonicalize()?)
            .arg(name)
            .current_dir(installed)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let pid = process.id().context("a process that runs has an id")?;
        let tasks = process.stdin.take().context("stdin")?;
        let mut lines = BufReader::new(process.stdout.take().context("stdout")?).lines();
        let open: Arc<Mutex<HashMap<u64, mpsc::Sender<Answer>>>> = Arc::default();
        let waiting = open.clone();
        TaskTracker::new().spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let Ok(answer) = serde_json::from_str::<Answer>(&line) else { continue };
                let sender = waiting.lock().unwrap_or_else(PoisonError::into_inner).get(&answer.id).cloned();
                if let Some(sender) = sender {
                    // The receiver is gone if the capture has exceeded its time limit.
                    let _ = sender.send(answer).await;
                }
            }
            // Ends all waits.
            waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
        });
        let tasks = tokio::sync::Mutex::new(tasks);
        Ok(Self { name, pid, process, tasks, open, next_id: AtomicU64::new(1) })
    }

    pub(super) fn tree(&self) -> ProcessTree {
        ProcessTree(self.pid)
    }

    /// Captures a page. Returns after the tool has closed what it opened, and has written the image to the file if there is one:
    /// the time until it had the image, and its size.
    pub(super) async fn capture(
        &self,
        url: &str,
        full_page: bool,
        file: Option<&Path>,
    ) -> anyhow::Result<(Duration, ImageSize)> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, mut answers) = mpsc::channel(ANSWERS);
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        let (width, height) = VIEWPORT;
        let task =
            json!({ "id": id, "url": url, "full_page": full_page, "width": width, "height": height, "file": file });
        let captured = async {
            let began = Instant::now();
            self.tasks.lock().await.write_all(format!("{task}\n").as_bytes()).await?;
            let mut imaged = None;
            while let Some(answer) = answers.recv().await {
                if let Some(error) = answer.error {
                    anyhow::bail!("{error}");
                }
                if let Some(image) = answer.image {
                    imaged = Some((began.elapsed(), image));
                }
                if answer.end {
                    return imaged.context("the capture ended without an image");
                }
            }
            anyhow::bail!("the process of {} ended", self.name)
        };
        let result = tokio::time::timeout(CAPTURE_LIMIT, captured).await;
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        result.with_context(|| format!("no image within {CAPTURE_LIMIT:?}"))?
    }

    pub(super) async fn stop(self) -> anyhow::Result<()> {
        let Self { name, mut process, tasks, .. } = self;
        // The end of its input makes it close its browsers and exit.
        drop(tasks);
        let status = tokio::time::timeout(STOP_LIMIT, process.wait()).await;
        let status = status.with_context(|| format!("{name} did not close its browsers"))??;
        anyhow::ensure!(status.success(), "{name} ended with {status}");
        Ok(())
    }
}

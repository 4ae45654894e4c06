//! Other tools that read the main content of a page: the programs in `tests/peers/reading`.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use grabd_tests::programs;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::sets::Page;

/// Time limit for one page. Some pages of the sets have several megabytes.
const PAGE_LIMIT: Duration = Duration::from_secs(60);

/// The URL of pages whose set does not name it. Tools resolve links against it.
const UNKNOWN_URL: &str = "https://example.com/";

/// A tool and what it writes.
#[derive(Clone, Copy)]
pub(super) struct Reader {
    pub(super) name: &'static str,
    program: Program,
    writes_markdown: bool,
}

#[derive(Clone, Copy)]
enum Program {
    Node,
    Python,
}

/// What a tool has read of a page.
#[derive(Deserialize)]
struct Answer {
    read: Option<String>,
    error: Option<String>,
}

impl Reader {
    const ALL: [Self; 3] = [
        Self { name: "trafilatura", program: Program::Python, writes_markdown: true },
        Self { name: "readability", program: Program::Node, writes_markdown: false },
        Self { name: "defuddle", program: Program::Node, writes_markdown: true },
    ];

    /// Those that write `text` or `markdown`.
    pub(super) fn of_kind(kind: &str) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |reader| kind == "text" || reader.writes_markdown)
    }

    /// What the tool reads of each page. `None` for a page at which it fails or takes too long, which is printed.
    pub(super) async fn read(self, kind: &str, pages: &[Page]) -> anyhow::Result<Vec<Option<String>>> {
        let mut process = Running::start(self, kind)?;
        let mut read = Vec::with_capacity(pages.len());
        for page in pages {
            let answer = match timeout(PAGE_LIMIT, process.read(page)).await {
                Ok(answer) => answer?,
                Err(_) => {
                    process = Running::start(self, kind)?;
                    Answer { read: None, error: Some("no answer in time".to_owned()) }
                }
            };
            if let Some(error) = &answer.error {
                eprintln!("{} with {}: {error}", page.name, self.name);
            }
            read.push(answer.read);
        }
        Ok(read)
    }
}

/// A process that reads one page after the other. It ends when this is dropped.
struct Running {
    _process: Child,
    tasks: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(reader: Reader, kind: &str) -> anyhow::Result<Self> {
        let root = programs::root().canonicalize()?;
        let (scripts, installed) = (root.join("tests/peers/reading"), root.join("target/peers/reading"));
        anyhow::ensure!(
            installed.join("node_modules").is_dir(),
            "the tools that read pages are missing: run script/bench reading"
        );
        let mut command = match reader.program {
            Program::Node => {
                let mut command = Command::new(programs::node().canonicalize().unwrap_or_else(|_| "node".into()));
                command.arg(scripts.join("read.mjs")).arg(reader.name);
                command
            }
            Program::Python => {
                let mut command = Command::new(installed.join("python/bin/python"));
                command.arg(scripts.join("read.py"));
                command
            }
        };
        let mut process = command
            .arg(kind)
            .current_dir(installed)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let tasks = process.stdin.take().context("stdin")?;
        let answers = BufReader::new(process.stdout.take().context("stdout")?).lines();
        Ok(Self { _process: process, tasks, answers })
    }

    async fn read(&mut self, page: &Page) -> anyhow::Result<Answer> {
        let file: &Path = &page.file;
        let url = page.base.as_deref().unwrap_or(UNKNOWN_URL);
        let task = json!({ "file": file.canonicalize()?, "url": url });
        self.tasks.write_all(format!("{task}\n").as_bytes()).await?;
        self.tasks.flush().await?;
        let line = self.answers.next_line().await?.context("the tool has ended")?;
        Ok(serde_json::from_str(&line)?)
    }
}

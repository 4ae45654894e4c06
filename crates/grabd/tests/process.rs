//! The binary as an operator meets it: started, used, administered beside its running self, and stopped.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it stands")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// How long anything here may take before the test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

fn grabd(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grabd"));
    command
        .env("GRABD_DATA_DIR", dir.join("data"))
        .env("GRABD_BROWSER__RUN_DIR", dir.join("run"))
        .env("GRABD_HTTP__LISTEN", "127.0.0.1:0")
        .env("GRABD_GRPC__LISTEN", "127.0.0.1:0")
        .env("GRABD_METRICS__LISTEN", "127.0.0.1:0")
        .env("GRABD_EGRESS__ALLOW_CIDRS", "127.0.0.2/32")
        .stdin(Stdio::null());
    command
}

fn run(dir: &Path, args: &[&str]) -> Output {
    grabd(dir).args(args).output().unwrap()
}

fn admin(dir: &Path, args: &[&str]) -> Value {
    let output = run(dir, &[&["admin"], args, &["--json"]].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A directory that the browser's own user may pass through.
fn open_dir() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

/// A page whose answer is held back until the test lets it go.
struct Page {
    url: String,
    asked: mpsc::Receiver<()>,
    answer: mpsc::Sender<()>,
}

fn page() -> Page {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (tell_asked, asked) = mpsc::channel();
    let (answer, may_answer) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
            let is_page = first.starts_with("GET / ");
            if is_page {
                let _ = tell_asked.send(());
                if may_answer.recv_timeout(PATIENCE).is_err() {
                    return;
                }
            }
            let body = "<!doctype html><title>x</title><h1>A page</h1>";
            let status = if is_page { "200 OK" } else { "404 Not Found" };
            let _ = write!(
                &stream,
                "HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    Page { url, asked, answer }
}

/// A running service and what it has printed so far.
struct Serving {
    child: Child,
    lines: mpsc::Receiver<String>,
    seen: Vec<String>,
}

impl Serving {
    fn start(dir: &Path, args: &[&str]) -> Self {
        let mut child =
            grabd(dir).arg("serve").args(args).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        Self { child, lines, seen: Vec::new() }
    }

    /// Reads on until a line contains `text`; the line.
    fn until(&mut self, text: &str) -> String {
        loop {
            let line = match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => line,
                Err(_) => panic!("no line with {text:?} in:\n{}", self.seen.join("\n")),
            };
            self.seen.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    fn word_after(&mut self, text: &str) -> String {
        let line = self.until(text);
        line[line.find(text).unwrap() + text.len()..].split_whitespace().next().unwrap().to_owned()
    }

    fn terminate(&self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }

    fn wait(mut self) {
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn nothing_is_left(dir: &Path) {
    let run = dir.join("run");
    let marker = run.display().to_string();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let mut command = Vec::new();
        if std::fs::File::open(process.path().join("cmdline")).and_then(|mut f| f.read_to_end(&mut command)).is_ok() {
            let command = String::from_utf8_lossy(&command).into_owned();
            assert!(!command.contains(&marker), "{command} is still running");
        }
    }
    let left: Vec<_> = std::fs::read_dir(&run).map(|dir| dir.flatten().collect()).unwrap_or_default();
    assert!(left.is_empty(), "{left:?}");
}

fn post(base: &str, key: &str, url: &str) -> (u16, Value) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let body = serde_json::json!({ "url": url });
        let response = client.post(format!("{base}/grabs")).bearer_auth(key).json(&body).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    })
}

#[test]
fn a_newcomer_starts_captures_and_stops_and_comes_back() {
    let dir = open_dir();
    let page = page();
    page.answer.send(()).unwrap();
    let mut serving = Serving::start(dir.path(), &["--capture", &page.url]);
    let base = serving.word_after("REST ");
    let live = serving.word_after("live key ");
    let test = serving.word_after("test key ");
    assert!(live.starts_with("sk_live_") && test.starts_with("sk_test_"));
    assert!(serving.until("curl ").contains(&live));
    assert!(serving.until("\"status\"").contains("done"));
    let picture = serving.word_after("The picture lies at ");
    assert!(std::fs::read(&picture).unwrap().starts_with(b"\x89PNG"));

    // An operator works beside the running service.
    let made = admin(dir.path(), &["team", "create", "beside", "--credits", "1"]);
    let beside = made["live_key"].as_str().unwrap();
    page.answer.send(()).unwrap();
    assert_eq!(post(&base, beside, &page.url).0, 200);
    assert_eq!(post(&base, beside, &page.url).0, 402);
    let team = made["team_id"].as_str().unwrap();
    let granted = admin(dir.path(), &["credits", "grant", team, "5", "--reference", "invoice 1"]);
    assert_eq!(granted["granted"], 5);
    let again = admin(dir.path(), &["credits", "grant", team, "5", "--reference", "invoice 1"]);
    assert_eq!(again["granted"], 0);
    assert_eq!(admin(dir.path(), &["credits", "show", team])["prepaid"], 5);
    let term = admin(dir.path(), &["subscription", "start", team, "--credits", "3", "--days", "365"]);
    assert_eq!(term["granted"], 3);
    assert!(term["expires_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(admin(dir.path(), &["subscription", "cancel", team])["cancelled"], 1);
    assert_eq!(admin(dir.path(), &["credits", "show", team])["subscription"], 3);
    let entries = admin(dir.path(), &["ledger", "show", team]);
    let amounts: Vec<_> = entries["data"].as_array().unwrap().iter().map(|entry| entry["amount"].clone()).collect();
    assert_eq!(amounts, [3, 5, -1, 1]);
    assert_eq!(admin(dir.path(), &["ledger", "verify"])["ok"], true);
    let keys = admin(dir.path(), &["key", "list", team]);
    let key = keys["data"].as_array().unwrap().iter().find(|key| key["environment"] == "live").unwrap();
    admin(dir.path(), &["key", "revoke", key["key_id"].as_str().unwrap()]);
    assert_eq!(post(&base, beside, &page.url).0, 401);
    let new = admin(dir.path(), &["key", "create", team, "--environment", "test"]);
    assert_eq!(post(&base, new["key"].as_str().unwrap(), "https://example.com/").0, 200);

    // A second service on the same data is refused, with a reason.
    let second = run(dir.path(), &["serve"]);
    assert!(!second.status.success());
    assert!(String::from_utf8_lossy(&second.stderr).contains("another grabd"));

    // Told to stop in the middle of a render, it finishes first.
    while page.asked.try_recv().is_ok() {}
    std::thread::scope(|scope| {
        let open = scope.spawn(|| post(&base, &live, &page.url));
        page.asked.recv_timeout(PATIENCE).unwrap();
        serving.terminate();
        serving.until("Stopping");
        page.answer.send(()).unwrap();
        let (status, grab) = open.join().unwrap();
        assert_eq!((status, grab["status"].as_str()), (200, Some("done")));
    });
    serving.wait();
    nothing_is_left(dir.path());

    // The second start finds everything again.
    let mut serving = Serving::start(dir.path(), &[]);
    let base = serving.word_after("REST ");
    assert_eq!(serving.word_after("live key "), live);
    page.answer.send(()).unwrap();
    assert_eq!(post(&base, &live, &page.url).0, 200);
    serving.terminate();
    serving.wait();
    nothing_is_left(dir.path());
}

#[test]
fn settings_are_printed_and_misspelt_ones_refused() {
    let dir = open_dir();
    let printed = run(dir.path(), &["config"]);
    assert!(String::from_utf8_lossy(&printed.stdout).contains("requests_per_minute = 60"));
    let refused = grabd(dir.path()).env("GRABD_HTTP__LISTNE", "x").args(["admin", "team", "list"]).output().unwrap();
    assert!(!refused.status.success());
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("listne") && message.contains("grabd config"), "{message}");
}

#[test]
fn the_doctor_says_what_is_wrong_and_what_to_do() {
    let dir = open_dir();
    let healthy = run(dir.path(), &["doctor"]);
    let report = String::from_utf8_lossy(&healthy.stdout).into_owned();
    assert!(healthy.status.success(), "{report}");
    for name in ["data dir", "database", "egress"] {
        assert!(report.lines().any(|line| line.starts_with("ok") && line.contains(name)), "{name}: {report}");
    }
    let sick =
        grabd(dir.path()).env("GRABD_BROWSER__EXECUTABLE", "/nonexistent/browser").arg("doctor").output().unwrap();
    let report = String::from_utf8_lossy(&sick.stdout).into_owned();
    assert!(!sick.status.success(), "{report}");
    assert!(report.lines().any(|line| line.starts_with("FAIL") && line.contains("/nonexistent/browser")), "{report}");
}

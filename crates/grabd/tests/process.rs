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
        Self::of(grabd(dir).arg("serve").args(args))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
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
        signal(self.child.id(), Signal::TERM);
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

/// Processes with a path inside `dir` on their command line, with that line.
fn processes_of(dir: &Path) -> Vec<(u32, String)> {
    let marker = dir.display().to_string();
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let mut command = Vec::new();
        if std::fs::File::open(process.path().join("cmdline")).and_then(|mut f| f.read_to_end(&mut command)).is_ok() {
            let command = String::from_utf8_lossy(&command).into_owned();
            if command.contains(&marker) {
                found.push((pid, command));
            }
        }
    }
    found
}

/// The browser that runs with a profile inside `dir`.
fn browser_of(dir: &Path) -> u32 {
    let browsers = processes_of(dir).into_iter().filter(|(_, line)| line.contains("--remote-debugging-pipe"));
    browsers.filter(|(_, line)| !line.contains("--type=")).map(|(pid, _)| pid).min().unwrap()
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// What a command that ends by itself has said and how it ended; it gets the usual patience.
fn ended(mut child: Child) -> (Option<i32>, String) {
    let mut stderr = child.stderr.take().unwrap();
    let (tell, said) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text);
        let _ = tell.send(text);
    });
    match said.recv_timeout(PATIENCE) {
        Ok(text) => (child.wait().unwrap().code(), text),
        Err(_) => {
            let _ = child.kill();
            panic!("it does not end")
        }
    }
}

fn nothing_is_left(dir: &Path) {
    let run = dir.join("run");
    assert_eq!(processes_of(&run), []);
    let left: Vec<_> = std::fs::read_dir(&run).map(|dir| dir.flatten().collect()).unwrap_or_default();
    assert!(left.is_empty(), "{left:?}");
}

fn post(base: &str, key: &str, url: &str) -> (u16, Value) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // Built beside the command line, the client has TLS in it and wants a choice of cryptography.
        let _ = rustls::crypto::ring::default_provider().install_default();
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
fn a_browser_that_never_starts_ends_the_service_and_says_why() {
    let dir = open_dir();
    let mut command = grabd(dir.path());
    command.env("GRABD_BROWSER__EXECUTABLE", "/bin/false").arg("serve").stdout(Stdio::null()).stderr(Stdio::piped());
    let (code, said) = ended(command.spawn().unwrap());
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("attempt=3"), "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("grabd: ") && last.contains("does not start") && last.contains("grabd doctor"), "{said}");
    nothing_is_left(dir.path());
}

#[test]
fn a_browser_that_starts_no_more_ends_the_service_and_says_why() {
    let dir = open_dir();
    let program = dir.path().join("program");
    std::os::unix::fs::symlink(grabd_browser::find_executable(None, "").unwrap(), &program).unwrap();
    let mut command = grabd(dir.path());
    command.env("GRABD_BROWSER__EXECUTABLE", &program).arg("serve").stderr(Stdio::piped());
    let mut serving = Serving::of(&mut command);
    serving.until("is up");
    std::fs::remove_file(&program).unwrap();
    std::os::unix::fs::symlink("/bin/false", &program).unwrap();
    signal(browser_of(&dir.path().join("run")), Signal::KILL);
    serving.until("Stopping");
    let stderr = serving.child.stderr.take().unwrap();
    let said = std::io::read_to_string(stderr).unwrap();
    assert_eq!(serving.child.wait().unwrap().code(), Some(1), "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("grabd: ") && last.contains("beyond help") && last.contains("does not start"), "{said}");
    nothing_is_left(dir.path());
}

#[test]
fn what_a_killed_service_left_behind_is_ended_by_the_next_wherever_it_lives() {
    let dir = open_dir();
    let temporary = |name: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = dir.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let serve = |temporary: &Path, data: &str| {
        let mut command = grabd(dir.path());
        command.env_remove("GRABD_BROWSER__RUN_DIR").env("GRABD_DATA_DIR", dir.path().join(data));
        let mut serving = Serving::of(command.env("TMPDIR", temporary).arg("serve"));
        serving.until("is up");
        serving
    };
    let (first, second) = (temporary("first"), temporary("second"));
    // A neighbour, which shares the temporary directory.
    let neighbour = serve(&first, "neighbour");
    let neighbours = browser_of(&first);

    let mut killed = serve(&first, "data");
    let left = processes_of(&first).into_iter().map(|(pid, _)| pid);
    let left = left.filter(|pid| *pid != neighbours).filter(|pid| parent(*pid) == killed.child.id()).max().unwrap();
    // A browser that hangs does not notice that its service is gone.
    signal(left, Signal::STOP);
    signal(killed.child.id(), Signal::KILL);
    killed.child.wait().unwrap();
    assert!(Path::new(&format!("/proc/{left}")).exists());

    let next = serve(&second, "data");
    assert!(!is_running(left), "the browser of the killed service is still there");
    assert_eq!(std::fs::read_dir(&first).unwrap().count(), 1, "only the neighbour's directory is left");
    assert!(is_running(neighbours), "a neighbour's browser was ended");
    for serving in [next, neighbour] {
        serving.terminate();
        serving.wait();
    }
    assert_eq!(processes_of(dir.path()), []);
}

fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').and_then(|(_, rest)| rest.split(' ').nth(2)?.parse().ok()).unwrap_or_default()
}

/// A killed process stays as a name until its parent takes note.
fn is_running(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

#[test]
fn two_services_do_not_share_a_directory_for_browsers() {
    let dir = open_dir();
    let mut serving = Serving::start(dir.path(), &[]);
    serving.until("is up");
    let browser = browser_of(&dir.path().join("run"));
    let mut command = grabd(dir.path());
    let second = command.env("GRABD_DATA_DIR", dir.path().join("other")).arg("serve").output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("another service keeps its browsers there"), "{said}");
    assert!(is_running(browser));
    serving.terminate();
    serving.wait();
}

#[test]
fn people_are_made_listed_and_removed() {
    let dir = open_dir();
    let team = admin(dir.path(), &["team", "create", "default"]);
    // The one team that nobody is in.
    let ada = admin(dir.path(), &["user", "create", "Ada@Example.com"]);
    assert_eq!((&ada["team_id"], &ada["role"]), (&team["team_id"], &Value::from("owner")));
    assert_eq!((&ada["email"], ada["password"].as_str().unwrap().len()), (&Value::from("ada@example.com"), 22));
    // There is none any more.
    let bob = admin(dir.path(), &["user", "create", "bob@example.com"]);
    assert_eq!((&bob["team_name"], &bob["role"]), (&Value::from("bob"), &Value::from("owner")));
    assert_ne!(bob["password"], ada["password"]);
    let eve = admin(dir.path(), &["user", "create", "eve@example.com", "--team", "default"]);
    assert_eq!((&eve["team_id"], &eve["role"]), (&team["team_id"], &Value::from("member")));

    let text = run(dir.path(), &["admin", "user", "create", "zoe@example.com"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("a new team") && text.contains("The password is not shown again"), "{text}");
    let said = |password: &str| {
        let mut command = grabd(dir.path());
        command.args(["admin", "user", "create", "kim@example.com", "--password-stdin"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(password.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let (success, text) = said("too short\n");
    assert!(!success && text.contains("12 to 256 characters; got 9"), "{text}");
    let (success, text) = said("a password of her own\n");
    assert!(success && !text.contains("a password of her own") && !text.contains("shown again"), "{text}");
    let (success, text) = said("a password of her own\n");
    assert!(!success && text.contains("somebody has that e-mail address"), "{text}");

    // Who is an operator is said, given and taken.
    let uma = admin(dir.path(), &["user", "create", "uma@example.com", "--operator"]);
    assert_eq!((&uma["operator"], &eve["operator"]), (&Value::from(true), &Value::from(false)));
    let operators = || {
        let listed = admin(dir.path(), &["user", "list"]);
        let people = listed["data"].as_array().unwrap().clone();
        people.into_iter().filter(|user| user["operator"] == true).map(|user| user["email"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(operators(), ["uma@example.com"]);
    admin(dir.path(), &["user", "operator", "Eve@example.com"]);
    assert_eq!(operators(), ["eve@example.com", "uma@example.com"]);
    let taken = admin(dir.path(), &["user", "operator", "uma@example.com", "--revoke"]);
    assert_eq!((&taken["email"], &taken["operator"]), (&Value::from("uma@example.com"), &Value::from(false)));
    assert_eq!(operators(), ["eve@example.com"]);
    admin(dir.path(), &["user", "remove", "uma@example.com"]);

    let removed = admin(dir.path(), &["user", "remove", "eve@example.com", "--team", "default"]);
    assert_eq!(removed["removed"], true);
    admin(dir.path(), &["user", "remove", "bob@example.com"]);
    let listed = admin(dir.path(), &["user", "list"]);
    let listed: Vec<_> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|user| (user["email"].as_str().unwrap(), user["teams"].as_array().unwrap().len()))
        .collect();
    assert_eq!(
        listed,
        [("ada@example.com", 1), ("eve@example.com", 0), ("zoe@example.com", 1), ("kim@example.com", 1)]
    );
    for refused in [
        &["admin", "user", "remove", "bob@example.com"][..],
        &["admin", "user", "remove", "eve@example.com", "--team", "default"],
        &["admin", "user", "operator", "nobody@example.com"],
        &["admin", "user", "create", "not an address"],
        &["admin", "user", "create", "bob@example.com", "--team", "nowhere"],
    ] {
        assert!(!run(dir.path(), refused).status.success(), "{refused:?}");
    }
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

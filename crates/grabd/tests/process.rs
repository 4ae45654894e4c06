//! The binary as an operator uses it: started, used, administered while it runs, and stopped.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it stands")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_engine::random;
use grabd_store::Store;
use grabd_store::accounts::{InitialTeam, NewSecondFactor, NewUser};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Upper limit of every wait.
const TIMEOUT: Duration = Duration::from_secs(60);

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

/// A directory that the browser's user may traverse.
fn open_dir() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

/// A page whose response is delayed until the test releases it.
struct Page {
    url: String,
    requests: mpsc::Receiver<()>,
    answer: mpsc::Sender<()>,
}

fn page() -> Page {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (request_sender, requests) = mpsc::channel();
    let (answer, release_receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
            let is_page = first.starts_with("GET / ");
            if is_page {
                let _ = request_sender.send(());
                if release_receiver.recv_timeout(TIMEOUT).is_err() {
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
    Page { url, requests, answer }
}

/// A running service and its output so far.
struct RunningService {
    child: Child,
    lines: mpsc::Receiver<String>,
    output: Vec<String>,
}

impl RunningService {
    fn start(dir: &Path, args: &[&str]) -> Self {
        Self::of(grabd(dir).arg("serve").args(args))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, lines, output: Vec::new() }
    }

    /// Reads until a line contains `text`, and returns the line.
    fn until(&mut self, text: &str) -> String {
        loop {
            let line = match self.lines.recv_timeout(TIMEOUT) {
                Ok(line) => line,
                Err(_) => panic!("no line with {text:?} in:\n{}", self.output.join("\n")),
            };
            self.output.push(line.clone());
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

impl Drop for RunningService {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processes with a path inside `dir` on their command line, with their command lines.
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

/// The browser with a profile inside `dir`.
fn browser_of(dir: &Path) -> u32 {
    let browsers = processes_of(dir).into_iter().filter(|(_, line)| line.contains("--remote-debugging-pipe"));
    browsers.filter(|(_, line)| !line.contains("--type=")).map(|(pid, _)| pid).min().unwrap()
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// The exit code and stderr of a command that ends by itself.
fn wait_for_exit(mut child: Child) -> (Option<i32>, String) {
    let mut stderr = child.stderr.take().unwrap();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text);
        let _ = sender.send(text);
    });
    match receiver.recv_timeout(TIMEOUT) {
        Ok(text) => (child.wait().unwrap().code(), text),
        Err(_) => {
            let _ = child.kill();
            panic!("the command does not end")
        }
    }
}

fn assert_no_leftovers(dir: &Path) {
    let run = dir.join("run");
    assert_eq!(processes_of(&run), []);
    let leftover: Vec<_> = std::fs::read_dir(&run).map(|dir| dir.flatten().collect()).unwrap_or_default();
    assert!(leftover.is_empty(), "{leftover:?}");
}

fn post(base: &str, key: &str, url: &str) -> (u16, Value) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // With the workspace's features the client includes TLS, and needs a crypto provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let body = serde_json::json!({ "url": url });
        let response = client.post(format!("{base}/grabs")).bearer_auth(key).json(&body).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    })
}

#[test]
fn service_starts_captures_stops_and_restarts() {
    let dir = open_dir();
    let page = page();
    page.answer.send(()).unwrap();
    let mut service = RunningService::start(dir.path(), &["--dev", "--capture", &page.url]);
    let base = service.word_after("REST ");
    let live = service.word_after("live key ");
    let test = service.word_after("test key ");
    assert!(live.starts_with("sk_live_") && test.starts_with("sk_test_"));
    assert!(service.until("curl ").contains(&live));
    assert!(service.until("\"status\"").contains("done"));
    let image = service.word_after("The image file is ");
    assert!(std::fs::read(&image).unwrap().starts_with(b"\x89PNG"));

    // Admin commands work while the service runs.
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

    // A second service on the same data directory is refused with a reason.
    let second = run(dir.path(), &["serve"]);
    assert!(!second.status.success());
    assert!(String::from_utf8_lossy(&second.stderr).contains("another grabd"));

    // On SIGTERM during a render, the service finishes it first.
    while page.requests.try_recv().is_ok() {}
    std::thread::scope(|scope| {
        let open = scope.spawn(|| post(&base, &live, &page.url));
        page.requests.recv_timeout(TIMEOUT).unwrap();
        service.terminate();
        service.until("Stopping");
        page.answer.send(()).unwrap();
        let (status, grab) = open.join().unwrap();
        assert_eq!((status, grab["status"].as_str()), (200, Some("done")));
    });
    service.wait();
    assert_no_leftovers(dir.path());

    // The second start finds the data of the first.
    let mut service = RunningService::start(dir.path(), &[]);
    let base = service.word_after("REST ");
    let shown = service.until("live key ");
    assert!(shown.contains("“first live key”") && shown.contains(&live[live.len() - 4..]), "{shown}");
    assert!(service.until("admin key create").ends_with(" default"));
    service.until("Stop with");
    let output = service.output.join("\n");
    assert!(!output.contains(&live) && !output.contains(&test), "keys are printed only when they are made: {output}");
    page.answer.send(()).unwrap();
    assert_eq!(post(&base, &live, &page.url).0, 200);
    service.terminate();
    service.wait();
    assert_no_leftovers(dir.path());
}

#[test]
fn first_start_without_a_terminal_stores_its_keys_but_does_not_print_them() {
    let dir = open_dir();
    let mut service = RunningService::start(dir.path(), &[]);
    service.until("with a key in GRAB_API_KEY");
    service.terminate();
    service.until("Stopped.");
    let printed = service.output.join("\n");
    service.wait();
    let keys = std::fs::read_to_string(dir.path().join("data/keys.json")).unwrap();
    let keys: serde_json::Value = serde_json::from_str(&keys).unwrap();
    for name in ["live_key", "test_key"] {
        assert!(!printed.contains(keys[name].as_str().unwrap()), "{printed}");
    }
}

#[test]
fn browser_that_never_starts_ends_the_service_with_the_reason() {
    let dir = open_dir();
    let mut command = grabd(dir.path());
    command.env("GRABD_BROWSER__EXECUTABLE", "/bin/false").arg("serve").stdout(Stdio::null()).stderr(Stdio::piped());
    let (code, stderr_text) = wait_for_exit(command.spawn().unwrap());
    assert_eq!(code, Some(1), "{stderr_text}");
    assert!(stderr_text.contains("attempt=3"), "{stderr_text}");
    let last = stderr_text.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("grabd: ") && last.contains("does not start") && last.contains("grabd doctor"),
        "{stderr_text}"
    );
    assert_no_leftovers(dir.path());
}

#[test]
fn browser_that_cannot_restart_ends_the_service_with_the_reason() {
    let dir = open_dir();
    let program = dir.path().join("program");
    std::os::unix::fs::symlink(grabd_browser::find_executable(None, "").unwrap(), &program).unwrap();
    let mut command = grabd(dir.path());
    command.env("GRABD_BROWSER__EXECUTABLE", &program).arg("serve").stderr(Stdio::piped());
    let mut service = RunningService::of(&mut command);
    service.until("is up");
    std::fs::remove_file(&program).unwrap();
    std::os::unix::fs::symlink("/bin/false", &program).unwrap();
    signal(browser_of(&dir.path().join("run")), Signal::KILL);
    service.until("Stopping");
    let stderr = service.child.stderr.take().unwrap();
    let stderr_text = std::io::read_to_string(stderr).unwrap();
    assert_eq!(service.child.wait().unwrap().code(), Some(1), "{stderr_text}");
    let last = stderr_text.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("grabd: ") && last.contains("beyond help") && last.contains("does not start"),
        "{stderr_text}"
    );
    assert_no_leftovers(dir.path());
}

#[test]
fn leftovers_of_a_killed_service_are_removed_by_the_next_start() {
    let dir = open_dir();
    let temp_dir = |name: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = dir.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let serve = |temp_dir: &Path, data: &str| {
        let mut command = grabd(dir.path());
        command.env_remove("GRABD_BROWSER__RUN_DIR").env("GRABD_DATA_DIR", dir.path().join(data));
        let mut service = RunningService::of(command.env("TMPDIR", temp_dir).arg("serve"));
        service.until("is up");
        service
    };
    let (first, second) = (temp_dir("first"), temp_dir("second"));
    // Another service, which shares the temporary directory.
    let other_service = serve(&first, "other_service");
    let other_browser = browser_of(&first);

    let mut killed = serve(&first, "data");
    let leftover = processes_of(&first).into_iter().map(|(pid, _)| pid);
    let leftover =
        leftover.filter(|pid| *pid != other_browser).filter(|pid| parent(*pid) == killed.child.id()).max().unwrap();
    // A stopped browser does not notice the end of its service.
    signal(leftover, Signal::STOP);
    signal(killed.child.id(), Signal::KILL);
    killed.child.wait().unwrap();
    assert!(Path::new(&format!("/proc/{leftover}")).exists());

    let next = serve(&second, "data");
    assert!(!is_running(leftover), "the browser of the killed service is still running");
    assert_eq!(std::fs::read_dir(&first).unwrap().count(), 1, "only the other service's directory may remain");
    assert!(is_running(other_browser), "the other service's browser was ended");
    for service in [next, other_service] {
        service.terminate();
        service.wait();
    }
    assert_eq!(processes_of(dir.path()), []);
}

fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').and_then(|(_, rest)| rest.split(' ').nth(2)?.parse().ok()).unwrap_or_default()
}

/// A killed process remains a zombie with an empty command line until its parent waits for it.
fn is_running(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

#[test]
fn two_services_cannot_share_a_run_directory() {
    let dir = open_dir();
    let mut service = RunningService::start(dir.path(), &[]);
    service.until("is up");
    let browser = browser_of(&dir.path().join("run"));
    let mut command = grabd(dir.path());
    let second = command.env("GRABD_DATA_DIR", dir.path().join("other")).arg("serve").output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let stderr_text = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(stderr_text.contains("another service keeps its browsers there"), "{stderr_text}");
    assert!(is_running(browser));
    service.terminate();
    service.wait();
}

/// A user who signed up and has not verified the address.
fn sign_up(dir: &Path, email: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(&format!("sqlite://{}", dir.join("data/grabd.db").display())).await.unwrap();
        let now = Timestamp::from_ms(1_800_000_000_000);
        let initial_team = InitialTeam::New(random::team_id(now), "A team".into());
        let (id, email) = (random::user_id(now), Email::parse(email).unwrap());
        let user = NewUser { id, email, password_hash: String::new(), initial_team, verified: false, now };
        store.accounts().create_user(user).await.unwrap();
        store.close().await;
    });
}

#[test]
fn unverified_user_cannot_be_made_an_operator() {
    let dir = open_dir();
    admin(dir.path(), &["team", "create", "default"]);
    sign_up(dir.path(), "eve@example.com");
    let refused = run(dir.path(), &["admin", "user", "operator", "eve@example.com"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && text.contains("admin user verify eve@example.com"), "{text}");
    assert_eq!(admin(dir.path(), &["user", "list"])["data"][0]["verified"], false);
    assert_eq!(admin(dir.path(), &["user", "verify", "Eve@example.com"])["verified"], true);
    assert_eq!(admin(dir.path(), &["user", "list"])["data"][0]["verified"], true);
    admin(dir.path(), &["user", "operator", "eve@example.com"]);
}

#[test]
fn second_factor_of_a_lost_device_is_listed_and_removed() {
    let dir = open_dir();
    let user = admin(dir.path(), &["user", "create", "ada@example.com"])["user_id"].as_str().unwrap().to_owned();
    let second_factor = || admin(dir.path(), &["user", "list"])["data"][0]["second_factor"].clone();
    let remove = || admin(dir.path(), &["user", "remove-second-factor", "Ada@example.com"])["removed"].clone();
    assert_eq!((second_factor(), remove()), (false.into(), false.into()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(&format!("sqlite://{}", dir.path().join("data/grabd.db").display())).await.unwrap();
        let (user, now) = (user.parse().unwrap(), Timestamp::from_ms(1_800_000_000_000));
        let (secret, recovery_codes) = (vec![7; 61], vec![[1; 32]]);
        let factor = NewSecondFactor { user, secret, step: 1, recovery_codes, keep: [0; 32], now };
        assert!(store.accounts().turn_on_second_factor(factor).await.unwrap());
        store.close().await;
    });
    assert_eq!((second_factor(), remove(), second_factor()), (true.into(), true.into(), false.into()));
    let trail = admin(dir.path(), &["audit"]);
    let removed = trail["data"].as_array().unwrap().iter().filter(|entry| entry["action"] == "second_factor.remove");
    assert_eq!(removed.map(|entry| entry["target"].clone()).collect::<Vec<_>>(), [user]);
}

#[test]
fn users_are_created_listed_and_removed() {
    let dir = open_dir();
    let team = admin(dir.path(), &["team", "create", "default"]);
    // The first member of a team is its owner.
    let ada = admin(dir.path(), &["user", "create", "Ada@Example.com", "--team", "default"]);
    assert_eq!((&ada["team_id"], &ada["role"]), (&team["team_id"], &Value::from("owner")));
    assert_eq!((&ada["email"], ada["password"].as_str().unwrap().len()), (&Value::from("ada@example.com"), 22));
    let bob = admin(dir.path(), &["user", "create", "bob@example.com"]);
    assert_eq!((&bob["team_name"], &bob["role"]), (&Value::from("bob"), &Value::from("owner")));
    assert_ne!(bob["password"], ada["password"]);
    let eve = admin(dir.path(), &["user", "create", "eve@example.com", "--team", "default"]);
    assert_eq!((&eve["team_id"], &eve["role"]), (&team["team_id"], &Value::from("member")));

    let text = run(dir.path(), &["admin", "user", "create", "zoe@example.com"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("a new team") && text.contains("The password is not shown again"), "{text}");
    let create_with_password = |password: &str| {
        let mut command = grabd(dir.path());
        command.args(["admin", "user", "create", "kim@example.com", "--password-stdin"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(password.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let (success, text) = create_with_password("too short\n");
    assert!(!success && text.contains("12 to 256 characters; got 9"), "{text}");
    let (success, text) = create_with_password("a password of her own\n");
    assert!(success && !text.contains("a password of her own") && !text.contains("shown again"), "{text}");
    let (success, text) = create_with_password("a password of her own\n");
    assert!(!success && text.contains("somebody has that e-mail address"), "{text}");

    // The operator role is listed, granted and revoked.
    let uma = admin(dir.path(), &["user", "create", "uma@example.com", "--operator"]);
    assert_eq!((&uma["operator"], &eve["operator"]), (&Value::from(true), &Value::from(false)));
    let operators = || {
        let listed = admin(dir.path(), &["user", "list"]);
        let users = listed["data"].as_array().unwrap().clone();
        users.into_iter().filter(|user| user["operator"] == true).map(|user| user["email"].clone()).collect::<Vec<_>>()
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
fn directories_that_other_users_made_do_not_prevent_the_start() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let dir = open_dir();
    let temporary = dir.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(0o1777)).unwrap();
    let command = || {
        let mut command = grabd(dir.path());
        command.env_remove("GRABD_BROWSER__RUN_DIR").env("TMPDIR", &temporary);
        command
    };
    std::fs::create_dir(dir.path().join("data")).unwrap();
    let uid = rustix::process::getuid().as_raw();
    let guessed = grabd_browser::short_name(&dir.path().join("data").canonicalize().unwrap());
    let planted = temporary.join(format!("grabd-{uid}-{guessed}"));
    std::fs::create_dir(&planted).unwrap();
    if uid == 0 {
        chown(&planted, Some(60_001), Some(60_001)).unwrap();
    }
    std::os::unix::fs::symlink("/etc", planted.join("browser-0")).unwrap();
    let made = || -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| *path != planted).collect()
    };

    let mut service = RunningService::of(command().arg("serve"));
    service.until("is up");
    let first = made();
    let [run_dir] = &first[..] else { panic!("{first:?}") };
    let data = std::fs::metadata(run_dir).unwrap();
    assert_eq!((data.uid(), data.permissions().mode() & 0o707), (uid, 0o700), "{}", run_dir.display());
    // Killed: the next start ends its browsers, and removes what it left.
    let browser = browser_of(run_dir);
    signal(service.child.id(), Signal::KILL);
    service.child.wait().unwrap();
    let mut service = RunningService::of(command().arg("serve"));
    service.until("is up");
    assert!(!is_running(browser) && !run_dir.exists());
    let second = made();
    assert!(second.len() == 1 && second != first, "{second:?}");
    service.terminate();
    service.wait();
    assert_eq!(made(), Vec::<std::path::PathBuf>::new());
    assert!(planted.join("browser-0").is_symlink(), "what others made is left alone");
}

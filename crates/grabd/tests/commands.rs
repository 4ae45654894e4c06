//! What the commands print and create, and what the environment may contain.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it stands")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A user that owns nothing on this machine.
const OTHER_USER: u32 = 60_001;

fn grabd(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grabd"));
    for name in ["HTTP", "GRPC", "METRICS"] {
        command.env(format!("GRABD_{name}__LISTEN"), "127.0.0.1:0");
    }
    command.env("GRABD_DATA_DIR", dir.join("data")).current_dir(dir).stdin(Stdio::null());
    command
}

fn run(dir: &Path, args: &[&str]) -> Output {
    grabd(dir).args(args).output().unwrap()
}

fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].concat().iter().map(|&byte| char::from(byte)).collect()
}

fn admin(dir: &Path, args: &[&str]) -> serde_json::Value {
    let output = run(dir, &[&["admin"], args, &["--json"]].concat());
    assert!(output.status.success(), "{args:?}: {}", text(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A directory that the browser's user may traverse.
fn open_dir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

/// Everything below a directory, with its owner.
fn tree(dir: &Path) -> BTreeMap<PathBuf, u32> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().map(Result::unwrap) {
        let metadata = entry.metadata().unwrap();
        found.insert(entry.path(), metadata.uid());
        if metadata.is_dir() {
            found.extend(tree(&entry.path()));
        }
    }
    found
}

const READING: [&[&str]; 16] = [
    &["doctor"],
    &["migrate", "--check"],
    &["admin", "team", "list"],
    &["admin", "team", "export", "default"],
    &["admin", "team", "limits", "default"],
    &["admin", "key", "list", "default"],
    &["admin", "credits", "show", "default"],
    &["admin", "user", "list"],
    &["admin", "ledger", "verify"],
    &["admin", "ledger", "show", "default"],
    &["admin", "domain", "list"],
    &["admin", "identity", "keys"],
    &["admin", "evidence", "keys"],
    &["admin", "audit"],
    &["admin", "nodes"],
    &["admin", "backup", "backup"],
];

#[test]
fn commands_that_read_create_nothing() {
    let dir = open_dir();
    for command in READING {
        let output = run(dir.path(), command);
        assert_eq!(tree(dir.path()), BTreeMap::new(), "{command:?}: {}", text(&output));
        match command[0] {
            "admin" => {
                assert!(!output.status.success(), "{command:?}");
                assert!(text(&output).contains("there is no database"), "{command:?}: {}", text(&output));
            }
            _ => assert!(text(&output).contains("creates it") || text(&output).contains("will be created")),
        }
    }
    // Nor do they change what there is, or take it from the user of the service.
    assert!(run(dir.path(), &["admin", "team", "create", "default"]).status.success());
    if rustix::process::geteuid().is_root() {
        for path in tree(dir.path()).keys() {
            chown(path, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
        }
    }
    let before = tree(dir.path());
    for command in &READING[..READING.len() - 1] {
        let output = run(dir.path(), command);
        assert!(output.status.success() || command[0] == "doctor", "{command:?}: {}", text(&output));
        assert_eq!(tree(dir.path()), before, "{command:?}");
    }
}

#[test]
fn keys_are_not_replaced_without_the_key_file() {
    let dir = open_dir();
    assert!(run(dir.path(), &["admin", "team", "create", "default"]).status.success());
    let key_file = dir.path().join("data/secrets.key");
    if key_file.exists() {
        std::fs::remove_file(&key_file).unwrap();
    }
    for what in ["identity", "evidence"] {
        let output = run(dir.path(), &["admin", what, "rotate"]);
        let text = text(&output);
        assert!(!output.status.success() && text.contains("secrets.key does not exist"), "{what}: {text}");
        assert!(!key_file.exists(), "{what}");
    }
}

#[test]
fn key_is_said_to_be_published_only_if_requests_are_signed() {
    let dir = open_dir();
    assert!(run(dir.path(), &["admin", "team", "create", "default"]).status.success());
    std::fs::write(dir.path().join("data/secrets.key"), format!("{}=\n", "A".repeat(43))).unwrap();
    let rotate = ["admin", "identity", "rotate", "--at-once"];
    let unsigned = text(&run(dir.path(), &rotate));
    assert!(unsigned.contains("no key is published") && !unsigned.contains("from now on"), "{unsigned}");
    let mut command = grabd(dir.path());
    command.env("GRABD_BROWSER__IDENTITY", "signed").env("GRABD_BROWSER__IDENTITY_URL", "https://grabs.example.com");
    let signed = text(&command.args(rotate).output().unwrap());
    assert!(signed.contains("is published from now on"), "{signed}");
}

#[test]
fn doctor_names_a_key_file_that_does_not_decrypt_the_key_of_evidence() {
    let dir = open_dir();
    let assert_says = |mark: &str, detail: &str| {
        // Without a browser, whose checks take seconds.
        let output =
            grabd(dir.path()).env("GRABD_BROWSER__EXECUTABLE", "/nonexistent/browser").arg("doctor").output().unwrap();
        let report = text(&output);
        let line = report.lines().find(|line| line.contains("  evidence "));
        assert!(line.is_some_and(|line| line.starts_with(mark) && line.contains(detail)), "{detail}: {report}");
    };
    assert_says("ok ", "made with the first evidence");
    assert!(run(dir.path(), &["admin", "team", "create", "default"]).status.success());
    let key_file = dir.path().join("data/secrets.key");
    std::fs::write(&key_file, format!("{}=\n", "A".repeat(43))).unwrap();
    let rotated = run(dir.path(), &["admin", "evidence", "rotate"]);
    assert!(rotated.status.success(), "{}", text(&rotated));
    assert_says("ok ", "secrets.key decrypts the key");
    std::fs::write(&key_file, format!("B{}=\n", "A".repeat(42))).unwrap();
    assert_says("FAIL", "run `grabd admin evidence rotate`");
    std::fs::remove_file(&key_file).unwrap();
    assert_says("FAIL", "secrets.key does not decrypt the key");
    assert!(!key_file.exists());
}

#[test]
fn root_makes_no_files_that_the_service_could_not_use() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let dir = open_dir();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    chown(&data, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    for command in [&["admin", "team", "create", "a"][..], &["migrate"], &["admin", "restore", "x"]] {
        let output = run(dir.path(), command);
        let text = text(&output);
        assert!(!output.status.success() && text.contains("--reuid 60001") && text.contains("root"), "{text}");
    }
    assert_eq!(tree(&data), BTreeMap::new());
}

#[test]
fn variables_of_other_programs_are_a_warning_and_mistyped_settings_are_not() {
    let dir = open_dir();
    let with = |variables: &[(&str, &str)], args: &[&str]| {
        text(&grabd(dir.path()).envs(variables.iter().copied()).args(args).output().unwrap())
    };
    let foreign = [("GRABD_EDGE_SERVICE_HOST", "10.0.0.1"), ("GRABD_PORT", "tcp://10.0.0.1:80"), ("GRABD_X__Y", "1")];
    let report = with(&foreign, &["doctor"]);
    assert!(report.contains("GRABD_EDGE_SERVICE_HOST, GRABD_PORT, GRABD_X__Y are no settings"), "{report}");
    for (mistyped, meant) in [
        ("GRABD_HTTP__LISTNE", "http.listne"),
        ("GRABD_HTTP_LISTEN", "`http.listen` is one"),
        ("GRABD_DATADIR", "`data_dir` is one"),
        ("GRABD_LIMITS__REQUESTS__PER_MINUTE", "`limits.requests_per_minute` is one"),
    ] {
        let problems = with(&[(mistyped, "1")], &["doctor"]);
        assert!(problems.contains(mistyped) && problems.contains(meant), "{problems}");
    }
    // Values, ranges, names and the file: one run reports all.
    std::fs::write(dir.path().join("grabd.toml"), "[http]\nconections = 1\n[browser]\nslots = 65\n").unwrap();
    let wrong = [
        ("GRABD_HTTP__LISTNE", "x"),
        ("GRABD_GRPC__REFLECTION", "perhaps"),
        ("GRABD_LIMITS__ASYNC_QUEUE", "0"),
        ("GRABD_METRICS__LISTEN", "nowhere"),
    ];
    let problems = with(&wrong, &["--config", "grabd.toml", "doctor"]);
    for named in ["http.listne", "grpc.reflection", "limits.async_queue", "metrics.listen", "conections", "slots"] {
        assert!(problems.contains(named), "{named}: {problems}");
    }
}

#[test]
fn credentials_of_systemd_are_settings_between_the_file_and_the_environment() {
    let dir = open_dir();
    for (key, value) in [("database.url", "mysql://x\n"), ("browser.slots", "65"), ("limits.async_queue", "0")] {
        std::fs::write(dir.path().join(key), value).unwrap();
    }
    std::fs::write(dir.path().join("grabd.toml"), "[database]\nurl = \"\"\n").unwrap();
    let mut command = grabd(dir.path());
    command.env("CREDENTIALS_DIRECTORY", dir.path()).env("GRABD_LIMITS__ASYNC_QUEUE", "1");
    let problems = text(&command.args(["--config", "grabd.toml", "doctor"]).output().unwrap());
    assert!(problems.contains("database.url"), "{problems}");
    assert!(!problems.contains("async_queue"), "{problems}");
}

#[test]
fn log_of_a_failed_capture_names_its_request_and_has_each_member_once() {
    let dir = open_dir();
    let created = run(dir.path(), &["admin", "team", "create", "default", "--credits", "5", "--json"]);
    let created: serde_json::Value = serde_json::from_slice(&created.stdout).unwrap();
    let key = created["live_key"].as_str().unwrap();
    let mut command = grabd(dir.path());
    command.env("GRABD_LOG__FORMAT", "json").env("GRABD_EGRESS__ALLOW_CIDRS", "127.0.0.2/32");
    let mut service = command.arg("serve").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(service.stderr.take().unwrap()).lines().map_while(Result::ok);
    let start = log.by_ref().find(|line| line.contains("grabd is up")).unwrap();
    let start: serde_json::Value = serde_json::from_str(&start).unwrap();
    let rest = start["fields"]["rest"].as_str().unwrap();
    let create = |id: &str, url: &str| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            // With the workspace's features the client includes TLS, and needs a crypto provider.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let client = reqwest::Client::builder().no_proxy().build().unwrap();
            let request = client.post(format!("{rest}/grabs")).bearer_auth(key).header("x-request-id", id);
            request.json(&serde_json::json!({ "url": url })).send().await.unwrap().status().as_u16()
        })
    };
    // Nothing listens there.
    assert_eq!(create("fails-1", "http://127.0.0.2:64999/"), 500);
    assert_eq!(create("refused-1", "http://10.0.0.1/"), 400);
    kill_process(Pid::from_child(&service), Signal::TERM).unwrap();
    let log: Vec<String> = log.collect();
    assert!(service.wait().unwrap().success());
    let banner = std::io::read_to_string(service.stdout.take().unwrap()).unwrap();
    assert_eq!(banner, "", "the log as JSON is all there is");
    for (event, request, code) in
        [("a grab failed", "fails-1", "render_failed"), ("a create was refused", "refused-1", "ssrf_detected")]
    {
        let line = log.iter().find(|line| line.contains(event)).unwrap_or_else(|| panic!("{event}: {log:#?}"));
        assert!(line.contains(request) && line.contains(code), "{line}");
        for member in ["message", "code", "team.id", "request.id"] {
            assert_eq!(line.matches(&format!("\"{member}\":")).count(), 1, "{line}");
        }
    }
}

#[test]
fn keys_of_an_operators_team_are_not_stored() {
    let dir = open_dir();
    admin(dir.path(), &["team", "create", "acme"]);
    let output = run(dir.path(), &["serve", "--dev", "--capture", "http://127.0.0.2:9/"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--capture needs"), "{output:?}");
    assert!(!dir.path().join("data/keys.json").exists());
}

#[test]
fn new_user_gets_a_team_without_members_only_on_request() {
    let dir = open_dir();
    let team = admin(dir.path(), &["team", "create", "default", "--credits", "5"]);
    let ada = admin(dir.path(), &["user", "create", "ada.lovelace@example.com"]);
    assert_ne!(ada["team_id"], team["team_id"]);
    assert_eq!((ada["team_name"].as_str(), ada["role"].as_str()), (Some("ada lovelace"), Some("owner")));
    assert_eq!(ada["teams_without_members"], serde_json::json!([{ "team_id": team["team_id"], "name": "default" }]));
    let text = run(dir.path(), &["admin", "user", "create", "eve@example.com"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let command = format!("admin user add eve@example.com --team {}", team["team_id"].as_str().unwrap());
    assert!(text.contains(&command), "{text}");

    let bob = admin(dir.path(), &["user", "create", "bob@example.com", "--team", "default"]);
    assert_eq!((&bob["team_id"], bob["role"].as_str()), (&team["team_id"], Some("owner")));
    assert_eq!(bob["teams_without_members"], serde_json::json!([]));
    let added = admin(dir.path(), &["user", "add", "eve@example.com", "--team", "default"]);
    assert_eq!((&added["team_id"], added["role"].as_str()), (&team["team_id"], Some("member")));
    let changed = admin(dir.path(), &["user", "set-role", "eve@example.com", "--team", "default", "--role", "viewer"]);
    assert_eq!((&changed["team_id"], changed["role"].as_str()), (&team["team_id"], Some("viewer")));
    for (email, role, message) in [
        ("bob@example.com", "billing", "only owner"),
        ("ada.lovelace@example.com", "member", "not in the team"),
        ("eve@example.com", "Viewer", "owner, member, viewer, billing"),
    ] {
        let arguments = ["admin", "user", "set-role", email, "--team", "default", "--role", role];
        let refused = run(dir.path(), &arguments);
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && text.contains(message), "{email}: {text}");
    }
    let listed = admin(dir.path(), &["user", "list"]);
    assert!(listed["data"].as_array().unwrap().iter().all(|user| user["verified"] == true));
}

#[test]
fn settings_are_printed_and_unknown_ones_rejected() {
    let dir = open_dir();
    let printed = run(dir.path(), &["config"]);
    assert!(String::from_utf8_lossy(&printed.stdout).contains("requests_per_minute = 60"));
    let refused = grabd(dir.path()).env("GRABD_HTTP__LISTNE", "x").args(["admin", "team", "list"]).output().unwrap();
    assert!(!refused.status.success());
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("listne") && message.contains("grabd config"), "{message}");
}

#[test]
fn doctor_reports_problems_with_remedies() {
    let dir = open_dir();
    let healthy = run(dir.path(), &["doctor"]);
    let report = String::from_utf8_lossy(&healthy.stdout).into_owned();
    assert!(healthy.status.success(), "{report}");
    for name in ["data dir", "database", "egress"] {
        assert!(report.lines().any(|line| line.starts_with("ok") && line.contains(name)), "{name}: {report}");
    }
    assert!(report.contains("fonts have letters of all 41 writing systems"), "{report}");
    let sick =
        grabd(dir.path()).env("GRABD_BROWSER__EXECUTABLE", "/nonexistent/browser").arg("doctor").output().unwrap();
    let report = String::from_utf8_lossy(&sick.stdout).into_owned();
    assert!(!sick.status.success(), "{report}");
    assert!(report.lines().any(|line| line.starts_with("FAIL") && line.contains("/nonexistent/browser")), "{report}");
}

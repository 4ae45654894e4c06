//! The binary jails its browsers, whichever user starts it, and reports the result.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it stands")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Maximum time until a browser ends after its service was killed.
const TIMEOUT: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

/// The unprivileged user `nobody`, which every system has.
const NOBODY: u32 = 65_534;

/// Runs its arguments where no process can create a user namespace.
const WITHOUT_USER_NAMESPACES: &str =
    "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --inh-caps=-all -- \"$0\" \"$@\"";

/// A directory that every user may traverse, with a copy of the program, which every user must be able to execute.
struct Installation {
    dir: tempfile::TempDir,
    program: PathBuf,
}

/// A service that is killed on drop.
struct RunningService(Child);

impl Installation {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("bin/grabd");
        std::fs::create_dir(dir.path().join("bin")).unwrap();
        std::fs::copy(env!("CARGO_BIN_EXE_grabd"), &program).unwrap();
        for path in [dir.path(), &dir.path().join("bin")] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        Self { dir, program }
    }

    /// A command of `wrapper`, followed by the program and its argument.
    fn command(&self, wrapper: &[&str], jail: &str, argument: &str) -> Command {
        let line: Vec<&str> = wrapper.iter().copied().chain([self.program.to_str().unwrap(), argument]).collect();
        let mut command = Command::new(line[0]);
        command
            .args(&line[1..])
            .env("GRABD_DATA_DIR", self.dir.path().join("data"))
            .env("GRABD_BROWSER__RUN_DIR", self.dir.path().join("run"))
            .env("GRABD_BROWSER__NETWORK_JAIL", jail)
            .env("GRABD_HTTP__LISTEN", "127.0.0.1:0")
            .env("GRABD_GRPC__LISTEN", "127.0.0.1:0")
            .env("GRABD_METRICS__LISTEN", "127.0.0.1:0")
            .env("GRABD_EGRESS__DNS", "127.0.0.1:9")
            .current_dir(self.dir.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    fn run(&self, wrapper: &[&str], jail: &str, argument: &str) -> Output {
        self.command(wrapper, jail, argument).output().unwrap()
    }

    /// Processes with this installation's run directory on their command line.
    fn browsers(&self) -> Vec<Pid> {
        let marker = self.dir.path().join("run").display().to_string();
        let pids = std::fs::read_dir("/proc").unwrap().flatten().filter(|process| {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&marker)
        });
        pids.filter_map(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?)).collect()
    }

    /// The output of `grabd doctor`.
    fn doctor(&self, wrapper: &[&str], jail: &str) -> String {
        let output = self.run(wrapper, jail, "doctor");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }
}

impl RunningService {
    /// The line about the jail in the startup output.
    fn jail(&mut self) -> String {
        let lines = BufReader::new(self.0.stdout.as_mut().unwrap()).lines().map_while(Result::ok);
        // The line about the address guard follows that of the jail.
        let first = lines.take_while(|line| !line.starts_with("  egress"));
        first.filter(|line| line.starts_with("  jail")).collect()
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for RunningService {
    fn drop(&mut self) {
        self.kill();
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn assert_jailed(report: &str) {
    assert!(report.lines().any(|line| line.starts_with("ok") && line.contains("a network of its own")), "{report}");
    assert!(report.lines().any(|line| line.starts_with("ok") && line.contains(" guard ")), "{report}");
}

#[test]
fn browsers_of_any_user_are_jailed() {
    let installation = Installation::new();
    assert_jailed(&installation.doctor(&["setpriv", "--no-new-privs"], "required"));
    if is_root() {
        // The browser's user cannot access the program.
        let bin = installation.program.parent().unwrap();
        std::fs::set_permissions(bin, PermissionsExt::from_mode(0o700)).unwrap();
        assert_jailed(&installation.doctor(&["env"], "required"));
    }
}

#[test]
fn browsers_of_an_unprivileged_user_are_jailed() {
    if !is_root() {
        // Covered by the other test.
        return;
    }
    let installation = Installation::new();
    chown(installation.dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    assert_jailed(&installation.doctor(&user, "required"));
    assert_jailed(&installation.doctor(&[&user[..], &["--no-new-privs"]].concat(), "required"));
}

#[test]
fn required_jail_without_namespaces_fails_the_start() {
    let installation = Installation::new();
    let without_namespaces =
        ["unshare", "--map-user=1000", "--map-group=1000", "--keep-caps", "sh", "-c", WITHOUT_USER_NAMESPACES];
    let output = installation.run(&without_namespaces, "required", "serve");
    let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{output_text}");
    for part in ["network jail, which is required", "grants no user and network namespace", "max_user_namespaces"] {
        assert!(output_text.contains(part), "{part}: {output_text}");
    }
    let report = installation.doctor(&without_namespaces, "required");
    let is_reported = |line: &str| line.starts_with("FAIL  jail") && line.contains("max_user_namespaces");
    assert!(report.lines().any(is_reported), "{report}");
}

#[test]
fn unavailable_jail_is_reported_as_a_warning() {
    if !is_root() {
        // A service that is not root starts browsers as its own user, which can execute this program.
        return;
    }
    let installation = Installation::new();
    std::fs::set_permissions(&installation.program, PermissionsExt::from_mode(0o700)).unwrap();
    let report = installation.doctor(&["env"], "auto");
    assert!(report.lines().any(|line| line.starts_with("warn  jail") && line.contains("ermission denied")), "{report}");
    assert!(report.lines().any(|line| line.starts_with("ok") && line.contains(" guard ")), "{report}");

    let mut service =
        RunningService(installation.command(&["env"], "auto", "serve").stdout(Stdio::piped()).spawn().unwrap());
    let output_text = service.jail();
    assert!(output_text.contains("ATTENTION") && output_text.contains("ermission denied"), "{output_text}");
}

#[test]
fn jailed_browsers_end_with_a_killed_service() {
    let installation = Installation::new();
    let mut service =
        RunningService(installation.command(&["env"], "required", "serve").stdout(Stdio::piped()).spawn().unwrap());
    assert!(service.jail().contains("a network of its own"));
    let browsers = installation.browsers();
    assert!(!browsers.is_empty());
    let handles: Vec<_> = browsers.into_iter().map(|pid| pidfd_open(pid, PidfdFlags::empty()).unwrap()).collect();
    service.kill();
    for handle in handles {
        let ended = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&TIMEOUT)).unwrap();
        assert_eq!(ended, 1, "a browser is still running after its service was killed");
    }
}

/// A disabled jail is reported as such.
#[test]
fn disabled_jail_is_reported() {
    let report = Installation::new().doctor(&["env"], "off");
    assert!(report.lines().any(|line| line.starts_with("ok") && line.contains("off by configuration")), "{report}");
}

#[test]
fn invalid_jail_setting_is_rejected() {
    let output = Installation::new().run(&["env"], "always", "doctor");
    let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && output_text.contains("network_jail"), "{output_text}");
}

#[test]
fn launcher_without_a_service_fails_immediately() {
    let output = Command::new(Path::new(env!("CARGO_BIN_EXE_grabd")))
        .args(["jailed-browser", "1", "1000", "/bin/true"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!output.status.success());
}

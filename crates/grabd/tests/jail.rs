//! The binary jails its browsers, whoever starts it, and says so.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it stands")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// How long a browser may outlive its service.
const PATIENCE: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

/// A user without rights, as every system has it.
const NOBODY: u32 = 65_534;

/// Starts the program it is given where no process can make a user namespace.
const FORBIDDEN: &str =
    "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --inh-caps=-all -- \"$0\" \"$@\"";

/// A directory that anybody may pass through, with a copy of the program, since anybody has to reach that too.
struct Place {
    dir: tempfile::TempDir,
    program: PathBuf,
}

/// A service, killed when it is dropped.
struct Running(Child);

impl Place {
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

    /// `wrapper`, which is followed by the program and its argument.
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

    /// Runs it to its end.
    fn run(&self, wrapper: &[&str], jail: &str, argument: &str) -> Output {
        self.command(wrapper, jail, argument).output().unwrap()
    }

    /// Processes with this place's browser directory on their command line.
    fn browsers(&self) -> Vec<Pid> {
        let marker = self.dir.path().join("run").display().to_string();
        let pids = std::fs::read_dir("/proc").unwrap().flatten().filter(|process| {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&marker)
        });
        pids.filter_map(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?)).collect()
    }

    /// What the doctor says of the jail and of the browser in it.
    fn doctor(&self, wrapper: &[&str], jail: &str) -> String {
        let output = self.run(wrapper, jail, "doctor");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }
}

impl Running {
    /// What its first lines say of the jail.
    fn jail(&mut self) -> String {
        let lines = BufReader::new(self.0.stdout.as_mut().unwrap()).lines().map_while(Result::ok);
        // The address guard's line comes behind the jail's.
        let first = lines.take_while(|line| !line.starts_with("  egress"));
        first.filter(|line| line.starts_with("  jail")).collect()
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Running {
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
fn whoever_starts_it_has_his_browsers_jailed() {
    let place = Place::new();
    assert_jailed(&place.doctor(&["setpriv", "--no-new-privs"], "required"));
    if is_root() {
        // The program lies where the browser's user cannot go.
        let bin = place.program.parent().unwrap();
        std::fs::set_permissions(bin, PermissionsExt::from_mode(0o700)).unwrap();
        assert_jailed(&place.doctor(&["env"], "required"));
    }
}

#[test]
fn a_user_without_rights_has_them_jailed_too() {
    if !is_root() {
        // Then the other test has shown it.
        return;
    }
    let place = Place::new();
    chown(place.dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    assert_jailed(&place.doctor(&user, "required"));
    assert_jailed(&place.doctor(&[&user[..], &["--no-new-privs"]].concat(), "required"));
}

#[test]
fn where_namespaces_are_forbidden_a_required_jail_keeps_the_service_from_starting() {
    let place = Place::new();
    let forbidden = ["unshare", "--map-user=1000", "--map-group=1000", "--keep-caps", "sh", "-c", FORBIDDEN];
    let output = place.run(&forbidden, "required", "serve");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{told}");
    for part in ["network jail, which is required", "grants no user and network namespace", "max_user_namespaces"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let report = place.doctor(&forbidden, "required");
    let is_told = |line: &str| line.starts_with("FAIL  jail") && line.contains("max_user_namespaces");
    assert!(report.lines().any(is_told), "{report}");
}

#[test]
fn where_no_jail_can_be_made_the_service_runs_without_and_warns() {
    if !is_root() {
        // Who is not root starts browsers as himself, who has just started this program.
        return;
    }
    let place = Place::new();
    std::fs::set_permissions(&place.program, PermissionsExt::from_mode(0o700)).unwrap();
    let report = place.doctor(&["env"], "auto");
    assert!(report.lines().any(|line| line.starts_with("warn  jail") && line.contains("ermission denied")), "{report}");
    assert!(report.lines().any(|line| line.starts_with("ok") && line.contains(" guard ")), "{report}");

    let mut service = Running(place.command(&["env"], "auto", "serve").stdout(Stdio::piped()).spawn().unwrap());
    let told = service.jail();
    assert!(told.contains("ATTENTION") && told.contains("ermission denied"), "{told}");
}

#[test]
fn a_killed_service_takes_its_jailed_browsers_along() {
    let place = Place::new();
    let mut service = Running(place.command(&["env"], "required", "serve").stdout(Stdio::piped()).spawn().unwrap());
    assert!(service.jail().contains("a network of its own"));
    let browsers = place.browsers();
    assert!(!browsers.is_empty());
    let handles: Vec<_> = browsers.into_iter().map(|pid| pidfd_open(pid, PidfdFlags::empty()).unwrap()).collect();
    service.kill();
    for handle in handles {
        let ended = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&PATIENCE)).unwrap();
        assert_eq!(ended, 1, "a browser outlives its service");
    }
}

/// Nothing of a jail is left in a service that wants none.
#[test]
fn one_that_is_off_is_told() {
    let report = Place::new().doctor(&["env"], "off");
    assert!(report.lines().any(|line| line.starts_with("ok") && line.contains("off by configuration")), "{report}");
}

#[test]
fn a_jail_is_one_of_three() {
    let output = Place::new().run(&["env"], "always", "doctor");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("network_jail"), "{told}");
}

#[test]
fn a_stray_call_as_the_launcher_ends_at_once() {
    let output = Command::new(Path::new(env!("CARGO_BIN_EXE_grabd")))
        .args(["jailed-browser", "1", "/bin/true"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!output.status.success());
}

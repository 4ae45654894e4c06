//! A service whose output is no longer read, such as one started by `grabd serve | head -1`.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

#[test]
fn service_drains_and_stops_in_order_when_nobody_reads_its_output() {
    let dir = tempfile::tempdir().unwrap();
    // The browser may run as another user, who must be able to traverse the directory.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut service = Command::new(env!("CARGO_BIN_EXE_grabd"))
        .args(["serve"])
        .env("GRABD_DATA_DIR", dir.path().join("data"))
        .env("GRABD_BROWSER__RUN_DIR", dir.path().join("run"))
        .env("GRABD_HTTP__LISTEN", "127.0.0.1:0")
        .env("GRABD_GRPC__LISTEN", "127.0.0.1:0")
        .env("GRABD_METRICS__LISTEN", "127.0.0.1:0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = service.stderr.take().unwrap();
    let log = std::thread::spawn(move || {
        let mut log = String::new();
        errors.read_to_string(&mut log).map(|_| log)
    });

    // The pipe is closed after the first line, and the service prints more when it is told to stop.
    let output = BufReader::new(service.stdout.take().unwrap());
    let up = output.lines().map_while(Result::ok).find(|line| line.contains("Stop with Ctrl-C"));
    kill_process(Pid::from_child(&service), Signal::TERM).unwrap();

    let status = service.wait().unwrap();
    let log = log.join().unwrap().unwrap();
    assert!(up.is_some(), "{log}");
    assert!(status.success() && !log.contains("panicked"), "{status}: {log}");
}

//! The memory of the service after many large images.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it stands")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::{Value, json};

/// Concurrent clients.
const CLIENTS: u32 = 16;
/// Grabs of each client.
const GRABS: u32 = 4;
/// What may remain, in bytes. It is 20 MiB with a fixed threshold, and at least 130 without.
const GROWTH: u64 = 64 << 20;

/// A service that is ended with the test.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl Service {
    /// The memory in use, in bytes.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }
}

#[test]
fn memory_of_freed_images_is_returned() {
    let dir = tempfile::tempdir().unwrap();
    // The browser may run as another user, who must be able to traverse the directory.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let grabd = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_grabd"));
        command
            .env_remove("MALLOC_MMAP_THRESHOLD_")
            .env("GRABD_DATA_DIR", dir.path().join("data"))
            .env("GRABD_BROWSER__RUN_DIR", dir.path().join("run"))
            .env("GRABD_HTTP__LISTEN", "127.0.0.1:0")
            .env("GRABD_GRPC__LISTEN", "127.0.0.1:0")
            .env("GRABD_METRICS__LISTEN", "127.0.0.1:0")
            .env("GRABD_LIMITS__REQUESTS_PER_MINUTE", "100000")
            // No image has to wait for the memory of another, so that none is refused on a busy machine.
            .env("GRABD_CAPTURE__IMAGE_MEMORY_MEGABYTES", "1024")
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    let mut service = Service(grabd().arg("serve").stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(service.0.stdout.take().unwrap()).lines().map_while(Result::ok);
    let address =
        lines.find_map(|line| Some(line.split_once("http://")?.1.split(['/', ' ']).next()?.to_owned())).unwrap();
    assert!(lines.any(|line| line.contains("Stop with Ctrl-C")));
    let team = grabd().args(["admin", "team", "create", "large", "--json"]).output().unwrap();
    let team: Value = serde_json::from_slice(&team.stdout).unwrap();
    let key = team["test_key"].as_str().unwrap();

    let before = service.memory();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let address = &address;
            scope.spawn(move || (0..GRABS).for_each(|grab| create(address, key, 1_600 + client * GRABS + grab)));
        }
    });
    let growth = service.memory().saturating_sub(before);
    assert!(growth < GROWTH, "{} MiB more than before", growth >> 20);
}

/// Creates a grab of a test key, whose image the service draws. It draws one for each width.
fn create(address: &str, key: &str, width: u32) {
    let body = json!({ "url": "https://example.com/", "width": width, "height": 1080, "full_page": true }).to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /v1/grabs HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
}

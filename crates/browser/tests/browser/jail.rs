//! The jail isolates a browser without other protections: flags, a context's proxy, or the guard.

use std::fs;
use std::io::{BufRead, BufReader, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use grabd_browser::{Chromium, Jail, NetworkJail, Options, SelfTestReport, StartError, find_executable};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use crate::rig::{Rig, guard, jailed, open_directory, request};
use crate::selftest::browser_without_flag;
use crate::site::{Reply, Site, html};

const LAUNCHER: &str = env!("CARGO_BIN_EXE_grabd-browser-launcher");

/// Upper limit of every wait for an unprotected browser.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The user `nobody`, as which browsers run if the test runs as root.
const NOBODY: u32 = 65_534;

/// Requests the canaries through every channel concurrently, and reports when all have ended.
const PAGE: &str = "<!doctype html><script type=module>
    const late = () => new Promise((ended) => setTimeout(() => ended('late'), 3000));
    const outcome = (start) => Promise.race([late(), new Promise(start)]);
    let candidates = 0;
    const [fetched, socket] = await Promise.all([
        outcome((ended) => fetch('http://127.0.0.1:{tcp}/').then(() => ended('answered'), () => ended('failed'))),
        outcome((ended) => { new WebSocket('ws://127.0.0.1:{tcp}/').onclose = () => ended('closed') }),
        outcome((ended) => {
            const peer = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:{udp}' }] });
            peer.onicecandidate = ({ candidate }) => candidate ? candidates++ : ended();
            peer.createDataChannel('canary');
            peer.setLocalDescription();
        }),
    ]);
    await fetch(`/report?${fetched},${socket},${candidates}`);
</script>";

/// Two canaries on the host's loopback, which record what arrives.
struct Canaries {
    tcp: TcpListener,
    udp: UdpSocket,
}

/// A browser without network-related flags. Killed on drop.
struct UnprotectedBrowser {
    child: Child,
    _directory: tempfile::TempDir,
}

impl Canaries {
    fn new() -> Self {
        let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        Self { tcp, udp }
    }

    /// Whether TCP and UDP packets arrived.
    fn received(&self) -> (bool, bool) {
        (self.tcp.accept().is_ok(), self.udp.recv(&mut [0; 1]).is_ok())
    }

    /// Serves the page on `listener` until the page reports, and returns the report.
    fn report(&self, listener: &TcpListener) -> String {
        let (tcp, udp) = (self.tcp.local_addr().unwrap().port(), self.udp.local_addr().unwrap().port());
        let page = PAGE.replace("{tcp}", &tcp.to_string()).replace("{udp}", &udp.to_string());
        loop {
            wait_for(listener);
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let first = lines.next().unwrap_or_default();
            let _ = lines.take_while(|line| !line.is_empty()).count();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{page}",
                page.len()
            );
            // The browser may have disconnected.
            let _ = stream.write_all(answer.as_bytes());
            if let Some((_, report)) = first.split_once("/report?") {
                return report.split(' ').next().unwrap().to_owned();
            }
        }
    }
}

impl UnprotectedBrowser {
    /// Starts `program` with `arguments`, followed by the browser's.
    fn start(program: &str, arguments: &[&str], input: Stdio, port: u16) -> Self {
        let directory = open_directory();
        let profile = directory.path().join("profile");
        fs::create_dir(&profile).unwrap();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .args(["--headless", "--no-first-run", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(format!("http://127.99.0.1:{port}/"))
            .env_clear()
            .env("HOME", &profile)
            .stdin(input)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        if rustix::process::geteuid().is_root() {
            chown(&profile, Some(NOBODY), Some(NOBODY)).unwrap();
            command.uid(NOBODY).gid(NOBODY);
        }
        Self { child: command.spawn().unwrap(), _directory: directory }
    }
}

impl Drop for UnprotectedBrowser {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Waits until the socket is readable.
fn wait_for(socket: &impl AsFd) {
    let ready = poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&TIMEOUT.try_into().unwrap())).unwrap();
    assert_eq!(ready, 1, "no connection arrived");
}

/// The first socket that a launcher sends.
fn first_socket(launcher: &UnixStream) -> OwnedFd {
    wait_for(launcher);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; 100];
    let received =
        rustix::net::recvmsg(launcher, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)
            .unwrap();
    let socket = control.drain().find_map(|message| {
        let RecvAncillaryMessage::ScmRights(mut sockets) = message else { return None };
        sockets.next()
    });
    socket.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&bytes[..received.bytes])))
}

fn browser() -> PathBuf {
    find_executable(None, "").unwrap()
}

/// A field of a process's status. Empty if the process has exited.
fn status(pid: u32, field: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

/// Descendants of `pid`, with their command lines.
fn descendants(pid: u32) -> Vec<(u32, String)> {
    let mut found = vec![(pid, String::new())];
    let mut next = 0;
    while let Some((parent, _)) = found.get(next).cloned() {
        next += 1;
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        for child in children.split_whitespace().map(|child| child.parse().unwrap()) {
            let mut line = Vec::new();
            if let Ok(mut file) = fs::File::open(format!("/proc/{child}/cmdline")) {
                let _ = file.read_to_end(&mut line);
            }
            found.push((child, String::from_utf8_lossy(&line).into_owned()));
        }
    }
    found
}

/// Waits until each renderer has a system call filter. A renderer that starts has none yet; nothing reports when it has.
async fn sandboxed_renderers(browsers: &[u32]) {
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    loop {
        ticks.tick().await;
        let processes = browsers.iter().flat_map(|pid| descendants(*pid));
        let renderers = processes.filter(|(_, line)| line.contains("--type=renderer"));
        // The field is empty if the process has exited.
        let mut filters =
            renderers.map(|(pid, _)| status(pid, "Seccomp")).filter(|filter| !filter.is_empty()).peekable();
        if filters.peek().is_some() && filters.all(|filter| filter == "2") {
            return;
        }
    }
}

#[test]
fn unprotected_browser_without_jail_reaches_the_host() {
    let canaries = Canaries::new();
    let listener = TcpListener::bind("127.99.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let _browser = UnprotectedBrowser::start(browser().to_str().unwrap(), &[], Stdio::null(), port);
    let report = canaries.report(&listener);
    assert_eq!(canaries.received(), (true, true), "{report}");
}

#[test]
fn unprotected_browser_in_jail_reaches_nothing() {
    let canaries = Canaries::new();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let browser = browser();
    let arguments = ["jailed-browser", "2", "1000", browser.to_str().unwrap()];
    let bare = UnprotectedBrowser::start(LAUNCHER, &arguments, OwnedFd::from(theirs).into(), 3128);
    let listener = TcpListener::from(first_socket(&ours));
    assert_eq!(canaries.report(&listener), "failed,closed,0");
    assert_eq!(canaries.received(), (false, false));
    let interfaces = fs::read_to_string(format!("/proc/{}/net/dev", bare.child.id())).unwrap();
    let interfaces: Vec<&str> = interfaces.lines().skip(2).filter_map(|line| line.split(':').next()).collect();
    assert_eq!(interfaces.iter().map(|name| name.trim()).collect::<Vec<_>>(), ["lo"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn jailed_browser_passes_the_self_test_without_flags() {
    let directory = open_directory();
    let forgets = "--*webrtc-ip-handling-policy=*|--host-resolver-rules=*|--proxy-server=*|--proxy-bypass-list=*";
    let program = browser_without_flag(&directory, forgets);
    let rig = Rig::with(&[2], |options| options.executable = Some(program)).await;
    assert_eq!(rig.chromium.jail(), &Jail::Jailed);
    let report = rig.chromium.self_test(guard(&[2]).policy()).await;
    assert_eq!(report, Ok(SelfTestReport { canary: Some([127, 0, 0, 1].into()) }));
    rig.chromium.shutdown().await;
}

/// Checks the processes while they run a page: the browser ends them soon after.
#[tokio::test(flavor = "multi_thread")]
async fn jailed_browser_has_its_sandbox_and_no_inherited_resources() {
    let page = html("<script>fetch('/held')</script>");
    let site = Site::start(2, [("/", page), ("/held", Reply::Silence)]).await;
    let rig = Rig::start().await;
    let check = async {
        site.wait_for_request("/held").await;
        let network = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
        let browsers = rig.chromium.health().pids;
        for pid in &browsers {
            assert_ne!(network("self"), network(&pid.to_string()));
            for field in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
                assert_eq!(status(*pid, field), "0000000000000000", "{field}");
            }
            assert_eq!(fs::read_link(format!("/proc/{pid}/fd/0")).unwrap().to_str(), Some("/dev/null"));
        }
        tokio::time::timeout(TIMEOUT, sandboxed_renderers(&browsers)).await.expect("a renderer has no filter");
    };
    tokio::select! {
        capture = rig.render(request(&site.url("/"))) => panic!("the page ended: {:?}", capture.map(|ended| ended.metadata)),
        () = check => {}
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unavailable_jail_is_reported_or_fails_the_start() {
    let directory = open_directory();
    let broken = |network_jail| Options {
        network_jail,
        launcher: Some("/bin/false".into()),
        ..jailed(directory.path().join("browsers"))
    };
    let required = Chromium::start(broken(NetworkJail::Required), guard(&[2])).await.err();
    assert!(matches!(required, Some(StartError::Jail(_))), "{required:?}");
    let message = required.unwrap().to_string();
    assert!(message.contains("required") && message.contains("namespaces"), "{message}");

    for (network_jail, expected) in [(NetworkJail::Auto, "not here"), (NetworkJail::Off, "off by configuration")] {
        let chromium = Chromium::start(broken(network_jail), guard(&[2])).await.unwrap();
        let message = chromium.jail().to_string();
        assert!(message.starts_with(expected), "{message}");
        chromium.shutdown().await;
    }
}

/// The launcher's path need not be accessible to the browser's user.
#[tokio::test(flavor = "multi_thread")]
async fn launcher_in_an_inaccessible_directory_works() {
    let closed = tempfile::tempdir().unwrap();
    fs::set_permissions(closed.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let launcher = closed.path().join("launcher");
    fs::copy(LAUNCHER, &launcher).unwrap();
    let rig = Rig::with(&[2], |options| options.launcher = Some(launcher)).await;
    assert_eq!(rig.chromium.jail(), &Jail::Jailed);
    rig.chromium.shutdown().await;
}

/// A browser that has used all sockets of its jail while its successor is slow to start leases no more tabs. Waiting
/// grabs are assigned to the successor.
#[tokio::test(flavor = "multi_thread")]
async fn no_grab_is_lost_when_the_sockets_are_exhausted() {
    let site = Site::start(2, [("/", html("<body style='background:lime'>"))]).await;
    let url = site.url("/");
    let directory = open_directory();
    let (program, gate) = (directory.path().join("gated"), directory.path().join("gate"));
    let script =
        format!("#!/bin/sh\n[ ! -e {0} ] || read -r _ < {0}\nexec {1} \"$@\"\n", gate.display(), browser().display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let rig = Rig::with(&[2], |options| {
        options.executable = Some(program);
        (options.slots, options.spare_contexts, options.recycle_after) = (1, 1, 1);
    })
    .await;
    let first = rig.chromium.health().pids;
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    rustix::fs::mknodat(rustix::fs::CWD, &gate, rustix::fs::FileType::Fifo, mode, 0).unwrap();

    // One grab until recycling, eight until the successor is ready, one spare, and eight for failed tabs.
    for _ in 0..18 {
        assert_eq!(rig.grab(&url).await.colour(600, 400), "lime");
    }
    assert_eq!(rig.chromium.health().pids, first);
    let let_it_start = tokio::task::spawn_blocking(move || {
        // Blocks until the successor reads.
        let mut open = fs::File::options().write(true).open(&gate).unwrap();
        fs::remove_file(&gate).unwrap();
        open.write_all(b"\n").unwrap();
    });
    let (image, opened) = tokio::join!(rig.grab(&url), let_it_start);
    opened.unwrap();
    assert_eq!(image.colour(600, 400), "lime");
    rig.chromium.shutdown().await;
}

//! A browser with its guard, and what tests ask of pictures.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use grabd_browser::{Chromium, NetworkJail, Options};
use grabd_domain::address::Policy;
use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_domain::grabs::{Facts, Failure, FailureReason};
use grabd_domain::ids::GrabId;
use grabd_domain::render::{Capture, RenderError, RenderTask, Renderer};
use grabd_domain::target::TargetUrl;
use grabd_egress::Guard;
use uuid::Uuid;

/// A running browser that may reach 127.0.0.2 and nothing else on this machine.
pub(crate) struct Rig {
    pub(crate) chromium: Chromium,
    pub(crate) run_dir: PathBuf,
    _directory: tempfile::TempDir,
}

/// Allows loopback addresses by their last byte.
pub(crate) fn guard(allowed: &[u8]) -> Guard {
    let allow = allowed.iter().map(|last| format!("127.0.0.{last}/32").parse().unwrap()).collect();
    let policy = Policy { allow, ..Policy::default() };
    Guard::new(grabd_egress::Options { policy, ..grabd_egress::Options::default() }).unwrap()
}

/// Sends a signal to a process that a rig of this test started.
pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A directory that another user may pass through.
pub(crate) fn open_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o711)).unwrap();
    directory
}

/// Browsers as they are where the system lets them be jailed, which is where these tests run.
pub(crate) fn jailed(run_dir: impl Into<PathBuf>) -> Options {
    let launcher = env!("CARGO_BIN_EXE_grabd-browser-launcher");
    Options { network_jail: NetworkJail::Required, launcher: Some(launcher.into()), ..Options::new(run_dir) }
}

impl Rig {
    pub(crate) async fn start() -> Self {
        Self::with(&[2], |_| {}).await
    }

    pub(crate) async fn with(allowed: &[u8], change: impl FnOnce(&mut Options)) -> Self {
        // Twice in one process is once too often, which is no reason to fail.
        let _ = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_test_writer().try_init();
        let directory = open_directory();
        let run_dir = directory.path().join("browsers");
        let mut options = jailed(&run_dir);
        change(&mut options);
        let chromium = Chromium::start(options, guard(allowed)).await.unwrap();
        Self { chromium, run_dir, _directory: directory }
    }

    pub(crate) async fn render(&self, request: CaptureRequest) -> Result<Capture, RenderError> {
        self.chromium.render(task(request)).await
    }

    /// A picture of an address with everything else as usual.
    pub(crate) async fn grab(&self, url: &str) -> Picture {
        self.picture(request(url)).await
    }

    pub(crate) async fn picture(&self, request: CaptureRequest) -> Picture {
        let url = request.url.clone();
        match self.render(request).await {
            Ok(capture) => Picture::from(capture),
            Err(error) => panic!("{url:?}: {error:?}"),
        }
    }

    /// The failure of an address that must have one.
    pub(crate) async fn fails(&self, request: CaptureRequest) -> (Failure, Facts) {
        let url = request.url.clone();
        match self.render(request).await {
            Err(RenderError::Page { failure, facts }) => (failure, facts),
            other => panic!("{url:?}: {:?}", other.map(|capture| capture.facts)),
        }
    }

    /// A failure of this reason whose message contains `part`.
    pub(crate) async fn fails_with(&self, url: &str, reason: FailureReason, part: &str) -> Facts {
        let (failure, facts) = self.fails(request(url)).await;
        assert_eq!(failure.reason, reason, "{url}: {failure:?}");
        assert!(failure.message.contains(part), "{url}: {failure:?}");
        facts
    }
}

pub(crate) fn request(url: &str) -> CaptureRequest {
    CaptureRequest { url: Some(url.to_owned()), ..CaptureRequest::default() }
}

/// A task with the budget of a synchronous grab.
pub(crate) fn task(request: CaptureRequest) -> RenderTask {
    let url = TargetUrl::restore(request.url.as_deref().unwrap()).unwrap();
    // The guard judges addresses in these tests, not the request.
    let anywhere = CaptureRequest { url: Some("https://example.com/".into()), ..request };
    let spec = CaptureSpec { url, ..CaptureSpec::parse(&anywhere).unwrap() };
    RenderTask { id: GrabId(Uuid::nil()), spec, budget: Duration::from_secs(25), alone: false }
}

/// A decoded picture.
pub(crate) struct Picture {
    pub(crate) capture: Capture,
    pub(crate) facts: Facts,
    pixels: image::RgbImage,
}

impl From<Capture> for Picture {
    fn from(capture: Capture) -> Self {
        let pixels = image::load_from_memory(&capture.image).unwrap().into_rgb8();
        assert_eq!(
            (capture.facts.image_width, capture.facts.image_height),
            (Some(pixels.width()), Some(pixels.height()))
        );
        Self { facts: capture.facts.clone(), capture, pixels }
    }
}

impl Picture {
    pub(crate) fn size(&self) -> (u32, u32) {
        self.pixels.dimensions()
    }

    /// The colour at a place: a word when it is a plain one, within what lossy formats make of it.
    pub(crate) fn colour(&self, x: u32, y: u32) -> &'static str {
        let seen = self.pixels.get_pixel(x, y).0;
        let near = |rgb: [u8; 3]| seen.iter().zip(rgb).all(|(a, b)| a.abs_diff(b) <= 12);
        [
            ("red", [255, 0, 0]),
            ("lime", [0, 255, 0]),
            ("blue", [0, 0, 255]),
            ("yellow", [255, 255, 0]),
            ("black", [0, 0, 0]),
            ("white", [255, 255, 255]),
        ]
        .into_iter()
        .find(|(_, rgb)| near(*rgb))
        .map_or("another", |(name, _)| name)
    }
}

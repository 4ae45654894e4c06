//! Test helpers: a browser with its guard, and decoded images.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use grabd_browser::{Chromium, NetworkJail, Options};
use grabd_domain::address::Policy;
use grabd_domain::capture::{CaptureRequest, CaptureSpec, FileKind};
use grabd_domain::grabs::{Failure, FailureReason, RenderMetadata};
use grabd_domain::ids::GrabId;
use grabd_domain::render::{Capture, RenderError, RenderTask, Renderer, RequestSigner, SlotHold, StageReporter};
use grabd_domain::target::TargetUrl;
use grabd_egress::Guard;
use serde_json::Value;
use uuid::Uuid;

/// A running browser whose guard allows only 127.0.0.2 on this machine.
pub(crate) struct Rig {
    pub(crate) chromium: Chromium,
    pub(crate) run_dir: PathBuf,
    _directory: tempfile::TempDir,
}

/// A guard that allows loopback addresses by their last byte.
pub(crate) fn guard(allowed: &[u8]) -> Guard {
    let allow = allowed.iter().map(|last| format!("127.0.0.{last}/32").parse().unwrap()).collect();
    let policy = Policy { allow, ..Policy::default() };
    Guard::new(grabd_egress::Options { policy, ..grabd_egress::Options::default() }).unwrap()
}

/// Sends a signal to a process that this test's rig started.
pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A directory that other users may traverse.
pub(crate) fn open_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o711)).unwrap();
    directory
}

/// Options with a required jail, which these tests need.
pub(crate) fn jailed(run_dir: impl Into<PathBuf>) -> Options {
    let launcher = env!("CARGO_BIN_EXE_grabd-browser-launcher");
    Options { network_jail: NetworkJail::Required, launcher: Some(launcher.into()), ..Options::new(run_dir) }
}

impl Rig {
    pub(crate) async fn start() -> Self {
        Self::with(&[2], |_| {}).await
    }

    pub(crate) async fn with(allowed: &[u8], change: impl FnOnce(&mut Options)) -> Self {
        // Fails on the second call in a process, which is harmless.
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

    /// Captures a page with a file of this kind. Returns the file.
    pub(crate) async fn text_file(&self, request: CaptureRequest, kind: FileKind) -> String {
        let also = Some(vec![kind.as_str().to_owned()]);
        let capture = self.render(CaptureRequest { also, ..request }).await.unwrap();
        let file = capture.files.iter().find(|file| file.kind == kind).unwrap();
        String::from_utf8(file.content.to_vec()).unwrap()
    }

    /// Captures a URL with default options.
    pub(crate) async fn grab(&self, url: &str) -> DecodedImage {
        self.capture(request(url)).await
    }

    pub(crate) async fn capture(&self, request: CaptureRequest) -> DecodedImage {
        let url = request.url.clone();
        match self.render(request).await {
            Ok(capture) => DecodedImage::from(capture),
            Err(error) => panic!("{url:?}: {error:?}"),
        }
    }

    /// Captures a page that must fail.
    pub(crate) async fn fails(&self, request: CaptureRequest) -> (Failure, RenderMetadata) {
        let url = request.url.clone();
        match self.render(request).await {
            Err(RenderError::Page { failure, metadata }) => (failure, *metadata),
            other => panic!("{url:?}: {:?}", other.map(|capture| capture.metadata)),
        }
    }

    /// Captures a page that must fail with this reason and a message that contains `part`.
    pub(crate) async fn fails_with(&self, url: &str, reason: FailureReason, part: &str) -> RenderMetadata {
        let (failure, metadata) = self.fails(request(url)).await;
        assert_eq!(failure.reason, reason, "{url}: {failure:?}");
        assert!(failure.message.contains(part), "{url}: {failure:?}");
        metadata
    }
}

pub(crate) fn request(url: &str) -> CaptureRequest {
    CaptureRequest { url: Some(url.to_owned()), ..CaptureRequest::default() }
}

/// A request with these steps.
pub(crate) fn with_steps(url: &str, steps: &Value) -> CaptureRequest {
    let mut request = request(url);
    assert!(request.set("steps", serde_json::from_value(steps.clone()).unwrap()), "{steps}");
    request
}

/// A task with the budget of a synchronous grab.
pub(crate) fn task(request: CaptureRequest) -> RenderTask {
    let url = TargetUrl::restore(request.url.as_deref().unwrap()).unwrap();
    // These tests check the guard, so the URL skips validation.
    let validated = CaptureRequest { url: Some("https://example.com/".into()), ..request };
    let spec = CaptureSpec { url, ..CaptureSpec::parse(&validated).unwrap() };
    RenderTask {
        id: GrabId(Uuid::nil()),
        spec,
        budget: Duration::from_secs(25),
        alone: false,
        stages: StageReporter::default(),
        slot: SlotHold::default(),
        domains: Arc::default(),
        signer: RequestSigner::default(),
        proxy: None,
    }
}

/// A decoded image.
pub(crate) struct DecodedImage {
    pub(crate) capture: Capture,
    pub(crate) metadata: RenderMetadata,
    pixels: image::RgbImage,
}

impl From<Capture> for DecodedImage {
    fn from(capture: Capture) -> Self {
        let pixels = image::load_from_memory(&capture.image).unwrap().into_rgb8();
        assert_eq!(
            (capture.metadata.image_width, capture.metadata.image_height),
            (Some(pixels.width()), Some(pixels.height()))
        );
        Self { metadata: capture.metadata.clone(), capture, pixels }
    }
}

impl DecodedImage {
    pub(crate) fn size(&self) -> (u32, u32) {
        self.pixels.dimensions()
    }

    /// The colour of a pixel by name, with tolerance for lossy formats.
    pub(crate) fn colour(&self, x: u32, y: u32) -> &'static str {
        let pixel = self.pixels.get_pixel(x, y).0;
        let near = |rgb: [u8; 3]| pixel.iter().zip(rgb).all(|(a, b)| a.abs_diff(b) <= 12);
        [
            ("red", [255, 0, 0]),
            ("lime", [0, 255, 0]),
            ("blue", [0, 0, 255]),
            ("yellow", [255, 255, 0]),
            ("black", [0, 0, 0]),
            ("white", [255, 255, 255]),
            ("gray", [128, 128, 128]),
        ]
        .into_iter()
        .find(|(_, rgb)| near(*rgb))
        .map_or("another", |(name, _)| name)
    }
}

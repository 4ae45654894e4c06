//! Pages that keep the processors busy after their capture has ended. Their slot is in use until nothing of them runs.

use std::fs;
use std::time::{Duration, Instant};

use grabd_domain::grabs::FailureReason::RenderFailed;
use grabd_domain::render::{RenderError, RenderTask, Renderer as _};

use crate::rig::{Rig, request, task};
use crate::site::{Reply, Site, answer, html};

/// A loop that ends only with its process, as the script of a worker.
const BUSY: &str = "for (;;) ;";
/// Longest wait for a free slot: disposing of the page, ending its browser, and starting the next one.
const FREE_LIMIT: Duration = Duration::from_secs(15);
/// How long the processors are watched, and the processor time that prepared tabs and checks take meanwhile. The start of
/// a browser takes as much, but one that replaces another has never had the page.
const WATCHED: Duration = Duration::from_millis(600);
const USUAL: Duration = Duration::from_millis(300);

/// A green page with this script, which names its busy worker `busy`.
fn page(script: &str) -> Reply {
    html(format!(
        "<!doctype html><body style='background:lime'><p>Content of the page.<script>
         const busy = 'data:text/javascript,{BUSY}'; {script}</script>"
    ))
}

fn script(text: &str) -> Reply {
    answer("200 OK", "Content-Type: text/javascript", text)
}

/// The kinds of pages that burn, by path.
fn pages() -> Vec<(&'static str, Reply)> {
    let many = |count: u32, each: &str| page(&format!("for (let i = 0; i < {count}; i++) {{ {each} }}"));
    vec![
        ("/swarm", many(500, "new Worker(busy)")),
        ("/workers", many(40, "new Worker(busy)")),
        ("/shared", many(40, "new SharedWorker(busy, 'w' + i)")),
        ("/nested", many(8, "new Worker('/nest.js')")),
        ("/nest.js", script(&format!("for (let i = 0; i < 5; i++) new Worker('data:text/javascript,{BUSY}')"))),
        (
            "/frames",
            many(8, "document.body.append(Object.assign(document.createElement('iframe'), { src: '/worker-frame' }))"),
        ),
        ("/worker-frame", page("for (let i = 0; i < 5; i++) new Worker(busy)")),
        (
            "/worklet",
            page(
                "const loop = 'data:text/javascript,registerPaint(\"x\", class { paint() {} }); for (;;) ;';
                 new OfflineAudioContext(1, 1, 44100).audioWorklet.addModule(loop)",
            ),
        ),
        // A thread of WebAssembly is a worker that shares its memory, and waits in native code.
        (
            "/wasm",
            many(
                40,
                "new Worker(URL.createObjectURL(new Blob([`const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1,
                 96, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 9, 1, 7, 0, 3, 64, 12, 0, 11, 11]);
                 new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports.f()`])))",
            ),
        ),
        ("/timer", page("setTimeout(() => { for (;;) ; }, 20000)")),
        ("/unload", page("addEventListener('pagehide', () => { for (;;) ; }); onunload = () => { for (;;) ; }")),
        ("/", page("")),
    ]
}

/// Processor time of the groups that these processes lead, so far.
fn cpu(leaders: &[u32]) -> Duration {
    let stats = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let fields: Vec<u64> =
            stat.rsplit_once(") ")?.1.split(' ').skip(1).map(|field| field.parse().unwrap_or(0)).collect();
        let (group, ticks) = (u32::try_from(*fields.get(1)?).ok()?, fields.get(10)? + fields.get(11)?);
        leaders.contains(&group).then_some(ticks)
    });
    Duration::from_millis(stats.sum::<u64>() * 10)
}

/// The browsers that this process has started, and that have not ended.
fn browsers() -> Vec<u32> {
    let leaders = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let fields: Vec<u32> =
            stat.rsplit_once(") ")?.1.split(' ').skip(1).map(|field| field.parse().unwrap_or(0)).collect();
        // The parent and the process group.
        (fields.first() == Some(&std::process::id()) && fields.get(1) == Some(&pid)).then_some(pid)
    });
    leaders.collect()
}

/// Processes and threads of the group that this process leads.
fn tasks(leader: u32) -> usize {
    let of_group = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        (fields.get(2)?.parse() == Ok(leader)).then(|| fields.get(17)?.parse::<usize>().ok())?
    });
    of_group.sum()
}

async fn until(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let mut interval = tokio::time::interval(Duration::from_millis(10));
    let waited = async {
        while !holds() {
            interval.tick().await;
        }
    };
    tokio::time::timeout(limit, waited).await.unwrap_or_else(|_| panic!("{what}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn slot_is_in_use_until_nothing_of_the_page_runs() {
    let site = Site::start(2, pages()).await;
    let rig = Rig::with(&[2], |options| options.slots = 1).await;
    for path in
        ["/swarm", "/workers", "/shared", "/nested", "/frames", "/worklet", "/wasm", "/timer", "/unload", "/", "/"]
    {
        let mut task = task(request(&site.url(path)));
        task.budget = Duration::from_secs(8);
        let mut had_page = rig.chromium.health().pids;
        let began = Instant::now();
        // Whether there is an image does not matter here.
        let rendered = rig.chromium.render(task).await.is_ok();
        let ended = began.elapsed();
        until(FREE_LIMIT, path, || rig.chromium.health().free_slots == 1).await;
        let current = rig.chromium.health().pids;
        let running = browsers();
        assert!(
            current.iter().all(|browser| running.contains(browser)),
            "{path}: {current:?} are not all in {running:?}"
        );
        // A browser of the page's own, too, if it has not ended.
        had_page.extend(running.iter().filter(|browser| !current.contains(browser)));
        let before = cpu(&had_page);
        tokio::time::sleep(WATCHED).await;
        let used = cpu(&had_page).saturating_sub(before);
        println!("{path}: image {rendered} after {ended:?}, free after {:?}, then {used:?}", began.elapsed() - WATCHED);
        assert!(used < USUAL, "{path}: {used:?} of processor time after its slot was free");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn browser_of_a_page_with_too_many_workers_ends_at_once() {
    let site = Site::start(2, pages()).await;
    let rig = Rig::with(&[2], |options| options.slots = 1).await;
    let burning = rig.chromium.health().pids[0];
    let began = Instant::now();
    rig.fails_with(&site.url("/swarm"), RenderFailed, "workers").await;
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    // Far below the 25 s after which the capture would have ended anyway, since other tests keep the processors busy.
    until(Duration::from_secs(8), "the browser did not end", || tasks(burning) == 0).await;
    assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime");
    assert_eq!(rig.chromium.health().restarts, [("excess", 1)].into());
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn number_of_threads_of_a_browser_is_limited_by_the_kernel() {
    const LIMIT: usize = 200;
    // Shared workers are not reported by the browser. These sleep, so that nothing else ends the page.
    let idle =
        "for (let i = 0; i < 400; i++) new SharedWorker('data:text/javascript,setInterval(() => {}, 999)', 'w' + i)";
    let site = Site::start(2, [("/idle", page(idle)), ("/", page(""))]).await;
    let rig = Rig::with(&[2], |options| (options.slots, options.process_limit) = (1, 200)).await;
    let pid = rig.chromium.health().pids[0];
    let most = async {
        let (mut most, mut interval) = (0, tokio::time::interval(Duration::from_millis(20)));
        loop {
            interval.tick().await;
            most = tasks(pid).max(most);
            if most > 0 && tasks(pid) == 0 {
                return most;
            }
        }
    };
    let limited = RenderTask { budget: Duration::from_secs(10), ..task(request(&site.url("/idle"))) };
    let (ended, most) = tokio::join!(rig.chromium.render(limited), tokio::time::timeout(FREE_LIMIT, most));
    let most = most.expect("the browser was not ended");
    println!("at most {most} threads");
    assert!(most <= LIMIT, "{most} threads");
    match ended {
        Err(RenderError::Page { failure, .. }) => assert!(failure.message.contains("threads"), "{}", failure.message),
        // The page's process ended when the kernel refused a thread.
        Err(RenderError::Lost(_)) => {}
        Ok(_) => panic!("the page was captured"),
    }
    assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime");
    assert_eq!(rig.chromium.health().restarts, [("excess", 1)].into());
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_have_a_session_of_their_own_and_a_lower_priority_than_the_service() {
    let niceness = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<i64> =
            stat.rsplit_once(") ").unwrap().1.split(' ').map(|field| field.parse().unwrap_or(0)).collect();
        // The process group, the session, and the niceness.
        (fields[2], fields[3], fields[16])
    };
    let rig = Rig::with(&[2], |_| {}).await;
    let leader = rig.chromium.health().pids[0];
    let (_, _, own) = niceness(std::process::id());
    let members: Vec<u32> = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| fs::metadata(format!("/proc/{pid}")).is_ok() && niceness(*pid).0 == i64::from(leader))
        .collect();
    assert!(members.len() >= 4, "{members:?}");
    for pid in members {
        let (_, session, nice) = niceness(pid);
        assert!(session == i64::from(leader) && nice > own, "{pid}: session {session}, niceness {nice}, ours {own}");
    }
    rig.chromium.shutdown().await;
}

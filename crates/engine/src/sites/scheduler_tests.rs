//! The scheduler over a real database: crashes at each step, and two processes. Jobs of test keys need no renderer, and contact no
//! site. The loop of each core does rounds as well.

use futures::StreamExt;
use grabd_domain::Timestamp;
use grabd_domain::address::Policy;
use grabd_domain::capture::{CaptureRequest, OptionValue, Secret};
use grabd_domain::credentials::{Caller, Environment, Principal};
use grabd_domain::ids::{KeyId, SiteId, TeamId};
use grabd_domain::site::{MAX_PAGES, PageState, Site, SiteRequest, SiteSpec, SiteState};
use grabd_egress::Guard;
use grabd_images::Images;
use grabd_memory::MemoryBudget;
use grabd_store::Store;
use grabd_store::accounts::NewTeam;
use grabd_store::sites::{CreateSiteOutcome, NewSite};
use tokio::time::timeout;
use uuid::Uuid;

use super::*;
use crate::clock::Clock;
use crate::grabs::{self, ListRequest};
use crate::oauth;
use crate::outgoing::OutgoingClient;
use crate::placeholder::Placeholder;
use crate::pricing::Pricing;
use crate::sites::{self, SiteLimits};
use crate::vault::Vault;
use crate::webhooks::Webhooks;
use crate::{Failpoints, Operations, Parts, Retention, Settings};

const TEAM: TeamId = TeamId(Uuid::from_u128(1));
const CALLER: Caller =
    Caller { team: TEAM, environment: Environment::Test, principal: Principal::Key(KeyId(Uuid::from_u128(2))) };

struct TestCore {
    core: Core,
    clock: Clock,
    _images: tempfile::TempDir,
}

async fn store() -> Store {
    let store = Store::open("sqlite::memory:").await.unwrap();
    store.migrate().await.unwrap();
    store
        .accounts()
        .create_team(NewTeam { id: TEAM, name: "A team".into(), now: Timestamp::from_ms(0) })
        .await
        .unwrap();
    store
}

/// A core on this database, with these failpoints.
async fn start(store: &Store, clock: &Clock, failpoints: &str) -> TestCore {
    let images = tempfile::tempdir().unwrap();
    let parts = Parts {
        store: store.clone(),
        images: Images::local(images.path().to_owned()).unwrap(),
        memory: MemoryBudget::new(64 << 20),
        guard: Guard::new(grabd_egress::Options { policy: Policy::default(), ..Default::default() }).unwrap(),
        outgoing: OutgoingClient::new(b"").unwrap(),
        mail: None,
        clock: clock.clone(),
        pricing: Pricing::embedded(),
        placeholder: Placeholder::new(1 << 20, MemoryBudget::new(64 << 20)),
        vault: Vault::new([7; 32]),
        webhooks: Webhooks::new(false),
        stripe: None,
        settings: settings(),
        cluster: None,
        failpoints: Failpoints::parse(failpoints).unwrap(),
    };
    TestCore { core: Core::start(parts).await.unwrap(), clock: clock.clone(), _images: images }
}

fn settings() -> Settings {
    Settings {
        public_url: "https://grabd.example".into(),
        requests_per_minute: 60,
        async_queue: 50,
        abuse: crate::admission::Settings {
            has_strangers: true,
            failed_seconds_per_minute: 60,
            failed_seconds_per_minute_unpaid: 20,
            paid_slots_percent: 25,
        },
        image_max_bytes: 32 << 20,
        direct_uploads: false,
        operations: Operations {
            sites: SiteLimits { open_per_team: 2, ..SiteLimits::default() },
            ..Operations::default()
        },
        top_up: String::new(),
        sign_up: false,
        trial_credits: 0,
        oauth: oauth::Settings {
            issuer: "https://grabd.example".into(),
            origin: String::new(),
            mcp_url: "https://grabd.example/mcp".into(),
            base_url: "https://grabd.example/v1".into(),
            web_base_url: "https://grabd.example/v1".into(),
            refresh_reuse_grace_s: 30,
            registrations_per_hour: 20,
            unused_clients: 1000,
        },
        retention: Retention::default(),
    }
}

fn clock() -> Clock {
    Clock::manual(Timestamp::from_ms(1_800_000_000_000))
}

/// An address that needs no name to be resolved. Its sitemap stands for three pages.
fn request() -> SiteRequest {
    SiteRequest { sitemap: Some("https://93.184.215.14/sitemap.xml".into()), ..SiteRequest::default() }
}

async fn create(test: &TestCore) -> SiteId {
    sites::create(&test.core, CALLER, &request()).await.unwrap().id
}

/// Does rounds, some of which may fail, until a job has ended.
async fn finished(cores: &[&TestCore], site: SiteId) -> Site {
    let ended = async {
        for test in cores.iter().cycle() {
            // An injected error.
            let _ = round(&test.core).await;
            let shown = sites::get(&test.core, CALLER, site).await.unwrap();
            if shown.finished_at.is_some() {
                return shown;
            }
            test.clock.advance(Duration::from_secs(3));
            tokio::task::yield_now().await;
        }
        unreachable!("there is a core")
    };
    timeout(Duration::from_secs(30), ended).await.unwrap()
}

async fn grabs(test: &TestCore) -> usize {
    grabs::list(&test.core, CALLER, &ListRequest::default()).await.unwrap().grabs.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_at_any_step_captures_each_page_once() {
    for step in ["site_leased", "page_started", "page_created", "page_ended"] {
        for turn in 1..=3 {
            let (store, clock) = (store().await, clock());
            let test = start(&store, &clock, &format!("{step}=error@{turn}")).await;
            let site = create(&test).await;
            let shown = finished(&[&test], site).await;
            assert_eq!((shown.state, shown.pages.captured), (SiteState::Done, 3), "{step} {turn}");
            let listed = sites::list_pages(&test.core, CALLER, site, &sites::ListRequest::default()).await.unwrap();
            assert_eq!(listed.pages.iter().map(|page| page.number).collect::<Vec<_>>(), [1, 2, 3], "{step} {turn}");
            assert!(listed.pages.iter().all(|page| page.state == PageState::Done && page.grab.is_some()), "{step}");
            assert_eq!(grabs(&test).await, 3, "{step} {turn}");
            test.core.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_capture_each_page_once() {
    let (store, clock) = (store().await, clock());
    let (one, other) = (start(&store, &clock, "").await, start(&store, &clock, "").await);
    let (first, second) = (create(&one).await, create(&other).await);
    for site in [first, second] {
        assert_eq!(finished(&[&one, &other], site).await.pages.captured, 3);
    }
    assert_eq!(grabs(&one).await, 6);
    one.core.stop().await;
    other.core.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_fail_at_once_if_the_secret_options_cannot_be_decrypted() {
    let (store, clock) = (store().await, clock());
    let headers = Secret([("X-Token".to_owned(), OptionValue::Text("a".to_owned()))].into());
    let capture = CaptureRequest { headers: Some(headers), ..CaptureRequest::default() };
    let with_headers = SiteRequest { capture: Some(capture), ..request() };
    let new = NewSite {
        id: SiteId(Uuid::from_u128(3)),
        team: TEAM,
        environment: Environment::Test,
        creator: CALLER.principal,
        spec: SiteSpec::parse(&with_headers, MAX_PAGES, false).unwrap(),
        secrets: Some(b"of another key".to_vec()),
        open_limit: 1,
        now: clock.now(),
    };
    let CreateSiteOutcome::Created(site) = store.sites().create(new).await.unwrap() else { panic!("not created") };
    let test = start(&store, &clock, "").await;
    let ended = finished(&[&test], site.id).await;
    assert_eq!((ended.state, ended.pages.failed), (SiteState::Failed, 3));
    assert!(ended.error.is_some_and(|error| error.message.contains("cannot be decrypted")));
    assert_eq!(grabs(&test).await, 0);
    test.core.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn team_has_at_most_the_configured_number_of_open_jobs() {
    let (store, clock) = (store().await, clock());
    let test = start(&store, &clock, "").await;
    let site = create(&test).await;
    create(&test).await;
    let refused = sites::create(&test.core, CALLER, &request()).await.unwrap_err().into_fault().to_string();
    assert!(refused.starts_with("`sites` must be at most 2 at a time for the team"), "{refused}");
    finished(&[&test], site).await;
    create(&test).await;
    let other = Caller { environment: Environment::Live, ..CALLER };
    let missing = sites::get(&test.core, other, site).await.unwrap_err().into_fault().to_string();
    assert!(missing.contains("No site job with that id"), "{missing}");
    test.core.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_ends_with_the_job_and_when_the_core_drains() {
    let (store, clock) = (store().await, clock());
    let test = start(&store, &clock, "").await;
    let site = create(&test).await;
    let ended = finished(&[&test], site).await;
    let states: Vec<Site> = sites::watch(&test.core, CALLER, site).collect().await;
    assert_eq!(states, [ended]);
    let open = create(&test).await;
    test.core.drain();
    let states: Vec<Site> = sites::watch(&test.core, CALLER, open).collect().await;
    assert!(matches!(states.as_slice(), [shown] if shown.finished_at.is_none()), "{states:?}");
    let other = Caller { environment: Environment::Live, ..CALLER };
    assert_eq!(sites::watch(&test.core, other, open).count().await, 0, "it is of another environment");
    test.core.stop().await;
}

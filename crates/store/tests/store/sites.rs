//! Jobs that capture sites, and their pages.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::Timestamp;
use grabd_domain::credentials::{Environment, Principal};
use grabd_domain::grabs::Class;
use grabd_domain::ids::{DeliveryId, GrabId, KeyId, SiteId, SitePageId, TeamId};
use grabd_domain::site::{
    LONGEST_OPEN, PageCounts, PageState, Site, SiteError, SitePage, SiteRequest, SiteSpec, SiteState, SkipReason,
    normal_address,
};
use grabd_domain::target::TargetUrl;
use grabd_domain::webhooks::Event;
use grabd_store::grabs::FailureSource;
use grabd_store::sites::{
    CreateSiteOutcome, FinishedSite, LeasedSite, NewSite, PageAttempt, PageEnd, PageToCapture, ReadSitemap, SiteRef,
    SiteStep, SiteStop,
};

use crate::harness::{NOW, TestDb, completion, failing, on_both};
use crate::webhooks::endpoint;

const LEASE: Duration = Duration::from_secs(60);
const START: &str = "https://example.com/";

fn text(site: &Site, _: DeliveryId, _: Timestamp) -> String {
    format!("{} {}", site.spec.name, site.state.as_str())
}

fn request() -> SiteRequest {
    SiteRequest { url: Some(START.into()), name: Some("Docs".into()), ..SiteRequest::default() }
}

fn sitemap() -> SiteRequest {
    SiteRequest { sitemap: Some("https://example.com/sitemap.xml".into()), ..SiteRequest::default() }
}

fn new_site(id: SiteId, team: TeamId, request: &SiteRequest) -> NewSite {
    NewSite {
        id,
        team,
        environment: Environment::Live,
        creator: Principal::Key(KeyId(id.0)),
        spec: SiteSpec::parse(request, 1000, false).unwrap(),
        secrets: None,
        open_limit: 5,
        now: NOW,
    }
}

async fn created(db: &TestDb, team: TeamId, request: &SiteRequest) -> Site {
    let created = db.store.sites().create(new_site(SiteId(db.id()), team, request)).await.unwrap();
    let CreateSiteOutcome::Created(site) = created else { panic!("{created:?}") };
    *site
}

fn target(site: &Site) -> SiteRef {
    SiteRef { team: site.team, environment: site.environment, grant: None, site: site.id }
}

async fn find(db: &TestDb, site: &Site) -> Site {
    db.store.sites().find(target(site)).await.unwrap().unwrap()
}

async fn pages(db: &TestDb, site: &Site) -> Vec<SitePage> {
    db.store.sites().list_pages(site.id, 0, 100).await.unwrap().pages
}

/// The path, the state and the reason of each page.
async fn states(db: &TestDb, site: &Site) -> Vec<(String, &'static str, Option<&'static str>)> {
    let shown = |page: SitePage| {
        let path = page.url.trim_start_matches("https://example.com").to_owned();
        (path, page.state.as_str(), page.skipped_because.map(SkipReason::as_str))
    };
    pages(db, site).await.into_iter().map(shown).collect()
}

async fn lease(db: &TestDb, site: &Site, now: Timestamp) -> Option<LeasedSite> {
    db.store.sites().lease(site.id, now, now + LEASE, text).await.unwrap()
}

/// Leases a job whose next step is the capture of a page.
async fn next_page(db: &TestDb, site: &Site, now: Timestamp) -> PageToCapture {
    match lease(db, site, now).await {
        Some(LeasedSite::Turn(turn)) => match turn.step {
            SiteStep::Page(page) => page,
            SiteStep::Sitemap { .. } => panic!("a sitemap"),
        },
        other => panic!("{other:?}"),
    }
}

fn attempt(site: &Site, number: u32, now: Timestamp) -> PageAttempt {
    PageAttempt { site: site.id, number, now, paced_until: now }
}

/// Begins the capture of the next page, and notes its grab.
async fn begin(db: &TestDb, site: &Site, now: Timestamp) -> (PageToCapture, GrabId) {
    let page = next_page(db, site, now).await;
    assert!(db.store.sites().start_page(attempt(site, page.number, now)).await.unwrap());
    let new = db.new_grab(site.team, Class::Async);
    let id = new.id;
    db.store.grabs().create(new).await.unwrap();
    assert!(db.store.sites().attach_grab(attempt(site, page.number, now), id).await.unwrap());
    (page, id)
}

async fn complete(db: &TestDb) {
    let leased = db.store.grabs().lease(db.lease_request(Class::Async, 1, NOW)).await.unwrap().pop().unwrap();
    db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
}

fn addresses(texts: &[&str]) -> Vec<TargetUrl> {
    texts.iter().map(|text| normal_address(text).unwrap()).collect()
}

/// Captures the next page, which links to these addresses.
async fn capture(db: &TestDb, site: &Site, now: Timestamp, links: &[&str]) -> Option<FinishedSite> {
    let (page, _) = begin(db, site, now).await;
    assert_eq!(db.store.sites().ended_pages(now, 9).await.unwrap(), []);
    complete(db).await;
    let id = SitePageId::of(site.id, &page.url);
    assert_eq!(db.store.sites().ended_pages(now, 9).await.unwrap(), [id]);
    let finished = db.store.sites().finish_page(id, Ok(addresses(links)), now, text).await.unwrap();
    assert_eq!(db.store.sites().finish_page(id, Ok(addresses(links)), now, text).await.unwrap(), None, "a second time");
    finished
}

on_both! {
    async fn links_are_followed_and_each_address_is_captured_once(db) {
        let team = db.team(9).await;
        let all = endpoint(db, team, &["site.finished"]).await;
        let site = created(db, team, &SiteRequest { max_pages: Some(3), max_depth: Some(1), ..request() }).await;
        assert_eq!((site.state, site.pages.found, site.pages.waiting), (SiteState::Discovering, 1, 1));
        assert_eq!(db.store.sites().due(NOW, 9).await.unwrap(), [site.id]);
        let links = [
            "https://example.com/a",
            "https://example.com/#top",
            "https://example.org/",
            "https://example.com/a.pdf",
            "https://example.com/b",
            "https://example.com/a",
            "https://example.com/c",
        ];
        assert_eq!(capture(db, &site, NOW, &links).await, None);
        let expected = [
            ("/", "done", None),
            ("/a", "waiting", None),
            ("https://example.org/", "skipped", Some("other_site")),
            ("/a.pdf", "skipped", Some("not_html")),
            ("/b", "waiting", None),
            ("/c", "skipped", Some("max_pages")),
        ];
        assert_eq!(states(db, &site).await, expected.map(|(path, state, reason)| (path.to_owned(), state, reason)));
        let listed = pages(db, &site).await;
        assert_eq!(listed.iter().map(|page| page.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        assert_eq!((listed[0].depth, listed[0].found_on.as_deref()), (0, None));
        assert_eq!((listed[1].depth, listed[1].found_on.as_deref()), (1, Some(START)));
        assert!(listed[0].grab.is_some() && listed[0].image.is_some());
        assert_eq!(find(db, &site).await.state, SiteState::Capturing, "it has as many pages as it may have");

        // Links of pages at the largest depth are not followed.
        assert_eq!(capture(db, &site, NOW, &["https://example.com/d"]).await, None);
        let finished = capture(db, &site, NOW, &[]).await.unwrap().site;
        assert_eq!((finished.state, finished.finished_at), (SiteState::Done, Some(NOW)));
        assert_eq!(finished.pages, PageCounts { found: 6, skipped: 3, captured: 3, failed: 0, waiting: 0 });
        assert_eq!(find(db, &site).await, finished);
        assert_eq!(lease(db, &site, NOW + LEASE * 9).await, None);
        let sent = db.store.webhooks().list_deliveries(all.endpoint, None, 9, NOW).await.unwrap().unwrap();
        assert_eq!(sent.deliveries.iter().map(|delivery| delivery.event).collect::<Vec<_>>(), [Event::SiteFinished]);
        let attempts = db.lease_due(NOW, 9, |_| String::new()).await;
        assert_eq!(attempts.iter().map(|attempt| attempt.body.as_str()).collect::<Vec<_>>(), ["Docs done"]);
        let second = db.store.sites().list_pages(site.id, 4, 1).await.unwrap();
        assert_eq!((second.pages[0].number, second.has_more), (5, true));
    }

    async fn interrupted_capture_is_repeated_when_the_lease_is_over(db) {
        let site = created(db, db.team(9).await, &request()).await;
        let leases = (0..8).map(|_| db.store.sites().lease(site.id, NOW, NOW + LEASE, text));
        let leased: Vec<_> = join_all(leases).await.into_iter().filter_map(Result::unwrap).collect();
        assert!(matches!(leased.as_slice(), [LeasedSite::Turn(_)]), "{leased:?}");
        // The process ends before it has noted anything.
        assert_eq!(db.store.sites().due(NOW, 9).await.unwrap(), []);
        let over = NOW + LEASE;
        let page = next_page(db, &site, over).await;
        assert_eq!((page.number, page.started_at), (1, None));
        assert!(db.store.sites().start_page(attempt(&site, 1, over)).await.unwrap());
        assert!(!db.store.sites().start_page(attempt(&site, 1, over)).await.unwrap());
        // Another one ends before it has noted the grab. The job is canceled meanwhile.
        let (canceled, finished) = db.store.sites().cancel(target(&site), over, text).await.unwrap().unwrap();
        assert_eq!((canceled.state, canceled.finished_at, finished), (SiteState::Canceled, None, None));
        let again = next_page(db, &site, over + LEASE).await;
        assert_eq!((again.number, again.started_at), (1, Some(over)));
        let new = db.new_grab(site.team, Class::Async);
        let id = new.id;
        db.store.grabs().create(new).await.unwrap();
        assert!(db.store.sites().attach_grab(attempt(&site, 1, over), id).await.unwrap());
        assert!(!db.store.sites().attach_grab(attempt(&site, 1, over), GrabId(db.id())).await.unwrap());
        complete(db).await;
        let page = SitePageId::of(site.id, START);
        let found = addresses(&["https://example.com/a"]);
        let finished = db.store.sites().finish_page(page, Ok(found), over, text).await.unwrap().unwrap();
        assert_eq!(finished.site.state, SiteState::Canceled);
        assert_eq!(states(db, &site).await, [("/".to_owned(), "done", None)]);
    }

    async fn cancelation_ends_a_job_after_its_open_captures(db) {
        let team = db.team(9).await;
        let site = created(db, team, &request()).await;
        capture(db, &site, NOW, &["https://example.com/a", "https://example.com/b"]).await;
        let (_, grab) = begin(db, &site, NOW).await;
        let (canceled, finished) = db.store.sites().cancel(target(&site), NOW, text).await.unwrap().unwrap();
        assert_eq!((canceled.state, finished), (SiteState::Canceled, None));
        assert_eq!(canceled.pages, PageCounts { found: 3, skipped: 1, captured: 1, failed: 0, waiting: 1 });
        db.store.grabs().fail(failing(grab, FailureSource::Cancel, NOW)).await.unwrap().unwrap();
        let page = SitePageId::of(site.id, "https://example.com/a");
        let finished = db.store.sites().finish_page(page, Ok(Vec::new()), NOW, text).await.unwrap().unwrap();
        assert_eq!((finished.site.state, finished.site.finished_at), (SiteState::Canceled, Some(NOW)));
        let listed = pages(db, &site).await;
        assert!(listed[1].error.is_some() && listed[1].state == PageState::Failed, "{listed:?}");
        assert_eq!(listed[2].skipped_because, Some(SkipReason::Canceled));
        let again = db.store.sites().cancel(target(&site), NOW, text).await.unwrap().unwrap();
        assert_eq!(again, (finished.site, None));
        let foreign = SiteRef { team: db.team(1).await, ..target(&site) };
        assert_eq!(db.store.sites().cancel(foreign, NOW, text).await.unwrap(), None);
        assert!(!db.store.sites().remove(foreign).await.unwrap());
        assert!(db.store.sites().remove(target(&site)).await.unwrap());
        assert_eq!(db.store.sites().find(target(&site)).await.unwrap(), None);
    }

    async fn page_whose_links_are_not_known_is_done_and_says_so(db) {
        let site = created(db, db.team(9).await, &request()).await;
        begin(db, &site, NOW).await;
        complete(db).await;
        let error = SiteError::new("internal_error", &"The links could not be read.");
        let page = SitePageId::of(site.id, START);
        let finished = db.store.sites().finish_page(page, Err(error.clone()), NOW, text).await.unwrap().unwrap();
        assert_eq!((finished.site.state, finished.site.error), (SiteState::Done, None));
        let listed = pages(db, &site).await;
        assert_eq!((listed[0].state, listed[0].error.as_ref()), (PageState::Done, Some(&error)), "{listed:?}");
    }

    async fn addresses_that_are_not_captured_leave_room_for_others(db) {
        let site = created(db, db.team(9).await, &request()).await;
        let long = "a".repeat(2000);
        let mut links: Vec<String> = (0..300).map(|number| format!("https://example.org/{number}/{long}")).collect();
        links.push("https://example.com/a".to_owned());
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        capture(db, &site, NOW, &links).await;
        let counts = find(db, &site).await.pages;
        assert_eq!((counts.captured, counts.waiting), (1, 1), "{counts:?}");
        assert!((1..300).contains(&counts.skipped), "{counts:?}");
    }

    async fn at_most_five_captures_are_open(db) {
        let site = created(db, db.team(9).await, &request()).await;
        let links = ["a", "b", "c", "d", "e", "f"].map(|name| format!("{START}{name}"));
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        capture(db, &site, NOW, &links).await;
        for number in 2..=6 {
            assert_eq!(begin(db, &site, NOW).await.0.number, number);
        }
        assert_eq!(lease(db, &site, NOW).await, Some(LeasedSite::Waits));
        assert_eq!(lease(db, &site, NOW).await, None, "it waits for the end of a capture");
        complete(db).await;
        let ended = db.store.sites().ended_pages(NOW, 9).await.unwrap();
        assert_eq!(ended.len(), 1);
        db.store.sites().finish_page(ended[0], Ok(Vec::new()), NOW, text).await.unwrap();
        assert_eq!(next_page(db, &site, NOW).await.number, 7);
    }

    async fn sitemaps_are_read_once_and_in_order(db) {
        let site = created(db, db.team(9).await, &sitemap()).await;
        let read = |index: u32, pages: &[&str], sitemaps: &[&str]| ReadSitemap {
            site: site.id,
            index,
            pages: addresses(pages),
            sitemaps: addresses(sitemaps),
            now: NOW,
            paced_until: NOW,
            text,
        };
        let sub = "https://example.com/sub.xml";
        let address = |leased: Option<LeasedSite>| match leased {
            Some(LeasedSite::Turn(turn)) => match turn.step {
                SiteStep::Sitemap { index, address } => (index, address),
                SiteStep::Page(page) => panic!("{page:?}"),
            },
            other => panic!("{other:?}"),
        };
        assert_eq!(address(lease(db, &site, NOW).await), (0, "https://example.com/sitemap.xml".to_owned()));
        let all = [sub, "https://example.org/other.xml", "https://example.com/sitemap.xml"];
        assert_eq!(db.store.sites().add_sitemap(read(0, &[], &all)).await.unwrap(), None);
        assert_eq!(db.store.sites().add_sitemap(read(0, &["https://example.com/x"], &[])).await.unwrap(), None);
        assert_eq!(states(db, &site).await, [], "an index that was read before is left out");
        assert_eq!(address(lease(db, &site, NOW).await), (1, sub.to_owned()));
        let listed = ["https://example.com/a", "https://example.com/a", "https://example.com/b"];
        assert_eq!(db.store.sites().add_sitemap(read(1, &listed, &[])).await.unwrap(), None);
        assert_eq!(find(db, &site).await.state, SiteState::Capturing);
        let found = pages(db, &site).await;
        assert_eq!(found.iter().map(|page| page.found_on.as_deref()).collect::<Vec<_>>(), [Some(sub), Some(sub)]);
        assert_eq!(capture(db, &site, NOW, &[]).await, None);
        assert_eq!(capture(db, &site, NOW, &[]).await.unwrap().site.state, SiteState::Done);

        let empty = created(db, site.team, &sitemap()).await;
        address(lease(db, &empty, NOW).await);
        let read = ReadSitemap { site: empty.id, ..read(0, &[], &[]) };
        let failed = db.store.sites().add_sitemap(read).await.unwrap().unwrap().site;
        assert_eq!((failed.state, failed.error.unwrap().code), (SiteState::Failed, SiteError::NO_PAGES.to_owned()));
    }

    async fn job_without_credits_skips_what_waits(db) {
        let site = created(db, db.team(9).await, &request()).await;
        capture(db, &site, NOW, &["https://example.com/a", "https://example.com/b"]).await;
        let page = next_page(db, &site, NOW).await;
        assert!(db.store.sites().start_page(attempt(&site, page.number, NOW)).await.unwrap());
        let error = SiteError::new("credits_exhausted", &"There is no credit.");
        let why = SiteStop::OutOfCredits(error.clone());
        let stopped = db.store.sites().stop(site.id, why.clone(), NOW, text).await.unwrap();
        let ended = stopped.finished.unwrap().site;
        assert_eq!((ended.state, ended.error), (SiteState::OutOfCredits, Some(error)));
        assert_eq!(ended.pages, PageCounts { found: 3, skipped: 2, captured: 1, failed: 0, waiting: 0 });
        assert!(stopped.out_of_credits.is_some(), "one mail is sent");
        let again = db.store.sites().stop(site.id, why, NOW, text).await.unwrap();
        assert!(again.out_of_credits.is_none() && again.finished.is_none());
    }

    async fn refused_page_waits_fails_or_is_skipped(db) {
        let site = created(db, db.team(9).await, &request()).await;
        capture(db, &site, NOW, &["https://example.com/a", "https://example.com/b"]).await;
        let page = next_page(db, &site, NOW).await;
        assert!(db.store.sites().start_page(attempt(&site, page.number, NOW)).await.unwrap());
        let later = NOW + Duration::from_secs(15);
        let delayed = PageAttempt { paced_until: later, ..attempt(&site, page.number, NOW) };
        let refusal = SiteError::new("queue_limit_exceeded", &"Too many are open.");
        let refused = PageEnd::Delayed(refusal.clone());
        assert_eq!(db.store.sites().end_page(delayed, refused, text).await.unwrap(), None);
        assert_eq!(find(db, &site).await.error, Some(refusal));
        assert_eq!(lease(db, &site, NOW).await, None);
        assert_eq!(next_page(db, &site, later).await, page, "no page is lost");
        let failed = PageEnd::Failed(SiteError::new("bad_request", &"It is refused."));
        assert_eq!(db.store.sites().end_page(attempt(&site, 2, later), failed, text).await.unwrap(), None);
        let skipped = PageEnd::Skipped(SkipReason::Robots);
        let finished = db.store.sites().end_page(attempt(&site, 3, later), skipped, text).await.unwrap().unwrap();
        assert_eq!(finished.site.pages, PageCounts { found: 3, skipped: 1, captured: 1, failed: 1, waiting: 0 });
        assert_eq!((finished.site.state, finished.site.error), (SiteState::Done, None));
    }

    async fn open_job_says_why_it_waits_until_a_grab_is_created(db) {
        let site = created(db, db.team(9).await, &request()).await;
        let refused = PageEnd::Delayed(SiteError::new("queue_limit_exceeded", &"Too many are open."));
        db.store.sites().end_page(attempt(&site, 1, NOW), refused, text).await.unwrap();
        let waiting = find(db, &site).await;
        assert_eq!(waiting.error.map(|error| error.code).as_deref(), Some("queue_limit_exceeded"));
        assert_eq!((waiting.state, waiting.pages.waiting), (SiteState::Discovering, 1));
        begin(db, &site, NOW).await;
        assert_eq!(find(db, &site).await.error, None);
    }

    async fn open_jobs_are_limited_and_old_ones_are_deleted(db) {
        let team = db.team(9).await;
        let mut sites = Vec::new();
        for _ in 0..5 {
            sites.push(created(db, team, &request()).await);
        }
        let more = db.store.sites().create(new_site(SiteId(db.id()), team, &request())).await.unwrap();
        assert_eq!(more, CreateSiteOutcome::TooMany);
        for site in &sites {
            db.store.sites().cancel(target(site), NOW, text).await.unwrap().unwrap();
        }
        created(db, team, &request()).await;
        assert_eq!(db.store.retention().purge_sites(NOW, 9).await.unwrap(), 0);
        let after = NOW + Duration::from_secs(1);
        assert_eq!(db.store.retention().purge_sites(after, 3).await.unwrap(), 3);
        assert_eq!(db.store.retention().purge_sites(after, 9).await.unwrap(), 2);
        let list = db.store.sites().list(team, Environment::Live, None, None, 9).await.unwrap();
        assert_eq!((list.sites.len(), list.has_more), (1, false));
    }

    async fn secrets_are_deleted_when_a_job_has_ended(db) {
        let new = NewSite { secrets: Some(vec![7]), ..new_site(SiteId(db.id()), db.team(9).await, &request()) };
        let CreateSiteOutcome::Created(site) = db.store.sites().create(new).await.unwrap() else { panic!() };
        assert_eq!(db.store.vault().list_sealed_sites(None, 9).await.unwrap(), [(site.id, vec![7])]);
        db.store.sites().cancel(target(&site), NOW, text).await.unwrap().unwrap();
        assert_eq!(db.store.vault().list_sealed_sites(None, 9).await.unwrap(), []);
    }

    async fn deleted_team_has_no_jobs(db) {
        let team = db.team(9).await;
        let site = created(db, team, &request()).await;
        let refused = PageEnd::Delayed(SiteError::new("queue_limit_exceeded", &"Too many are open."));
        db.store.sites().end_page(attempt(&site, 1, NOW), refused, text).await.unwrap();
        db.store.retention().delete_team(team, None, NOW).await.unwrap().unwrap();
        let canceled = find(db, &site).await;
        assert_eq!((canceled.state, canceled.error), (SiteState::Canceled, None), "it does not wait any more");
        assert!(!db.store.retention().erase_team(team, NOW, 100).await.unwrap());
        assert_eq!(db.store.sites().find(target(&site)).await.unwrap(), None);
        assert_eq!(db.store.sites().due(NOW, 9).await.unwrap(), []);
    }

    async fn job_that_is_open_for_too_long_is_canceled(db) {
        let site = created(db, db.team(9).await, &request()).await;
        let before = NOW + LONGEST_OPEN - Duration::from_millis(1);
        assert!(matches!(lease(db, &site, before).await, Some(LeasedSite::Turn(_))));
        let leased = lease(db, &site, before + LEASE).await;
        assert!(matches!(&leased, Some(LeasedSite::Finished(ended)) if ended.site.state == SiteState::Canceled), "{leased:?}");
        assert_eq!(states(db, &site).await, [("/".to_owned(), "skipped", Some("canceled"))]);
    }

    async fn suspended_team_captures_nothing_more(db) {
        let team = db.team(9).await;
        let site = created(db, team, &request()).await;
        db.store.accounts().suspend_team(team, "A reason.", NOW).await.unwrap();
        let leased = lease(db, &site, NOW).await;
        assert!(matches!(&leased, Some(LeasedSite::Finished(ended)) if ended.site.state == SiteState::Canceled), "{leased:?}");
    }
}

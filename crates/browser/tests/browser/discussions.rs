//! Discussions in Markdown: who wrote each message, when, and what it answers.

use grabd_domain::capture::FileKind;

use crate::rig::{Rig, request};
use crate::site::{Site, html};

const DISCUSSION: &str = include_str!("../../../../tests/site/pages/discussion.html");

const COMMENTS: &str = r#"<section class=comments><h2>2 comments</h2>
<div class=comment><p class=meta><a class=author href="/u/ada">Ada</a> <time datetime="2026-05-14T09:00:00Z">May 14</time></p><p>Mine holds in sand,
and I have had it for ten years. It was never cheap, but it was never lost either, which is more than I can say of others.</p></div>
<div class=comment><p class=meta><a class=author href="/u/grace">Grace</a> <time datetime="2026-05-15T09:00:00Z">May 15</time></p><p>Ours drags. We
have tried two of them, and a chain of forty metres, and a weight on it, in three harbours and in all winds that we know of.</p></div></section>"#;

/// The Markdown of a page, without the address of its site.
async fn markdown_of(page: &str) -> String {
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let file = rig.text_file(request(&site.url("/")), FileKind::Markdown).await;
    rig.chromium.shutdown().await;
    file.replace(site.url("/").trim_end_matches('/'), "")
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_quotations_and_answers_are_within_what_they_answer() {
    let expected = "\
> **Ada** · [2026-05-14](/t/7/1) · 12 points
>
> My anchor drags in **sand**, whatever I do. I have 30 m of chain, and the wind is rarely above 15 knots.
>
> - It is a plough.
> - It weighs 9 kg.
>
> > **Grace** · [2026-05-14](/t/7/2)
> >
> > A heavier one, with more surface.
> >
> > > **Ada** · [2026-05-14](/t/7/3)
> > >
> > > > more surface
> > >
> > > How much more?

> **jean_b** · [2026-05-15](/t/7/4)
>
> Let out seven times the depth, and it holds. If it does not, put a second one on the same chain, four metres before the first, and \
let it dig in slowly.
";
    assert_eq!(markdown_of(DISCUSSION).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn comments_follow_a_short_post_and_not_an_article() {
    let post = "<p>Which anchor do you take along, if you can have only one, and the ground is sand? Ours is a plough of nine kilograms, \
                and we are not content with it.</p>";
    let page = |content: &str| {
        format!("<!doctype html><title>Anchors</title><article><h1>Anchors</h1>{content}</article>{COMMENTS}")
    };
    let expected = "\
Which anchor do you take along, if you can have only one, and the ground is sand? Ours is a plough of nine kilograms, and we are not \
content with it.

---

## Comments

> **Ada** · 2026-05-14
>
> Mine holds in sand, and I have had it for ten years. It was never cheap, but it was never lost either, which is more than I can say of \
others.

> **Grace** · 2026-05-15
>
> Ours drags. We have tried two of them, and a chain of forty metres, and a weight on it, in three harbours and in all winds that we know \
of.
";
    assert_eq!(markdown_of(&page(post)).await, expected);
    for style in ["display:none", "visibility:hidden"] {
        let hidden = page(post).replace("<section ", &format!("<section style='{style}' "));
        let content = markdown_of(&hidden).await;
        assert!(
            content.starts_with("Which anchor") && !content.contains("Ada") && !content.contains("##"),
            "{content}"
        );
    }
    let article: String = (1..=12).map(|number| post.replace("<p>", &format!("<p>Part {number} is here. "))).collect();
    let content = markdown_of(&page(&article)).await;
    assert!(
        content.contains("Part 12 is here.") && !content.contains("Ada") && !content.contains("Mine holds"),
        "{content}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_articles_are_no_discussions() {
    let entry = |title: &str, author: &str| {
        format!(
            "<div class=entry><p><a class=author href='/a'>{author}</a> <time datetime='2026-05-14'>May 14</time></p><h2>{title}</h2>\
             <p>The article says what is known about {title}, and what is not known. It takes the time that it needs for both of them.</p></div>"
        )
    };
    let entries =
        [("Sand", "Ada"), ("Mud", "Grace"), ("Rock", "Jean")].map(|(title, author)| entry(title, author)).concat();
    let content = markdown_of(&format!("<!doctype html><title>Ground</title><main>{entries}</main>")).await;
    assert!(content.contains("## Mud") && !content.contains("> "), "{content}");
}

/// U+FDD1 is the sign with which the script marks messages.
#[tokio::test(flavor = "multi_thread")]
async fn texts_cannot_have_the_sign_of_messages() {
    let first = "The first paragraph says what the page is about, and it says it in a sentence that is long enough to be found.";
    let second = "The second paragraph has more of it, and it is not an answer to the first one, although its text begins like one.";
    let page = format!(
        "<!doctype html><title>Signs</title><article><p>\u{fdd1}{first}</p><p>\u{fdd1}\u{fdd1}{second}</p></article>"
    );
    assert_eq!(markdown_of(&page).await, format!("{first}\n\n{second}\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_times_do_not_disturb_a_page_of_many() {
    // Elements that look like times, within each other and beside each other, in a page that replaces built-in functions.
    let nested = "<div class=time title='2026-05-14'>".repeat(300);
    let flat = "<p class=date><a class=author href='/a'>A</a> <time>1h</time> <i>b</i></p>".repeat(3000);
    let page = format!(
        "<!doctype html><title>Many</title><script>Array.prototype.push = Map.prototype.get = () => {{ throw new Error('replaced') }}</script>\
         <main><p>The first paragraph says what the page is about, and it says it in a sentence that is long enough to be found by what reads it. \
         Another sentence follows.</p>{nested}</main>{flat}"
    );
    let content = markdown_of(&page).await;
    assert!(content.contains("The first paragraph says what the page is about"), "{content}");
}

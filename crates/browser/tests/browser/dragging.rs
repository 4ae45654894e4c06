//! Dragging elements with the mouse.

use std::time::Duration;

use serde_json::json;

use crate::rig::{Rig, with_steps};
use crate::site::{Site, html};

/// A list that is sorted with pointer events.
const SORTABLE: &str = "<!doctype html><style>li { height: 60px; width: 300px; touch-action: none }</style>
    <body style='margin:0;background:white'><ul id=list><li id=a>A</li><li id=b>B</li><li id=c>C</li></ul><script>
    let held = null;
    let moves = 0;
    list.onpointerdown = (event) => { held = event.target.closest('li') };
    onpointermove = (event) => {
        if (!held || !event.isTrusted || event.buttons !== 1) return;
        moves += 1;
        const items = [...list.children];
        const over = items.find((item) => {
            const box = item.getBoundingClientRect();
            return event.clientY >= box.top && event.clientY < box.bottom;
        });
        if (!over || over === held) return;
        if (items.indexOf(over) > items.indexOf(held)) over.after(held);
        else over.before(held);
    };
    onpointerup = () => {
        held = null;
        document.title = [...list.children].map((item) => item.id).join('') + (moves > 3 ? ' moved' : '');
    };
    </script>";

/// A list that is sorted with drag and drop of HTML, and a place to drop below the window.
const DRAGGABLE: &str = "<!doctype html><style>li { height: 60px; width: 300px }</style>
    <body style='margin:0;background:white'><ul id=list><li id=a draggable=true>A</li><li id=b draggable=true>B</li>
    <li id=c draggable=true>C</li></ul><script>
    const seen = [];
    const see = (event) => { if (event.isTrusted && seen.at(-1) !== event.type) seen.push(event.type) };
    list.ondragstart = (event) => {
        see(event);
        event.dataTransfer.setData('text/plain', event.target.id);
        event.dataTransfer.effectAllowed = 'move';
    };
    list.ondragover = (event) => {
        see(event);
        event.preventDefault();
    };
    list.ondrop = (event) => {
        see(event);
        event.preventDefault();
        event.target.closest('li').after(document.getElementById(event.dataTransfer.getData('text/plain')));
    };
    list.ondragend = (event) => {
        see(event);
        document.title = [...list.children].map((item) => item.id).join('') + ' ' + seen.join(' ');
    };
    </script>";

/// A place to drop that is shown while something is dragged.
const LATE: &str = "<!doctype html><body style='margin:0;background:white'><p id=a style='width:100px'>Drag</p>
    <p id=place hidden style='position:absolute;top:400px;left:500px;width:200px;height:100px;background:blue'>Here</p><script>
    a.onpointerdown = (event) => { event.preventDefault(); place.hidden = false };
    place.onpointerup = (event) => { if (event.isTrusted) document.title = 'dropped' };
    </script>";

async fn drag(rig: &Rig, url: &str, from: &str, to: &str) -> Option<String> {
    let image = rig.capture(with_steps(url, &json!([{ "drag": { "from": from, "to": to } }]))).await;
    image.metadata.page.title
}

#[tokio::test(flavor = "multi_thread")]
async fn elements_are_dragged_as_a_user_does() {
    let pages = [("/sortable", html(SORTABLE)), ("/draggable", html(DRAGGABLE)), ("/late", html(LATE))];
    let site = Site::start(2, pages).await;
    let rig = Rig::with(&[2], |options| options.settle_budget = Duration::from_secs(2)).await;
    let sortable = site.url("/sortable");
    assert_eq!(drag(&rig, &sortable, "#a", "text=C").await.as_deref(), Some("bca moved"));
    assert_eq!(drag(&rig, &sortable, "#c", "#a").await.as_deref(), Some("cab moved"));
    let draggable = site.url("/draggable");
    let dragged = drag(&rig, &draggable, "#a", "#c").await;
    assert_eq!(dragged.as_deref(), Some("bca dragstart dragover drop dragend"));
    assert_eq!(drag(&rig, &site.url("/late"), "#a", "#place").await.as_deref(), Some("dropped"));

    // The mouse works as before after a drag, and after each kind of it.
    let again = json!([
        { "drag": { "from": "#a", "to": "#b" } },
        { "drag": { "from": "#b", "to": "#c" } },
    ]);
    let image = rig.capture(with_steps(&draggable, &again)).await;
    // B and A are first, then B is put after C.
    assert!(
        image.metadata.page.title.as_deref().is_some_and(|title| title.starts_with("acb ")),
        "{:?}",
        image.metadata.page
    );

    let missing = json!([{ "drag": { "from": "#a", "to": "#none" } }]);
    let (failure, _) = rig.fails(with_steps(&sortable, &missing)).await;
    assert_eq!(failure.message, "Step 1 (drag): nothing matches \"#none\" within 2 s.");
    rig.chromium.shutdown().await;
}

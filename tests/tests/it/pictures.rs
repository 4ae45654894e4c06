//! The right picture, through the whole service.

use anyhow::Result;
use grabd_tests::harness::Harness;
use grabd_tests::pixels;
use grabd_tests::site::pictures;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn formats_sizes_and_whole_pages() -> Result<()> {
    let harness = Harness::start(20, &[]).await?;
    for (format, magic) in [("png", &b"\x89PNG"[..]), ("jpeg", &b"\xff\xd8\xff"[..]), ("webp", &b"RIFF"[..])] {
        let (grab, image) =
            harness.capture("/article", json!({ "format": format, "width": 1000, "height": 500 })).await?;
        assert!(image.starts_with(magic), "{format}");
        let picture = image::load_from_memory(&image)?;
        assert_eq!((picture.width(), picture.height()), (1000, 500));
        assert_eq!((&grab["image_width"], &grab["image_height"]), (&json!(1000), &json!(500)));
        assert_eq!(grab["format"], json!(format));
    }
    let (_, image) = harness.capture("/article", json!({ "format": "png" })).await?;
    let picture = pixels::decode(&image);
    for patch in pictures::article_patches().chain(pictures::ARTICLE_MARKS).filter(|patch| patch.is_inside(&picture)) {
        pixels::assert_shows(&picture, patch, 2);
    }
    let (grab, image) = harness.capture("/tall", json!({ "full_page": true, "width": 640, "format": "jpeg" })).await?;
    assert_eq!((&grab["height"], &grab["truncated"]), (&json!(3240), &json!(true)));
    assert_eq!(grab["image_height"], json!(16384));
    let picture = pixels::decode(&image);
    assert_eq!(picture.height(), 16384);
    for patch in pictures::tall_patches().filter(|patch| patch.is_inside(&picture)) {
        pixels::assert_shows(&picture, patch, 12);
    }
    harness.finish().await
}

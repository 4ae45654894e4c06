//! The later options of the table. A new option is added at the end.

/// Declares the table of the first rows, which are given, and of these.
macro_rules! later_rows {
    ($dollar:tt [$($first:tt)*]) => {
        options! { $dollar
            $($first)*
            /// A document that is captured instead of a URL.
            html: Secret<String> = {
                kind: Kind::Text { max: 1 << 20, is_multiline: true },
                group: Group::Page,
                label: "HTML",
                brief: "Capture this HTML document instead of a URL.",
                help: "Capture this HTML document instead of the page at a URL: at most 1 MiB in UTF-8.",
                description: "Not together with `url`. Its own request is answered by the service; what the document loads is requested as usual. The \
                              value is kept encrypted, deleted when the grab has ended, and never shown.",
                example: "\"<h1>Invoice 42</h1>\"",
                is_secret: true
            }
            /// The address of that document.
            base_url: String = {
                kind: Kind::Url,
                default: "\"https://html.example/\"",
                group: Group::Page,
                label: "Base URL",
                brief: "The URL that the HTML document has.",
                help: "The URL that the HTML document has: its origin, and the base of its relative URLs.",
                description: "It must be a URL of a public host, and is not requested.",
                example: "\"https://example.com/invoices/42\"",
                requires: "html"
            }
            /// Files beside the image.
            also: Vec<String> = {
                kind: Kind::Words(&["html", "text", "markdown", "links", "elements", "accessibility", "marks", "pdf", "report", "mhtml", "har"]),
                default: "[]",
                group: Group::Files,
                form: FormDetails {
                    words: &["HTML", "Text", "Markdown", "Links", "Elements", "Accessibility", "Marks", "PDF", "Report", "MHTML", "HAR"],
                    ..FORM
                },
                label: "Also",
                brief: "Files to make beside the image, for the same credit.",
                help: "Files that are made of the same page, beside the image and for the same credit.",
                description: "They are in `files` of the grab. The capture fails, without charge, if one of them cannot be made. \
                              docs/FILES.md describes them.",
                example: "[\"markdown\", \"pdf\"]"
            }
            /// How the PDF is laid out.
            pdf: Object = {
                kind: Kind::Object { members: PDF, separator: ';' },
                group: Group::Files,
                label: "PDF",
                help: "Paper, margins, header and footer of the PDF.",
                description: "Only if `also` has `pdf`. With `single_page`, the page is as high as its content, up to 5 metres. \
                              The styles are those of `media`. docs/FILES.md describes the members.",
                example: "{\"format\": \"letter\", \"landscape\": true}",
                requires: "also"
            }
            /// The largest age of an earlier image that may answer the request, in seconds.
            max_age: i64 = {
                kind: Kind::Integer { min: 0, max: 2_592_000, unit: "seconds" },
                default: "0",
                group: Group::Timing,
                label: "Maximum age",
                brief: "Answer with an earlier image of the same options, at most this many seconds old, for free.",
                help: "Answer with an earlier image of the same options that is at most this old, in seconds, without charge.",
                description: "Only images of the same team and environment are used, and only if they were not deleted; by a key \
                              without the scope `read`, only those that it has made itself. Such a grab has `cached: true` and \
                              the `metadata` of the request, and is not a new one. Captures with secret options are always new. \
                              With 0, every capture is new.",
                example: "86400"
            }
            /// Texts of the caller.
            metadata: Object = {
                kind: Kind::Labels { max: 8, max_chars: 256 },
                group: Group::Page,
                label: "Metadata",
                brief: "Texts of yours that are returned with the grab.",
                help: "Texts of yours that are stored with the grab, and returned with it and in webhooks.",
                description: "They do not change the image. Not for secrets: they are stored as they are.",
                example: "{\"order\": \"8421\"}"
            }
            /// Content that is kept out of the page.
            block: Vec<String> = {
                kind: Kind::Words(&["ads", "trackers", "cookie_banners", "chats", "social"]),
                group: Group::Network,
                form: FormDetails {
                    rank: 7,
                    label: "Leave out",
                    words: &["Ads", "Trackers", "Cookie banners", "Chats", "Share bars"],
                    tag: "without {}",
                    ..FORM
                },
                label: "Block",
                brief: "Keep this content out of the page.",
                help: "Keep this content out of the page. `ads` and `trackers` are left out by the filter lists of the service, \
                       `cookie_banners` by refusing consent, or by hiding the dialog.",
                description: "`chats` are chat widgets, and `social` are share bars and buttons. The document itself is always loaded. `consent` and `blocked` of the grab report what was done. A \
                              service without filter lists rejects `ads` and `trackers`.",
                example: "[\"ads\", \"cookie_banners\"]"
            }
            /// The largest height of the slices that the image is cut into.
            slice_height: i64 = {
                kind: Kind::Integer { min: 256, max: 8000, unit: "pixels" },
                group: Group::Files,
                label: "Slice height",
                brief: "Also cut the image into slices of at most this height, in image pixels.",
                help: "Also cut the image into slices of at most this height, in image pixels, for models that cannot read a tall \
                       image.",
                description: "They are in `files` of the grab, from top to bottom, for the same credit. docs/FILES.md describes them.",
                example: "2000"
            }
            /// An earlier grab whose image is compared with that of this one.
            compare_to: String = {
                kind: Kind::GrabId,
                group: Group::Files,
                form: FormDetails { tag: "comparison", ..FORM },
                label: "Compare to",
                brief: "Id of an earlier grab: report what changed since its image.",
                help: "Id of an earlier grab of the same team and environment: report what changed since its image.",
                description: "The result is in `difference` of the grab, see docs/FILES.md. The capture fails, without charge, if \
                              the images cannot be compared, for example because the earlier one is deleted meanwhile. A key \
                              without the scope `read` can name only grabs that it has created itself. Such a capture is always \
                              new. Not in signed links.",
                example: "\"01993e1c-7b1a-7000-8000-0123456789ab\"",
                link_bar: Some(LinkBar::OnlyImage)
            }
            /// Whether the perceptual hash of the image is computed.
            phash: bool = {
                kind: Kind::Flag,
                default: "false",
                group: Group::Files,
                label: "Perceptual hash",
                brief: "Compute a perceptual hash of the image.",
                help: "Compute a hash of the image that is similar for images that look alike.",
                description: "It is in `phash` of the grab, see docs/FILES.md.",
                example: "true"
            }
            /// Further viewports that the page is captured in.
            viewports: Vec<Object> = {
                kind: Kind::Sizes { max: 6, members: VIEWPORT },
                group: Group::Files,
                label: "Further viewports",
                brief: "Also capture the page in windows of these sizes.",
                help: "Also capture the page in windows of these sizes, in CSS pixels, for the same credit.",
                description: "Their images are in `files` of the grab, from the same load: the page is resized. Everything else is as \
                              for the image. The capture fails, without charge, if one of them cannot be taken in time. \
                              docs/FILES.md describes them.",
                example: "[{\"width\": 768, \"height\": 1024}, {\"width\": 390, \"height\": 844}]"
            }
            /// Where the image is uploaded to.
            upload_url: Secret<String> = {
                kind: Kind::Url,
                group: Group::Files,
                label: "Upload URL",
                brief: "Also upload the image to this URL by PUT.",
                help: "Also upload the image to this URL by PUT, such as a presigned URL of an object store.",
                description: "HTTPS on a public address; redirects are not followed. The capture fails, without charge, if the upload \
                              is refused or takes more than 20 seconds. Nothing is uploaded with test keys. docs/FILES.md describes \
                              it. The value is kept encrypted, deleted when the grab has ended, and never shown.",
                example: "\"https://bucket.example.com/shot.png?signature=6f2a\"",
                is_secret: true
            }
            /// Which part of the page its text and Markdown are.
            content: String = {
                kind: Kind::Word(&["main", "page"]),
                default: "\"main\"",
                group: Group::Files,
                label: "Content",
                brief: "Which part of the page its text and Markdown are.",
                help: "Which part of the page the text and the Markdown are: the article, or all of it.",
                description: "Only for the files `text` and `markdown` of `also`. `main` leaves out navigation, footers, comments, \
                              related links and the like. A page without an article is read as with `page`, and the grab has the \
                              warning `no_main_content`. docs/FILES.md describes it.",
                example: "\"page\"",
                requires: "also"
            }
            /// What is done on the page before the shot.
            steps: Secret<Vec<Object>> = {
                kind: Kind::Choices { max: 20, members: STEP },
                group: Group::Changes,
                label: "Steps",
                help: "Act on the loaded page before the image, one step after the other.",
                description: "Each step is an object with one member, such as `click`, `type` or `press`. It is followed by a wait until the page has settled, and may lead to another page. A selector is \
                              one of CSS, `text=Log in`, or `role=button[name=\"Log in\"]`; `iframe >> button` looks in a frame. \
                              The capture fails, without charge, if a step cannot be done within 5 seconds, or within 10 for \
                              `wait_for` and `wait_for_text`; the message names the step. Steps are done after `click` and before \
                              `script`. docs/guide/CAPTURES.md describes them. The value is kept encrypted, deleted when the grab \
                              has ended, and never shown.",
                example: "[{\"type\": {\"into\": \"#user\", \"text\": \"guest\"}}, {\"press\": \"Enter\"}]",
                is_secret: true
            }
            /// Elements that are covered.
            mask: Vec<String> = {
                kind: Kind::Selectors { max: 20 },
                group: Group::Changes,
                label: "Mask",
                help: "Cover elements that match these CSS selectors with grey boxes.",
                description: "Use it for what must not be seen: nothing in the elements is drawn. The capture fails, without charge, if one of the \
                              selectors matches nothing when the image is taken. Frames of other origins are not searched. Of the files \
                              of `also`, only `report` can be made with it.",
                example: "[\".account-number\"]"
            }
            /// An element with which the capture fails.
            fail_if_selector: String = {
                kind: Kind::Selector,
                group: Group::Page,
                label: "Fail if visible",
                help: "Fail if an element that matches this CSS selector is visible.",
                description: "It may also begin with `text=` or `role=`, as in `steps`. It is looked for just before the image is taken. A \
                              capture that fails is not charged.",
                example: "\".error-page\""
            }
            /// A text with which the capture fails.
            fail_if_text: String = {
                kind: Kind::Text { max: 512, is_multiline: false },
                group: Group::Page,
                label: "Fail if text",
                help: "Fail if the page shows this text.",
                description: "It is looked for just before the image is taken. A capture that fails is not charged. Upper and lower case \
                              count as equal, and so do spaces and line breaks. Text that is transparent or cut off does not count. \
                              Frames of other origins are not searched.",
                example: "\"Internal server error\""
            }
            /// Wait until the page shows this text.
            wait_for_text: String = {
                kind: Kind::Text { max: 512, is_multiline: false },
                group: Group::Timing,
                label: "Wait for text",
                help: "Wait until the page shows this text.",
                description: "It is compared as `fail_if_text`. The capture fails, without charge, if the text does not appear in time.",
                example: "\"Total\""
            }
            /// Whether the capture fails if its image has one colour.
            fail_if_blank: bool = {
                kind: Kind::Flag,
                default: "false",
                group: Group::Page,
                label: "Fail if blank",
                help: "Fail if all of the image has one colour.",
                description: "A capture that fails is not charged. Without the option, such a grab is done, with the warning `blank` unless the captured element is empty.",
                example: "true"
            }
            /// Elements that are outlined.
            highlight: Vec<Object> = {
                kind: Kind::Objects { max: 20, members: HIGHLIGHT },
                group: Group::Changes,
                label: "Highlight",
                help: "Outline elements in the image, with labels.",
                description: "All visible elements that a selector matches are outlined, at most 100. The capture fails, without charge, if \
                              none of them is in the image. Outlines are also in what is made of the image, such as slices, and not in the \
                              text, the HTML and the PDF of the page.",
                example: "[{\"selector\": \"h1\", \"label\": \"Title\", \"color\": \"blue\"}]"
            }
            /// A smaller copy of the image.
            thumbnail: Object = {
                kind: Kind::Object { members: THUMBNAIL, separator: ',' },
                group: Group::Files,
                label: "Thumbnail",
                brief: "Also make a smaller copy of the image, at most of this size.",
                help: "Also make a smaller copy of the image, as a JPEG of at most this size.",
                description: "It is in `files` of the grab, for the same credit. With `contain`, it shows all of the image; with `cover`, it is cut to the shape of \
                              the given size, from the top. It is never enlarged. Forms and the command line take `width,height,fit`.",
                example: "{\"width\": 400, \"height\": 300, \"fit\": \"cover\"}"
            }
            /// An expression that is waited for.
            wait_for_expression: String = {
                kind: Kind::Text { max: 4096, is_multiline: true },
                group: Group::Timing,
                label: "Wait for expression",
                help: "Wait until this JavaScript expression is true in the page.",
                description: "It is evaluated about 20 times a second, and promises are awaited. An exception counts as false. The capture \
                              fails, without charge, if the expression does not become true in time. Not without `javascript`, and not \
                              in signed links.",
                example: "\"window.chart?.isDrawn\"",
                link_bar: Some(LinkBar::Published)
            }
            /// Requests of the page with which the capture fails.
            fail_on_request: Vec<Object> = {
                kind: Kind::Objects { max: 20, members: REQUEST_RULE },
                group: Group::Page,
                label: "Fail on request",
                brief: "Fail if a request to such a URL failed; status is 4xx, 5xx, 404 or failed.",
                help: "Fail if a request of the page to one of these URLs failed, or was answered with the status of a failure.",
                description: "`url` is a pattern as in `block_urls`. `status` is `4xx`, `5xx`, a number, or `failed` for a request \
                              without an answer; without it, all of these count. The requests of the captured document, its \
                              frames and its workers count, and so does its own. Requests that the page cancels, that are \
                              blocked, or that have no answer yet do not count, nor do WebSockets. A capture that fails is not \
                              charged; the message names the URL without its query.",
                example: "[{\"url\": \"*/api/*\", \"status\": \"5xx\"}]"
            }
            /// Whether the page says when it is ready.
            wait_for_signal: bool = {
                kind: Kind::Flag,
                default: "false",
                group: Group::Timing,
                label: "Wait for signal",
                brief: "Wait until the page sets `window.grabReady = true` or dispatches `grabReady`.",
                help: "Wait until the page says that it is ready.",
                description: "It does so with `window.grabReady = true`, or with an event of the type `grabReady` on `window` or \
                              `document`, which may come before it is waited for. The capture fails, without charge, if the page \
                              does neither in time. Not without `javascript`.",
                example: "true"
            }
            /// The page of a PDF that is captured.
            pdf_page: i64 = {
                kind: Kind::Integer { min: 1, max: 500, unit: "" },
                default: "1",
                group: Group::Page,
                form: FormDetails { tag: "PDF page {}", ..FORM },
                label: "Page of a PDF",
                help: "Which page of a PDF to capture.",
                description: "If the URL leads to a PDF, the image shows one of its pages, as wide as the viewport; use `full_page` for all \
                              of it. The capture fails, without charge, if the PDF has no such page, needs a password or is broken, and if \
                              the URL leads to a web page and another page than the first is asked for.",
                example: "3",
                excludes: &["html"]
            }
            /// Stop everything that moves, the page's clock and its random numbers.
            freeze_all: bool = {
                kind: Kind::Flag,
                default: "false",
                group: Group::Changes,
                label: "Freeze all",
                help: "Freeze the page, its clock and its random numbers.",
                description: "As `freeze`, so that what scripts draw is equal in repeated captures, too. The clock begins at 2026-01-01 12:00 \
                              UTC, stands still while the page loads, and stops some seconds later. What a page shows after that is \
                              missing. Frames of other sites and service workers keep their clock. docs/guide/PICTURE.md describes it.",
                example: "true"
            }
            /// How the visitor sees the page.
            vision: String = {
                kind: Kind::Word(&[
                    "none", "deuteranopia", "protanopia", "tritanopia", "achromatopsia", "blurred_vision", "reduced_contrast"
                ]),
                default: "\"none\"",
                group: Group::Appearance,
                form: FormDetails {
                    words: &[
                        "Unimpaired", "Deuteranopia", "Protanopia", "Tritanopia", "Achromatopsia", "Blurred vision", "Reduced contrast"
                    ],
                    tag: "{}",
                    ..FORM
                },
                label: "Vision",
                help: "Draw the page as with this vision deficiency.",
                description: "With `deuteranopia`, `protanopia` and `tritanopia`, people do not perceive green, red or blue, and with \
                              `achromatopsia` no colour. The page cannot tell.",
                example: "\"deuteranopia\""
            }
            /// Whether a signed package about the capture is made.
            evidence: bool = {
                kind: Kind::Flag,
                default: "false",
                group: Group::Files,
                label: "Evidence",
                brief: "Also make a signed package as evidence.",
                help: "Also make a package that the service signs, as evidence of what the page showed.",
                description: "It is in `files` of the grab, as `evidence.zip`, for the same credit. It has the image, the page as MHTML, a \
                              report, the headers of the response, and a signed manifest with the addresses, the times and the \
                              hashes of all of them. `grab verify` verifies it offline. The capture fails, without charge, if it \
                              cannot be made. With test keys, it says that it is a test. docs/EVIDENCE.md describes it. Not in \
                              signed links.",
                example: "true",
                excludes: &["html", "mask"],
                link_bar: Some(LinkBar::OnlyImage)
            }
            /// The proxy that the page is loaded through.
            proxy: String = {
                kind: Kind::ProxyId,
                group: Group::Network,
                form: FormDetails { if_empty: "None", tag: "proxy", ..FORM },
                label: "Proxy",
                brief: "Id of a proxy of the team.",
                help: "Id of a proxy of the same team and environment, through which the page is loaded.",
                description: "Everything that the page requests goes through it. docs/PROXIES.md describes proxies. The capture fails, \
                              without charge, if the proxy does not work. Not in signed links.",
                example: "\"01993e1c-7b1a-7000-8000-0123456789ab\"",
                link_bar: Some(LinkBar::Published)
            }
        }
    };
}

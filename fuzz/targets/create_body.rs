#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    grabd_edge::properties::create_body(data);
    grabd_domain::properties::capture(data);
});

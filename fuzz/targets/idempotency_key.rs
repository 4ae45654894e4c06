#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    grabd_edge::properties::idempotency_key(data);
    grabd_domain::properties::idempotency_key(data);
});

//! Prints the offset of each field of the mirrored structs, "struct.field offset", and their sizes, "struct size". The
//! tests compare them with the header's. Run it after a change of sluice.rs.

mod sluice;

use std::mem::{size_of, MaybeUninit};
use std::ptr::addr_of;

macro_rules! layout {
    ($c:literal, $rust:ident: $($field:ident as $c_field:literal),*) => {{
        let it = MaybeUninit::<sluice::$rust>::uninit();
        let base = it.as_ptr();
        $(println!("{}.{} {}", $c, $c_field, unsafe { addr_of!((*base).$field) } as usize - base as usize);)*
    }};
}

fn main() {
    layout!("sl_abi", Abi: major as "major", minor as "minor", size as "size");
    layout!("sl_span", Span: ptr as "ptr", len as "len");
    layout!("sl_error", Error: status as "status", offset as "offset", code as "code", text as "text");
    layout!("sl_value", Value: kind as "type", escaped as "escaped", raw as "raw");
    layout!("sl_slice", Slice: records as "records", n as "n", deadline_ms as "deadline_ms", arena as "arena",
            request_id as "request_id", attempt as "attempt");
    layout!("sl_option", OptionRow: name as "name", kind as "type", flags as "flags", min as "min", max as "max",
            values as "values", fallback as "fallback", help as "help");
    layout!("sl_host", Host: mark as "mark", fail as "fail", alloc as "alloc", route_arena as "route_arena",
            log as "log", metric as "metric", option_text as "option_text", record_attribute as "record_attribute",
            value_text as "value_text", value_int64 as "value_int64", value_iter as "value_iter",
            value_next as "value_next");
    layout!("sl_handler", Handler: name as "name", summary as "summary", flags as "flags",
            max_records as "max_records", max_bytes as "max_bytes", options as "options", open as "open",
            handle as "handle", window as "window", close as "close", accepts as "accepts");
    println!("sl_error {}", size_of::<sluice::Error>());
    println!("sl_value {}", size_of::<sluice::Value>());
    println!("sl_iter {}", size_of::<sluice::Iter>());
    println!("sl_option {}", size_of::<sluice::OptionRow>());
    // (The handler is of version 1.0, so it ends before the header's, which has fields appended since.)
    println!("{} {}", "SL_REJECT", sluice::REJECT);
    println!("{} {}", "SL_NEW_IMAGE", sluice::NEW_IMAGE);
    println!("{} {}", "SL_OLD_IMAGE", sluice::OLD_IMAGE);
    println!("{} {}", "SL_N", sluice::N);
    println!("{} {}", "SL_L", sluice::L);
    println!("{} {}", "SL_M", sluice::M);
    println!("{} {}", "SL_OPTION_TEXT", sluice::OPTION_TEXT);
}
